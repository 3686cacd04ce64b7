"""New pins, proposed every week with what would move: wiring only. It changes nothing by itself and scores nothing."""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from airflow.sdk import (
    CronTriggerTimetable,
    ExceptionRetryPolicy,
    Param,
    RetryAction,
    RetryRule,
    dag,
    get_current_context,
    task,
)

# Bad input and a world that differs from the configuration do not mend by themselves; an outage does.
RETRY_OUTAGES_ONLY = ExceptionRetryPolicy(
    rules=[
        RetryRule(exception="pipeline.errors.BadInput", action=RetryAction.FAIL, reason="bad input"),
        RetryRule(exception="pipeline.errors.Unsound", action=RetryAction.FAIL, reason="not as configured"),
    ]
)


@dag(
    dag_id="refresh_pins",
    schedule=CronTriggerTimetable("47 4 * * 1", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=6),
    default_args={
        "retries": 3,
        "retry_delay": timedelta(minutes=5),
        "retry_exponential_backoff": True,
        "max_retry_delay": timedelta(hours=1),
        "retry_policy": RETRY_OUTAGES_ONLY,
        "execution_timeout": timedelta(hours=1),
    },
    params={
        "config": Param(
            os.environ.get("ASSAY_CONFIG", "config/assay.toml"),
            type="string",
            minLength=1,
            description="Configuration file; relative paths are relative to the project.",
        )
    },
    tags=["assay"],
    doc_md=__doc__,
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
