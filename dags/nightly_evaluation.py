"""The nightly evaluation: wiring only. Each task calls one stage of ``pipeline/stages.py``; ids pass, data never."""

from __future__ import annotations

from airflow.sdk import (
    Asset,
    CronTriggerTimetable,
    dag,
    get_current_context,
    task,
    teardown,
)
from assay_dags import SHARED, config_param

FEED = Asset(name="assay_feed", uri="x-assay://feed")


@dag(
    dag_id="nightly_evaluation",
    schedule=CronTriggerTimetable("17 2 * * *", timezone="UTC"),
    params={"config": config_param()},
    doc_md=__doc__,
    **SHARED,
)
def nightly_evaluation() -> None:
    """Evaluate every golden set over the pinned corpus. By hand: `assay run --config config/assay.toml`."""

    @task(doc_md="Names the night. By hand: `assay run` does so by itself.")
    def open_night() -> str:
        from pipeline import orchestration

        return orchestration.open_night(get_current_context())

    @task(doc_md="Lists the taps. By hand: `assay taps check`.")
    def list_taps(night: str) -> list[str]:
        from pipeline import orchestration

        return orchestration.list_taps(get_current_context(), night)

    @task(
        map_index_template="{{ tap }}",
        max_active_tis_per_dagrun=4,
        doc_md="Fetches, reads and parses one tap. By hand: `assay snapshot TAP`, then `assay catalog TAP`.",
    )
    def snapshot(night: str, tap: str) -> str:
        from pipeline import orchestration

        get_current_context()["tap"] = tap  # type: ignore[typeddict-unknown-key]
        return orchestration.snapshot(get_current_context(), night, tap)

    @task(doc_md="Puts the taps together; refuses a partial corpus. By hand: `assay classes`.")
    def corpus(night: str) -> str:
        from pipeline import orchestration

        return orchestration.corpus(get_current_context(), night)

    @task(doc_md="Groups entries into content classes. By hand: `assay classes`.")
    def classes(night: str) -> str:
        from pipeline import orchestration

        return orchestration.classes(get_current_context(), night)

    @task(doc_md="Cuts the bodies into shards by the first digits of their digests. By hand: `assay classes`.")
    def list_shards(night: str) -> list[int]:
        from pipeline import orchestration

        return orchestration.list_shards(get_current_context(), night)

    @task(
        map_index_template="{{ shard }}",
        max_active_tis_per_dagrun=4,
        doc_md="Signs the new bodies of one shard for the search for near-duplicates. By hand: `assay classes`.",
    )
    def signatures(night: str, shard: int) -> int:
        from pipeline import orchestration

        get_current_context()["shard"] = shard  # type: ignore[typeddict-unknown-key]
        return orchestration.signatures(get_current_context(), night, shard)

    @task(doc_md="Joins near-duplicate bodies, and tells template families. By hand: `assay classes`.")
    def clusters(night: str) -> str:
        from pipeline import orchestration

        return orchestration.clusters(get_current_context(), night)

    @task(doc_md="Resolves every golden row against the corpus. By hand: `assay rank`.")
    def resolve(night: str) -> list[str]:
        from pipeline import orchestration

        return orchestration.resolve(get_current_context(), night)

    @task(
        map_index_template="{{ engine }}",
        doc_md="Indexes, ranks and scores every set with one engine. By hand: `assay rank --engine E`, `assay score`.",
    )
    def evaluate(night: str, engine: str) -> list[str]:
        from pipeline import orchestration

        get_current_context()["engine"] = engine  # type: ignore[typeddict-unknown-key]
        return orchestration.evaluate(get_current_context(), night, engine)

    @task(
        trigger_rule="none_failed",
        doc_md="Draws how scores fall as taps join those with the answers. By hand: `assay run`, or `assay study`.",
    )
    def falloff(night: str) -> list[str]:
        from pipeline import orchestration

        return orchestration.falloff(get_current_context(), night)

    @task(trigger_rule="none_failed", doc_md="Enters failures into the queue. By hand: `assay feedback fill`.")
    def feedback(night: str) -> None:
        from pipeline import orchestration

        orchestration.feedback(get_current_context(), night)

    # After the engines, since a night that fails here is one to look into, and their work is kept.
    @task(
        trigger_rule="none_failed",
        doc_md="Checks a sample with other packages, asks for names. By hand: `assay checks`.",
    )
    def checks(night: str) -> str:
        from pipeline import orchestration

        return orchestration.checks(get_current_context(), night)

    # Not skipped where no engine can run: the run is published all the same, and says why.
    @task(trigger_rule="none_failed", outlets=[FEED], doc_md="Publishes the run and its report. By hand: `assay run`.")
    def publish(night: str) -> str:
        from pipeline import orchestration

        return orchestration.publish(get_current_context(), night)

    @teardown
    @task(doc_md="Writes the night into the feed, whatever came out. By hand: `assay run` does so by itself.")
    def close_night(night: str) -> None:
        from pipeline import orchestration

        orchestration.close_night(get_current_context(), night)

    night = open_night()
    taken = snapshot.partial(night=night).expand(tap=list_taps(night))
    whole = corpus(night)
    grouped = classes(night)
    shards = list_shards(night)
    signed = signatures.partial(night=night).expand(shard=shards)
    joined = clusters(night)
    engines = resolve(night)
    scored = evaluate.partial(night=night).expand(engine=engines)
    fallen = falloff(night)
    queued = feedback(night)
    checked = checks(night)
    published = publish(night)
    taken >> whole >> grouped >> engines
    whole >> shards
    signed >> joined >> engines
    scored >> fallen >> checked >> queued >> published >> close_night(night)


nightly = nightly_evaluation()
