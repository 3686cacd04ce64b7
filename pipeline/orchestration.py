"""The one module that meets Airflow: what each task of the DAG does, and the nightly DAG run in this process.

A task finds its configuration and its night by name, calls one stage, and hands on ids. It imports Airflow only to run
a DAG in this process; a worker needs nothing of the metadata database.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from pipeline import forecast, refresh, stages, study
from pipeline.classes import Shard
from pipeline.config import DEFAULT_FILE, Overrides, load
from pipeline.errors import AssayError
from pipeline.reports.feed import Night, NightRow, Step, read_night
from pipeline.store import digest
from pipeline.taps.snapshot import verdict
from pipeline.taps.taplist import read_tap_list
from pipeline.terminal import Watch, err, show_night, show_taps, tell_awaited, told_in_lines
from pipeline.workspace import Workspace, find_classes, find_corpus, now

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.definitions.dag import DAG

# --- what each task does ----------------------------------------------------------------------------------------------


def open_night(context: Context) -> str:
    """Name the night of this DAG run: the same name at every retry."""
    run = context["dag_run"]
    return night_of(run.run_id, run.start_date or now())


def night_of(run_id: str, started: datetime) -> str:
    """Return the id of the night of a DAG run."""
    return f"{started:%Y%m%dT%H%M%SZ}-{digest(run_id)[:8]}"


def list_taps(context: Context, night: str) -> list[str]:
    """Read everything that people wrote, before any work; return the names of all taps of the list."""
    with _workspace(context, night) as workspace:
        tell_awaited(workspace.settings.awaited_ledger)
        return [tap.name for tap in stages.check_inputs(workspace).taps]


def snapshot(context: Context, night: str, tap: str) -> str:
    """Read one tap. An outage is raised as such, so that the task is tried again; everything else fails at once."""
    with _workspace(context, night) as workspace:
        (row,) = [row for row in workspace.settings.tap_list().taps if row.name == tap]
        verdict([stages.read_tap(workspace, row)])
        return tap


def corpus(context: Context, night: str) -> str:
    """Put the taps together; return the corpus digest."""
    with _workspace(context, night) as workspace:
        return stages.corpus(workspace).digest


def classes(context: Context, night: str) -> str:
    """Group the entries; return the artifact's key."""
    with _workspace(context, night) as workspace:
        return stages.classes(workspace, find_corpus(workspace)).key


SHARDS = 8
"""Into how many parts the bodies are cut. The clusters are the same for every number."""


def list_shards(context: Context, night: str) -> list[int]:
    """Return the numbers of the shards."""
    return list(range(SHARDS))


def signatures(context: Context, night: str, shard: int) -> int:
    """Sign the new bodies of one shard; return its number."""
    with _workspace(context, night) as workspace:
        stages.sign(workspace, find_corpus(workspace), Shard(shard, SHARDS))
        return shard


def clusters(context: Context, night: str) -> str:
    """Join near-duplicates; return the artifact's key."""
    with _workspace(context, night) as workspace:
        return stages.clusters(workspace, find_corpus(workspace)).key


def resolve(context: Context, night: str) -> list[str]:
    """Resolve every golden row; return the engines to evaluate: those that can run."""
    with _workspace(context, night) as workspace:
        stages.resolve(workspace, find_classes(workspace, find_corpus(workspace)))
        return workspace.settings.running


def evaluate(context: Context, night: str, engine: str) -> list[str]:
    """Index, rank and score every set with one engine; return the artifacts' keys."""
    with _workspace(context, night) as workspace:
        at = stages.place(workspace)
        return [made.key for made in stages.evaluate(workspace, at.corpus, at.grouped, engine, at.sets)]


def falloff(context: Context, night: str) -> list[str]:
    """Draw the nightly curves of every set; return the artifacts' keys."""
    with _workspace(context, night) as workspace:
        return [made.key for made in stages.nightly_falloff(workspace, stages.place(workspace))]


def checks(context: Context, night: str) -> str:
    """Make the checks, and ask every engine for known items; return the key of the checks."""
    with _workspace(context, night) as workspace:
        return stages.check(workspace, stages.place(workspace))[0].key


def feedback(context: Context, night: str) -> None:
    """Enter the failures of the night into the queue."""
    with _workspace(context, night) as workspace:
        at = stages.place(workspace)
        stages.feedback(workspace, at.corpus, at.grouped, at.sets)


def publish(context: Context, night: str) -> str:
    """Publish the run; return its id, which is also what the feed's asset carries."""
    with _workspace(context, night) as workspace:
        at = stages.place(workspace)
        published = stages.publish(workspace, at.corpus, at.grouped, at.sets)
        for outlet in context["outlet_events"]:
            context["outlet_events"][outlet].extra = {"run_id": published.run_id, "corpus": at.corpus.digest}
        return published.run_id


def close_night(context: Context, night: str) -> None:
    """Write the night into the feed, whatever came out."""
    workspace = _bare_workspace(context, night)
    run = context["dag_run"]
    logical = run.logical_date
    started = run.start_date or now()
    # The value: the text of a member of an enumeration is its name in the code of Airflow.
    trigger = str(getattr(run.run_type, "value", run.run_type))
    workspace.night.close(
        started, now(), logical_date=None if logical is None else logical.isoformat(), trigger=trigger
    )


def list_rows(context: Context, night: str) -> list[str]:
    """Return the names of all taps of the list, those without a pin too."""
    workspace = _bare_workspace(context, night)
    return [tap.name for tap in read_tap_list(workspace.settings.tap_file, need_pins=False).taps]


def read_heads(context: Context, night: str, tap: str) -> str:
    """Read one tap at its pin and at upstream's head. An outage is raised as such, and tried again."""
    workspace = _bare_workspace(context, night)
    taps = read_tap_list(workspace.settings.tap_file, need_pins=False)
    (row,) = [row for row in taps.taps if row.name == tap]
    heads = refresh.read_heads(workspace, taps, row)
    verdict([side.state for side in (heads.head, heads.pinned) if side is not None])
    return tap


def propose(context: Context, night: str) -> str:
    """Keep the proposal of new pins for review, whatever became of single taps; return its name."""
    workspace = _bare_workspace(context, night)
    try:
        refreshed = refresh.refresh(workspace)
        folder = refresh.publish(workspace, refreshed)
    finally:
        workspace.night.drop()
    verdict(refreshed.states)
    return folder.name


def prepare_study(context: Context, night: str) -> list[str]:
    """Read, group and index what takes part in a study; return the kinds of orders, of which each is drawn alone."""
    workspace, options = _study(context, night)
    study.prepare(workspace, options)
    return [*options.by]


def draw_curves(context: Context, night: str, by: study.By) -> str:
    """Draw the curves of every set in orders of one kind; return the kind."""
    workspace, options = _study(context, night)
    study.draw(workspace, options, by)
    return by


def publish_study(context: Context, night: str) -> str:
    """Publish the study; return its id."""
    return study.publish(*_study(context, night)).row.study_id


def forecast_candidate(context: Context, night: str) -> str | None:
    """Forecast what the candidate would change, where one is given; return the id of the forecast."""
    written = context["params"]["candidate"]
    if written is None:
        return None
    workspace, _ = _study(context, night)
    made = forecast.forecast(workspace, str(written), context["params"]["candidate_name"])
    return made.rows[0].forecast_id if made.rows else None


def drop_night(context: Context, night: str) -> None:
    """Drop the notes of what was no night."""
    _bare_workspace(context, night).night.drop()


def _study(context: Context, night: str) -> tuple[Workspace, study.StudyOptions]:
    """Return the workspace and the options that the DAG's parameters describe; they were checked by their schema."""
    params = context["params"]
    project = Path(context["dag"].fileloc).resolve().parent.parent
    workspace = _bare_workspace(
        context,
        night,
        golden=tuple(project / name for name in params["golden"]) or None,
        orders=params["orders"],
        sizes=params["sizes"],
    )
    chosen = {name: tuple(params[name]) for name in ("by", "include", "exclude", "engines")}
    return workspace, study.StudyOptions(
        **chosen,
        seed=params["seed"],
        step=params["step"],
        at=tuple(params["at"]),
        statistics=params["statistics"],
    )


def _bare_workspace(context: Context, night: str, **more: Any) -> Workspace:
    # A relative path of the DAG's parameter is relative to the project, the folder above that of the DAG's file.
    project = Path(context["dag"].fileloc).resolve().parent.parent
    overrides = Overrides(config=project / str(context["params"]["config"]), **more)
    settings = load(overrides, with_files=True)
    return Workspace(settings, Night(settings.store, night), _watch)


@contextmanager
def _workspace(context: Context, night: str) -> Iterator[Workspace]:
    """Open the workspace of a task. What stops the task is noted in the night, in words and with its exit code."""
    workspace = _bare_workspace(context, night)
    try:
        yield workspace
    except AssayError as error:
        workspace.night.failed(error)
        raise


# --- the nightly DAG in this process ----------------------------------------------------------------------------------

_watch: Callable[[Step], None] = lambda step: None  # noqa: E731


def main() -> None:
    """Run the nightly DAG in this process: no retries, Airflow's own log in a file, the exit code of the night."""
    with told_in_lines(debug="--debug" in sys.argv):
        config = Path(os.environ.get("ASSAY_CONFIG") or DEFAULT_FILE).absolute()
        home = Path(os.environ.get("AIRFLOW_HOME") or ".airflow").absolute()
        night = run_in_process(config, home)
        if night.exit_code:
            if any(state.state != "ok" for state in night.taps):
                show_taps(night.taps, err)
            raise NightFailed(night)
        settings = load(Overrides(config=config))
        workspace = Workspace(settings, Night(settings.store, night.night))
        at = stages.place(workspace)
        show_night(stages.published_as(workspace, at.corpus, at.grouped, at.sets), night)


class NightFailed(AssayError):
    """The night ended without a run; it says why, and ends with the exit code of what stopped it."""

    def __init__(self, night: NightRow) -> None:
        self.exit_code = night.exit_code
        super().__init__(night.error or night.status)


def run_in_process(config: Path, home: Path) -> NightRow:
    """Run the DAG once with ``dag.test`` and return its night.

    Raises:
        BadInput: the configuration is wrong.
    """
    global _watch
    store = load(Overrides(config=config), with_files=True).store  # a wrong configuration is told before Airflow starts
    log = home / "airflow.log"
    prepare_airflow(home)
    with _output_into(log) as console, Watch(console=console) as watch:
        _watch = watch
        console.print("Airflow starts: about ten seconds, a little more the first time.")
        dag = load_dag("nightly_evaluation")
        for task in dag.tasks:
            task.retries = 0
        run = dag.test(logical_date=None, run_conf={"config": str(config)})
        states = {str(instance.state) for instance in run.get_task_instances()}
    night = read_night(store, night_of(run.run_id, run.start_date))
    # A run is green when its leaves are; what counts is every task.
    if night.exit_code == 0 and not states <= {"success"}:
        return night.model_copy(update={"exit_code": 1, "error": f"a task failed; see {log}"})
    return night


def prepare_airflow(home: Path) -> None:
    """Set what Airflow reads when it is imported. What the environment says already stands."""
    home.mkdir(parents=True, exist_ok=True)
    secret = home / "jwt-secret"
    if not secret.exists():
        secret.touch(mode=0o600)
        secret.write_text(secrets.token_hex(64), encoding="ascii")
    for name, value in {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(Path("dags").absolute()),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "AIRFLOW__API_AUTH__JWT_SECRET": secret.read_text(encoding="ascii"),
    }.items():
        os.environ.setdefault(name, value)


def migrate() -> None:
    """Migrate Airflow's database where its version changed."""
    import airflow
    from airflow.utils.db import initdb

    stamp = Path(os.environ["AIRFLOW_HOME"]) / "migrated"
    if not stamp.exists() or stamp.read_text(encoding="ascii") != airflow.__version__:
        initdb()
        stamp.write_text(airflow.__version__, encoding="ascii")


def load_dag(name: str) -> DAG:
    """Migrate Airflow's database where its version changed, and return the DAG, bound in its own module."""
    migrate()
    from airflow.dag_processing.dagbag import BundleDagBag

    # As Airflow's own processes do: the files of the folder may import each other.
    folder = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    bag = BundleDagBag(folder, bundle_path=folder)
    if bag.import_errors:
        raise RuntimeError(f"a DAG cannot be read: {bag.import_errors}")
    return bag.dags[name]


@contextmanager
def _output_into(log: Path) -> Iterator[Console]:
    """Send everything that Airflow prints into ``log``; yield a console on the true standard error."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(descriptor) for descriptor in (1, 2)]
    with log.open("ab") as file, os.fdopen(os.dup(kept[1]), "w", encoding="utf-8") as terminal:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        try:
            yield Console(file=terminal, highlight=False, soft_wrap=True)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for descriptor, original in zip((1, 2), kept, strict=True):
                os.dup2(original, descriptor)
                os.close(original)


if __name__ == "__main__":
    # The tasks import this module by its name: the one that runs must be the same, or nothing would be shown.
    from pipeline.orchestration import main as run_main

    run_main()
