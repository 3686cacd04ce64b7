"""New pins, proposed every week with what would move: wiring only. It changes nothing by itself and scores nothing."""

from __future__ import annotations

from airflow.sdk import (
    CronTriggerTimetable,
    dag,
    get_current_context,
    task,
)
from assay_dags import SHARED, config_param


@dag(
    dag_id="refresh_pins",
    schedule=CronTriggerTimetable("47 4 * * 1", timezone="UTC"),
    params={"config": config_param()},
    doc_md=__doc__,
    **SHARED,
)
def refresh_pins() -> None:
    """Propose the heads of upstream as new pins. By hand: `assay taps refresh --config config/assay.toml`."""

    @task(doc_md="Names the run. By hand: `assay taps refresh` does so by itself.")
    def open_run() -> str:
        from pipeline import orchestration

        return orchestration.open_night(get_current_context())

    @task(doc_md="Lists the taps, those without a pin too. By hand: `assay taps refresh`.")
    def list_rows(run: str) -> list[str]:
        from pipeline import orchestration

        return orchestration.list_rows(get_current_context(), run)

    @task(
        map_index_template="{{ tap }}",
        max_active_tis_per_dagrun=4,
        doc_md="Reads and parses one tap at its pin and at upstream's head. By hand: `assay taps refresh`.",
    )
    def read_heads(run: str, tap: str) -> str:
        from pipeline import orchestration

        get_current_context()["tap"] = tap  # type: ignore[typeddict-unknown-key]
        return orchestration.read_heads(get_current_context(), run, tap)

    @task(
        trigger_rule="all_done",
        doc_md="Keeps the proposal under `<store>/proposals/`, whatever became of single taps, and fails with them. "
        "By hand: `assay taps refresh`.",
    )
    def propose(run: str) -> str:
        from pipeline import orchestration

        return orchestration.propose(get_current_context(), run)

    run = open_run()
    read_heads.partial(run=run).expand(tap=list_rows(run)) >> propose(run)


refreshing = refresh_pins()
