"""Whoever changes the bytes that a stage writes raises its version, or old outputs are served for new ones."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from pipeline.store import Artifact, Stage, canonical_json, digest
from pipeline.workspace import STAGES
from tests.conftest import PROJECT

HELD = PROJECT / "tests" / "stage_outputs.json"


def outputs(store: Path, stage: str) -> str:
    """Return the digest of all that a stage wrote: facts and files, but not the keys, which hold the versions."""
    if stage == "feed":
        return digest(_published(store))
    manifests = [
        Artifact.model_validate_json(path.read_bytes()) for path in store.glob(f"store/{stage}/*/manifest.json")
    ]
    return digest(sorted(canonical_json([made.facts, made.files]) for made in manifests))


def _published(store: Path) -> list[str]:
    """Name each file of the run and digest the page without its ids, which hold the versions of all stages.

    What the tables hold is held by the stages that made it. Pixels depend on the fonts of the machine.
    """
    (run,) = (store / "feed").glob("run=*")
    page = re.sub(rb"[0-9a-f]{8,}", b"", (run / "report.html").read_bytes())
    return [*sorted(path.name for path in run.iterdir()), hashlib.sha256(page).hexdigest()]


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_stage_whose_bytes_changed_has_another_version(finished: Path, stage: Stage) -> None:
    name, version = stage
    held = json.loads(HELD.read_text())
    now = {"version": version, "digest": outputs(finished, name)}
    if held.get(name) != now:
        told = "raise its VERSION, and hold" if held.get(name, {}).get("version") == version else "hold"
        pytest.fail(f"what the stage {name} writes has changed: {told} {json.dumps({name: now})} in {HELD.name}")
