"""The documents say what the code does: the table of steps, the commands, the words."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.golden.items import GoldenRow
from pipeline.stages import STEPS
from pipeline.tables import FEED_TABLES, RUN_TABLES
from pipeline.workspace import STAGES
from tests.conftest import PROJECT

README = (PROJECT / "README.md").read_text(encoding="utf-8")


def steps_as_markdown() -> str:
    rows = [f"| {row.stage} | {row.reads} | {row.writes} | `{row.command}` |" for row in STEPS]
    return "\n".join(["| step | reads | writes | by hand |", "|---|---|---|---|", *rows])


@pytest.mark.parametrize("document", ["README.md", "docs/architecture.md"])
def test_the_table_of_steps_is_that_of_the_code(document: str) -> None:
    text = (PROJECT / document).read_text(encoding="utf-8")
    assert steps_as_markdown() in text, f"put this into {document}:\n{steps_as_markdown()}"


def test_every_key_of_a_golden_row_is_documented_as_the_code_says() -> None:
    text = (PROJECT / "docs" / "golden-sets.md").read_text(encoding="utf-8")
    for name, field in GoldenRow.model_fields.items():
        assert f"| `{field.alias or name}` | {field.description} |" in text


def test_every_table_of_the_feed_is_documented_in_the_order_of_the_code() -> None:
    text = (PROJECT / "docs" / "feed.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [*RUN_TABLES]
    for name in FEED_TABLES.keys() - RUN_TABLES.keys():
        assert f"table `{name}`" in text


def test_every_file_of_the_feed_is_documented(finished: Path) -> None:
    text = (PROJECT / "docs" / "feed.md").read_text(encoding="utf-8")
    for path in (finished / "feed").rglob("*"):
        if path.is_file() and path.parent.name.startswith("run="):
            drawn = path.suffix in (".png", ".svg")
            named = path.stem in RUN_TABLES if path.suffix == ".parquet" else drawn or path.name in text
            assert named, path.name
        elif path.is_file():
            assert path.name in text or f"`{path.parent.name}/" in text, path.name


def test_the_table_of_steps_names_every_stage() -> None:
    assert [row.stage for row in STEPS] == [stage.name for stage in STAGES]


def test_every_link_between_documents_leads_somewhere() -> None:
    documents = [*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), PROJECT / "examples" / "README.md"]
    for document in documents:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def commands_of(document: Path) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    return [line.split("#")[0].strip() for block in blocks for line in block.splitlines() if line.split("#")[0].strip()]


def test_every_make_target_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    documents = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", PROJECT / "docs" / "benchmarks.md"]
    named = {
        word for document in documents for line in commands_of(document) for word in re.findall(r"make ([a-z-]+)", line)
    }
    assert "run" in named
    assert named <= targets


def test_every_assay_command_in_the_readme_runs_on_the_embedded_registries(
    examples: Path, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(examples)
    monkeypatch.setenv("ASSAY_STORE", str(stored))
    commands = [line for line in commands_of(PROJECT / "README.md") if re.match(r"(\S+/)?assay ", line)]
    assert len(commands) >= 5
    for command in commands:
        words = command.split()
        done = subprocess.run(
            [sys.executable, "-m", "pipeline.cli", *words[1:]], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"


def test_no_decision_is_without_a_reason() -> None:
    for page in sorted((PROJECT / "docs" / "decisions").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert "**Decision.**" in text and "**Why.**" in text, page.name
