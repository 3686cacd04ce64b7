"""The corpus-growth study, every week and by hand with parameters: wiring only. It moves no run and no pin."""

from __future__ import annotations

from airflow.sdk import (
    CronTriggerTimetable,
    Param,
    dag,
    get_current_context,
    task,
    teardown,
)
from assay_dags import SHARED, config_param

BY = ["random", "date", "size", "harm", "entries"]
NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True}


@dag(
    dag_id="corpus_growth",
    schedule=CronTriggerTimetable("17 5 * * 6", timezone="UTC"),
    params={
        "config": config_param(),
        "by": Param(
            BY,
            type="array",
            items={"enum": BY},
            minItems=1,
            uniqueItems=True,
            description="In what orders the catalogue grows: random, date, size, harm, or entries.",
        ),
        "include": Param([], **NAMES, description="Taps that join the targets; all where none is named."),
        "exclude": Param([], **NAMES, description="Taps that do not join."),
        "engines": Param([], **NAMES, description="Engines; all that run where none is named."),
        "golden": Param(
            [], **NAMES, description="Golden sets, files or folders; the configuration's where none is named."
        ),
        "orders": Param(
            None, type=["null", "integer"], minimum=1, maximum=1000, description="Drawn orders; null: as configured."
        ),
        "sizes": Param(
            None, type=["null", "integer"], minimum=2, maximum=1000, description="Sizes; null: as configured."
        ),
        "seed": Param(
            0, type="integer", minimum=0, maximum=2**32 - 1, description="First seed of drawn orders, and of the draws."
        ),
        "step": Param(0, type="integer", minimum=0, description="Entries between two sizes; 0: by number or list."),
        "at": Param(
            [],
            type="array",
            items={"type": "integer", "minimum": 1},
            uniqueItems=True,
            description="The sizes themselves; empty: by number or step.",
        ),
        "statistics": Param(
            "subset",
            type="string",
            enum=["subset", "global"],
            description="What the weights of words are taken from: each subset, or the whole corpus: global.",
        ),
        "candidate": Param(
            None,
            type=["null", "string"],
            pattern=".+@[0-9a-f]{40}([0-9a-f]{24})?$",
            description="A tap as URL@PIN: what it would change is forecast too.",
        ),
        "candidate_name": Param(
            None,
            type=["null", "string"],
            pattern="^[A-Za-z0-9_][A-Za-z0-9._-]*/[A-Za-z0-9._-]+$",
            description="What the candidate would be called, as owner/repo; null: the end of its URL.",
        ),
    },
    doc_md=__doc__,
    **SHARED,
)
def corpus_growth() -> None:
    """Study how scores fall as the catalogue grows. By hand: `assay study --config config/assay.toml`."""

    @task(doc_md="Names the run. By hand: `assay study` does so by itself.")
    def open_run() -> str:
        from pipeline import orchestration

        return orchestration.open_night(get_current_context())

    @task(doc_md="Reads, groups and indexes what takes part; lists the kinds of orders. By hand: `assay study`.")
    def prepare(run: str) -> list[str]:
        from pipeline import orchestration

        return orchestration.prepare_study(get_current_context(), run)

    @task(
        map_index_template="{{ by }}",
        max_active_tis_per_dagrun=2,
        doc_md="Draws the curves of every set in orders of one kind. By hand: `assay study --by BY`.",
    )
    def draw(run: str, by: str) -> str:
        from pipeline import orchestration

        get_current_context()["by"] = by  # type: ignore[typeddict-unknown-key]
        return orchestration.draw_curves(get_current_context(), run, by)

    @task(doc_md="Publishes the study, its tables, page and charts. By hand: `assay study`.")
    def publish(run: str) -> str:
        from pipeline import orchestration

        return orchestration.publish_study(get_current_context(), run)

    @task(doc_md="Says what the candidate would change, where one is given. By hand: `assay forecast URL@PIN`.")
    def forecast(run: str) -> str | None:
        from pipeline import orchestration

        return orchestration.forecast_candidate(get_current_context(), run)

    @teardown
    @task(doc_md="Drops the notes of the run. By hand: `assay study` does so by itself.")
    def close_run(run: str) -> None:
        from pipeline import orchestration

        orchestration.drop_night(get_current_context(), run)

    run = open_run()
    drawn = draw.partial(run=run).expand(by=prepare(run))
    published = publish(run)
    drawn >> published >> close_run(run)
    forecast(run) >> published


growing = corpus_growth()
