"""The nightly DAG, on real Airflow: wiring, equality with the command, retries, and what `make run` shows."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline.workspace import STAGES
from tests.conftest import PROJECT, feed_bytes

pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("airflow")]


@pytest.fixture(scope="module")
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An Airflow home whose database the first test migrates."""
    return tmp_path_factory.mktemp("airflow")


@pytest.fixture
def project(examples: Path, tmp_path: Path) -> Path:
    """A project of its own; the registries are shared."""
    folder = tmp_path / "project"
    shutil.copytree(examples / "config", folder / "config")
    (folder / "build").symlink_to(examples / "build")
    (folder / "dags").symlink_to(PROJECT / "dags")
    return folder


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "ASSAY"))}
    folder = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags")}
    return {**kept, **folder, "PYTHONPATH": str(PROJECT), **more}


def make_run(project: Path, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline.orchestration"]
    return subprocess.run(command, cwd=project, env=environment(home), capture_output=True, text=True)


def run_dag(
    project: Path, home: Path, retries: int, name: str = "nightly_evaluation", **params: object
) -> dict[str, Any]:
    config = str(project / "config" / "assay.toml")
    program = str(PROJECT / "tests" / "dags" / "run_dag.py")
    command = [sys.executable, program, str(home), config, str(retries), name, json.dumps(params)]
    done = subprocess.run(command, cwd=project, env=environment(home), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    ended: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return ended


def change(project: Path, old: str, new: str) -> None:
    path = project / "config" / "taps.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


PARSE = """
import json, sys
import airflow.sdk
before = set(sys.modules)
sys.path.insert(0, sys.argv[1])
import corpus_growth, nightly_evaluation, refresh_pins
print(json.dumps(sorted({name.split(".")[0] for name in set(sys.modules) - before})))
"""


def test_reading_the_dag_imports_nothing_heavy(airflow_home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PARSE, str(PROJECT / "dags")],
        env=environment(airflow_home),
        capture_output=True,
        text=True,
    )
    imported = set(json.loads(done.stdout.splitlines()[-1]))
    assert {"corpus_growth", "nightly_evaluation", "refresh_pins"} <= imported
    assert not imported & {"pandas", "pyarrow", "numba", "numpy", "datasketch", "scipy", "vl_convert"}


BAG = """
import json, sys
from pathlib import Path
from pipeline.orchestration import prepare_airflow
prepare_airflow(Path(sys.argv[1]))
from airflow.dag_processing.dagbag import BundleDagBag
from pipeline import errors
kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.AssayError)]
bag = BundleDagBag(Path(sys.argv[2]), bundle_path=Path(sys.argv[2]))
tasks = [task for dag in bag.dags.values() for task in dag.tasks]
print(json.dumps({
    "dags": sorted(bag.dags), "errors": bag.import_errors,
    "catchup": sorted({dag.catchup for dag in bag.dags.values()}),
    "active": sorted({dag.max_active_runs for dag in bag.dags.values()}),
    "undocumented": [task.task_id for task in tasks if "By hand: `assay " not in (task.doc_md or "")],
    "retries": sorted({task.retries for task in tasks}),
    "tried_again": sorted({
        kind.__name__
        for task in tasks for kind in [*kinds, OSError]
        if task.retry_policy.evaluate(kind("what happened"), 1, 3).action.value != "fail"
    }),
    "untimed": [task.task_id for task in tasks if task.execution_timeout is None],
}))
"""


def test_the_folder_holds_exactly_the_dags_that_are_known(airflow_home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BAG, str(airflow_home), str(PROJECT / "dags")],
        env=environment(airflow_home),
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "dags": ["corpus_growth", "nightly_evaluation", "refresh_pins"],
        "errors": {},
        "catchup": [False],
        "active": [1],
        "undocumented": [],
        "retries": [3],
        "tried_again": ["OSError", "Outage"],
        "untimed": [],
    }


def test_the_dag_and_the_command_name_the_same_stages_and_make_the_same_feed(
    finished: Path, project: Path, airflow_home: Path
) -> None:
    first = make_run(project, airflow_home)
    assert first.returncode == 0, first.stderr
    assert feed_bytes(project / ".assay") == feed_bytes(finished)
    nights = [pq.read_table(next((store / "feed" / "nights").iterdir())) for store in (project / ".assay", finished)]
    by_dag, by_command = ([step["stage"] for step in night["steps"][0].as_py()] for night in nights)
    assert by_dag == by_command == [stage.name for stage in STAGES]
    assert [night["trigger"][0].as_py() for night in nights] == ["manual", "command"]
    assert "All 59 outputs were made" in first.stdout

    second = make_run(project, airflow_home)
    assert second.returncode == 0, second.stderr
    assert "Nothing was recomputed: all 59 outputs came from the store" in second.stdout
    assert "recall@10" in second.stdout and "report.html" in second.stdout
    assert feed_bytes(project / ".assay") == feed_bytes(finished)


FIRST_URL = 'url = "../build/examples/driftwood+curiosities.git"'
FIRST_PIN = 'pin = "32937fbc6fcec6efd9e31a54ac83fddce27fdbd0"'


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_an_outage_is_tried_again_and_the_night_ends_well_once_it_is_over(
    finished: Path, project: Path, airflow_home: Path, examples: Path
) -> None:
    port = free_port()
    change(project, FIRST_URL, f'url = "git://127.0.0.1:{port}/driftwood+curiosities.git"')
    # The server comes up once the first attempt has failed: the notes of the night say when.
    wait = f"until grep -qs unavailable {project}/.assay/nights/*.jsonl; do sleep 0.2; done"
    serve = (
        f"git daemon --reuseaddr --listen=127.0.0.1 --port={port} --export-all"
        f" --base-path={examples}/build/examples {examples}/build/examples"
    )
    server = subprocess.Popen(["sh", "-c", f"{wait}; exec {serve}"], start_new_session=True)
    try:
        ended = run_dag(project, airflow_home, retries=3)
    finally:
        os.killpg(server.pid, 9)
        server.wait()
    tries = {task["label"]: task["tries"] for task in ended["tasks"] if task["task"] == "snapshot"}
    assert ended["state"] == "success"
    assert tries.pop("driftwood/curiosities") in (2, 3)
    assert set(tries.values()) == {1} and len(tries) == 9
    assert feed_bytes(project / ".assay") == feed_bytes(finished)


@pytest.mark.parametrize(
    ("old", "new"),
    [(FIRST_PIN, f'pin = "{"0" * 39}1"'), (FIRST_URL, 'url = "../build/examples/gone.git"')],
    ids=["missing pin", "gone"],
)
def test_what_waiting_cannot_mend_is_not_tried_again(project: Path, airflow_home: Path, old: str, new: str) -> None:
    change(project, old, new)
    ended = run_dag(project, airflow_home, retries=3)
    states = {(task["label"] or task["task"]): (task["state"], task["tries"]) for task in ended["tasks"]}
    assert ended["state"] == "failed"
    assert states["driftwood/curiosities"] == ("failed", 1)
    assert states["solo-dev/dotfiles"] == ("success", 1)
    assert states["publish"][0] == "upstream_failed"
    assert states["close_night"][0] == "success"


@pytest.mark.parametrize(
    ("old", "new", "exit_code", "words"),
    [
        (FIRST_URL, 'url = "git://127.0.0.1:1/nowhere"', 75, "unavailable"),
        (FIRST_PIN, f'pin = "{"0" * 39}1"', 1, "missing_pin"),
        (FIRST_PIN, 'pin = "32937fb"', 2, "taps.toml row 1 pin"),
    ],
    ids=["outage", "missing pin", "short pin"],
)
def test_make_run_ends_with_the_exit_code_of_the_night_and_says_why_in_a_line(
    project: Path, airflow_home: Path, old: str, new: str, exit_code: int, words: str
) -> None:
    change(project, old, new)
    done = make_run(project, airflow_home)
    assert done.returncode == exit_code
    told = [line for line in done.stderr.splitlines() if line.startswith("assay: ")]
    assert len(told) == 1 and words in told[0]
    assert "Traceback" not in done.stderr + done.stdout
    assert feed_bytes(project / ".assay") == {}
