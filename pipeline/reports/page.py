"""The page of a run: one HTML file without a script, made from the feed's tables alone.

Whatever comes from registries is hostile. Every text that the template prints is escaped and has its control
characters written out, and the page's policy lets a browser run nothing and ask for nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from pipeline.reports.answering import answers
from pipeline.reports.charts import brief, visible
from pipeline.reports.duplication import Duplication, first_of_each_side
from pipeline.reports.failures import failures, misses_of_users, unanswerable
from pipeline.reports.feed import NearDuplicateFacts, StudyRow
from pipeline.reports.figures import Figure, engines_of, figures
from pipeline.reports.grading import trust
from pipeline.reports.growth import Growth, growth
from pipeline.reports.judged import SOURCES, judged, ready
from pipeline.reports.reading import (
    GRADINGS,
    HEADLINE,
    NOTHING,
    Cell,
    Cut,
    Feed,
    Row,
    cell_of,
    count_of,
    counted,
    figure_id,
    names_of,
    number_of,
    records_of,
    rows_of,
    text_of,
    told_of_both,
)
from pipeline.reports.reading import metric_id as metric_id
from pipeline.store import canonical_json

if TYPE_CHECKING:
    import jinja2
    import pyarrow as pa

MOST_ROWS = 15
MOST_WORDS = 80
MOST_TAPS = 200
MOST_PAIRS = 8
"""Pairs that are shown on each side of the threshold."""


class Page(NamedTuple):
    """A run, to be read by people."""

    html: bytes
    """The whole page, UTF-8. It holds its charts and needs no other file."""
    images: dict[str, bytes]
    """The charts once more, as PNG, and those of falloff as SVG too, by file name."""


class Both(NamedTuple):
    """A headline measure, and what it is with near copies joined."""

    exact: Cell
    near: Cell | None
    """None where the feed does not have it."""


class Measures(NamedTuple):
    """The headline measures of one engine on one golden set."""

    golden_set: str
    engine: str
    sentence: str
    of_both: str
    """What both gradings come to over the items that count under both; empty where these are all."""
    ids: tuple[tuple[str, str], ...]
    """The measures that the sentence is made from, each with its id; empty where it was not computed."""
    label: str
    anchor: str
    gradings: tuple[str, ...]
    rows: list[tuple[str, list[Both]]]


def render(tables: Mapping[str, pa.Table]) -> Page:
    """Make the page of a run from its tables of the feed. The same tables give the same bytes, whatever their order.

    Raises:
        MissingArtifact: one of ``TABLES`` is not there.
    """
    feed = Feed(tables)
    duplication = Duplication(tables)
    drawn = figures(feed, duplication)
    fallen = _growth(feed, tables)
    measures = _measures(feed)
    answered = answers(tables, {text_of(item, "query_id"): text_of(item, "question") for item in feed.items})
    html = _template().render(
        run=feed.run,
        first=First(),
        example=next((id for each in measures for _, cells in each.rows for id in [cells[0].exact.id] if id), ""),
        short=text_of(feed.run, "run_id")[:12],
        counts=_counts(feed),
        measures=measures,
        compared=_side_by_side(feed),
        headline=HEADLINE,
        not_run=[
            (text_of(row, "engine"), text_of(row, "reason"))
            for row in records_of(feed.run, "engines")
            if row["status"] == "not run"
        ],
        figures=drawn,
        growth=fallen,
        trust=trust(feed),
        checks=[_checked(row) for row in feed.checks],
        known_items=[_known_items(row) for row in feed.known_items],
        near=_near(feed, duplication),
        failures=failures(feed, tables),
        misses_of_users=misses_of_users(tables),
        ledger_position=json.loads(str(feed.run["configuration"])).get("qrels_position", 0),
        answers=answered,
        judged=judged(tables),
        sources=[*SOURCES.values()],
        ready=ready(tables),
        unscored=_unscored(feed),
        unanswerable=unanswerable(feed, tables),
        words=_unknown_words(feed),
        taps=Cut(feed.taps[:MOST_TAPS], max(0, len(feed.taps) - MOST_TAPS)),
        homonyms=_homonyms(feed),
        classes=_largest_classes(feed),
        options=_options(str(feed.run["configuration"])),
        engines=[_engine(row) for row in records_of(feed.run, "engines")],
    )
    of_answers = [] if answered.figure is None else [answered.figure]
    images = {
        f"{figure.name}.png": figure.drawing.png for figure in [*drawn, *of_answers] if figure.drawing is not None
    }
    return Page(html=html.encode("utf-8"), images=images | curve_images(fallen.figures))


def curve_images(figures: Sequence[Figure]) -> dict[str, bytes]:
    """Return the charts of falloff by file name: as PNG, and as SVG for print."""
    images = {}
    for figure in figures:
        if figure.drawing is not None:
            images[f"{figure.name}.png"] = figure.drawing.png
            images[f"{figure.name}.svg"] = figure.drawing.wide.encode("utf-8")
    return images


def _growth(feed: Feed, tables: Mapping[str, pa.Table]) -> Growth:
    questions = {text_of(item, "query_id"): text_of(item, "question") for item in feed.items}
    headline = {pair: number_of(feed.metric(*pair, "row", "recall@10"), "value") for pair in feed.evaluated}
    return growth(tables, questions, headline, engines_of(feed))


def render_study(study: StudyRow, tables: Mapping[str, pa.Table], questions: Mapping[str, str]) -> Page:
    """Make the page of a corpus-growth study from its tables. The same tables give the same bytes."""
    fallen = growth(tables, questions, {}, study.engines)
    html = _template("study.html.j2").render(
        study=study,
        short=study.study_id[:12],
        first=First(),
        growth=fallen,
        counts=[(name, getattr(study, name)) for name in ("taps", "entries", "classes")]
        + [("golden items", sum(golden.items for golden in study.golden_sets)), ("engines", len(study.engines))],
        options=_options(study.configuration),
    )
    return Page(html=html.encode("utf-8"), images=curve_images(fallen.figures))


class First:
    """Tells whether something is met for the first time."""

    def __init__(self) -> None:
        self._met: set[str] = set()

    def __call__(self, id: str) -> bool:
        """Return whether ``id`` was not met before."""
        new = id not in self._met
        self._met.add(id)
        return new


class Checked(NamedTuple):
    """What was held against another package."""

    check: str
    subject: str
    peer: str
    detail: str
    worst: str
    tolerance: str
    outcome: str


def _checked(row: Row) -> Checked:
    worst = number_of(row, "worst_difference")
    return Checked(
        check=text_of(row, "check"),
        subject=text_of(row, "subject"),
        peer=text_of(row, "peer"),
        detail=text_of(row, "detail"),
        worst=NOTHING if worst is None else f"{worst:.1e}" if worst else "none",
        tolerance=f"{number_of(row, 'tolerance'):g}",
        outcome="nothing to compare" if row["passed"] is None else "passed" if row["passed"] else "failed",
    )


class KnownItems(NamedTuple):
    """How often an engine finds a content by its name."""

    id: str
    engine: str
    value: str
    interval: str
    label: str
    reason: str
    n: int
    ambiguous: int
    unambiguous: str
    misses: Cut


def _known_items(row: Row) -> KnownItems:
    value, clear, low, high = (number_of(row, name) for name in ("value", "value_unambiguous", "ci_low", "ci_high"))
    missed = [
        (text_of(miss, "name"), text_of(miss, "tap"), text_of(miss, "path_text"), _place(miss["rank"]))
        for miss in records_of(row, "misses")
    ]
    return KnownItems(
        id=figure_id("known_items", row),
        engine=text_of(row, "engine"),
        value=NOTHING if value is None else f"{value:.4f}",
        interval="" if low is None or high is None else f"{low:.2f}\N{EN DASH}{high:.2f}",
        label=text_of(row, "label"),
        reason=text_of(row, "reason") if value is None else "",
        n=count_of(row, "n"),
        ambiguous=count_of(row, "n_ambiguous"),
        unambiguous=NOTHING if clear is None else f"{clear:.4f}",
        misses=Cut(missed[:MOST_ROWS], max(0, len(missed) - MOST_ROWS)),
    )


def _place(rank: object) -> str:
    return "not ranked" if rank is None else f"rank {rank}"


def _counts(feed: Feed) -> list[tuple[str, str]]:
    items = sum(count_of(golden_set, "items") for golden_set in records_of(feed.run, "golden_sets"))
    corpus = [(name, count_of(feed.run, name)) for name in ("taps", "entries", "classes")]
    engines = records_of(feed.run, "engines")
    ran = sum(engine["status"] == "ok" for engine in engines)
    of_all = f"{ran:,}" if ran == len(engines) else f"{ran:,} of {len(engines):,}"
    return [*((name, f"{count:,}") for name, count in [*corpus, ("golden items", items)]), ("engines", of_all)]


class Compared(NamedTuple):
    """The headline measures of an engine, as pinned, in the table of all engines."""

    golden_set: str
    engine: str
    cells: list[Cell]
    """One a headline measure."""
    reason: str
    """Why it did not run; empty where it did."""


def _side_by_side(feed: Feed) -> list[Compared]:
    """Return a row for each set and engine; nothing where there is only one engine."""
    engines = records_of(feed.run, "engines")
    if len(engines) < 2:
        return []
    absent = {text_of(row, "engine"): text_of(row, "reason") for row in engines if row["status"] == "not run"}
    scored = [
        Compared(name, engine, [cell_of(feed.metric(name, engine, "row", metric)) for metric in HEADLINE], "")
        for name, engine in feed.evaluated
    ]
    return scored + [Compared("", engine, [], reason) for engine, reason in sorted(absent.items())]


# --- measures --------------------------------------------------------------------------------------------------------


def _measures(feed: Feed) -> list[Measures]:
    return [
        Measures(
            golden_set=golden_set,
            engine=engine,
            sentence=_sentence(feed, golden_set, engine),
            of_both=_of_both(feed, golden_set, engine),
            ids=tuple(
                (metric, cell_of(feed.metric(golden_set, engine, "row", metric)).id) for metric in ("hit@10", "hit@1")
            ),
            label=text_of(feed.metric(golden_set, engine, "row", "hit@10") or {"label": "no items"}, "label"),
            anchor=f"failures-{place}",
            gradings=tuple(GRADINGS[grading] for grading in feed.gradings),
            rows=[
                (metric, [_both_of(feed, golden_set, engine, grading, metric) for grading in feed.gradings])
                for metric in HEADLINE
            ],
        )
        for place, (golden_set, engine) in enumerate(feed.evaluated, 1)
    ]


def _both_of(feed: Feed, golden_set: str, engine: str, grading: str, metric: str) -> Both:
    near = feed.near_metrics.get((golden_set, engine, grading, metric))
    exact = cell_of(feed.metric(golden_set, engine, grading, metric))
    return Both(exact, None if near is None else cell_of(near))


def _sentence(feed: Feed, golden_set: str, engine: str) -> str:
    scored = sum(bool(item["scored"]) for item in feed.items_of(golden_set, engine))
    ten, one = (number_of(feed.metric(golden_set, engine, "row", metric), "value") for metric in ("hit@10", "hit@1"))
    if ten is None or one is None:
        row = feed.metric(golden_set, engine, "row", "hit@10")
        reason = "not computed" if row is None else text_of(row, "reason") or "no reason given"
        return f"No share of questions can be given: {reason}."
    return (
        f"Of {scored:,} answerable questions, {ten:.0%} find a right skill in the first ten, "
        f"and {one:.0%} have it in first place."
    )


def _of_both(feed: Feed, golden_set: str, engine: str) -> str:
    of: dict[str, dict[str, Row]] = {"row": {}, "name": {}}
    for item in feed.items:
        if (item["golden_set"], item["engine"]) == (golden_set, engine) and item["scored"]:
            of[text_of(item, "grading")][text_of(item, "query_id")] = item
    both = sorted({*of["row"]} & {*of["name"]})
    if not both or {*of["row"]} == {*of["name"]}:
        return ""
    values = [{metric: _mean_of(metric, [rows[one] for one in both]) for metric in HEADLINE} for rows in of.values()]
    return told_of_both(len(both), values[0], values[1])


def _mean_of(metric: str, items: Sequence[Row]) -> float | None:
    values = [
        number_of(each, "value") for item in items for each in records_of(item, "metrics") if each["metric"] == metric
    ]
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _unscored(feed: Feed) -> list[tuple[str, str, str, int]]:
    """Count the items that are left out of the means, by set, engine and reason."""
    counts = Counter(
        (text_of(item, "golden_set"), text_of(item, "engine"), text_of(item, "reason") or "no reason given")
        for item in feed.items
        if item["grading"] == "row" and not item["scored"]
    )
    return [(*key, count) for key, count in sorted(counts.items())]


def _unknown_words(feed: Feed) -> Cut:
    """List the words of questions that no document holds, each with the number of questions that have it."""
    questions: dict[str, set[tuple[str, str]]] = {}
    for item in feed.items:
        for word in names_of(item, "unknown_words"):
            questions.setdefault(word, set()).add((text_of(item, "golden_set"), text_of(item, "query_id")))
    ordered = sorted(((word, len(found)) for word, found in questions.items()), key=lambda pair: (-pair[1], pair[0]))
    return Cut(ordered[:MOST_WORDS], max(0, len(ordered) - MOST_WORDS))


# --- the corpus ------------------------------------------------------------------------------------------------------


class Homonym(NamedTuple):
    """A name that several classes carry."""

    slug: str
    classes: int
    entries: int
    taps: int


def _homonyms(feed: Feed) -> Cut:
    import pyarrow.compute as pc

    names = feed.entries.filter(pc.greater(feed.entries["homonyms"], 0)).group_by("slug")
    counted = names.aggregate([("class_id", "count_distinct"), ("path", "count"), ("tap", "count_distinct")])
    order = [("class_id_count_distinct", "descending"), ("path_count", "descending"), ("slug", "ascending")]
    rows = counted.sort_by(order).slice(0, MOST_ROWS).to_pylist()
    shown = [
        Homonym(row["slug"], row["class_id_count_distinct"], row["path_count"], row["tap_count_distinct"])
        for row in rows
    ]
    return Cut(shown, counted.num_rows - len(shown))


class LargeClass(NamedTuple):
    """A content class with many members."""

    class_id: str
    names: list[str]
    entries: int
    taps: int
    intra_tap: int
    cross_tap: int
    renamed: int
    first_tap: str
    first_path: str


def _largest_classes(feed: Feed) -> Cut:
    import pyarrow as pa
    import pyarrow.compute as pc

    several = feed.classes.filter(pc.greater(feed.classes["entries"], 1))
    rows = rows_of(several.sort_by([("entries", "descending"), ("class_id", "ascending")]).slice(0, MOST_ROWS))
    wanted = pa.array([text_of(row, "class_id") for row in rows], type=pa.string())
    members = feed.entries.select(["class_id", "tap", "path", "path_text"])
    members = members.filter(pc.is_in(members["class_id"], value_set=wanted))
    by_class: dict[str, list[Row]] = {}
    for member in rows_of(members.sort_by([("tap", "ascending"), ("path", "ascending")])):
        by_class.setdefault(text_of(member, "class_id"), []).append(member)
    return Cut([_large_class(row, by_class[text_of(row, "class_id")]) for row in rows], several.num_rows - len(rows))


def _large_class(row: Row, members: list[Row]) -> LargeClass:
    return LargeClass(
        class_id=text_of(row, "class_id"),
        names=names_of(row, "names"),
        entries=count_of(row, "entries"),
        taps=len({member["tap"] for member in members}),
        intra_tap=count_of(row, "intra_tap_mirrors"),
        cross_tap=count_of(row, "cross_tap_mirrors"),
        renamed=count_of(row, "renamed_mirrors"),
        first_tap=text_of(members[0], "tap"),
        first_path=text_of(members[0], "path_text"),
    )


# --- near-duplicates -------------------------------------------------------------------------------------------------


class Second(NamedTuple):
    """A headline measure, and what it becomes when clusters of copies are taken for classes."""

    golden_set: str
    engine: str
    metric: str
    exact: str
    near: Cell
    moved: str


class Near(NamedTuple):
    """The near-duplicates of a run."""

    sentence: str
    threshold: str
    quality: list[tuple[str, str]]
    seconds: list[Second]
    clusters: Cut
    across: Cut
    families: Cut
    pairs: Cut
    golden_sentence: str
    names: Cut


def _near(feed: Feed, duplication: Duplication) -> Near:
    facts = NearDuplicateFacts.model_validate(feed.run["near_duplicates"])
    threshold = json.loads(str(feed.run["configuration"]))["near_threshold"]
    clusters, families, pairs = duplication.clusters(), duplication.families(), duplication.pairs()
    across, names = duplication.across_names(), [row for row in duplication.golden_names() if row.classes > 1]
    shown = list(first_of_each_side(pairs, MOST_PAIRS))
    return Near(
        sentence=_clusters_in_words(facts),
        threshold=str(threshold),
        quality=_quality(facts),
        seconds=_seconds(feed),
        clusters=_cut(clusters),
        across=_cut(across),
        families=_cut(families),
        pairs=Cut(shown, len(pairs) - len(shown)),
        golden_sentence=_golden_in_words(duplication),
        names=_cut(names),
    )


def _cut(rows: Sequence[object]) -> Cut:
    return Cut(rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS))


def _clusters_in_words(facts: NearDuplicateFacts) -> str:
    if not facts.clusters:
        return "No two bodies are nearly the same."
    return (
        f"{counted(facts.bodies, 'distinct body')} of {counted(facts.entries, 'entry')} form "
        f"{counted(facts.clusters, 'cluster')}: {facts.clusters_copies:,} read as copies of one skill, "
        f"{facts.clusters_family:,} as template families, {facts.clusters_vetoed:,} with names too alike to tell, or a "
        f"pair that a person refused; "
        f"{facts.clusters_chained:,} joined in part through others."
    )


def _quality(facts: NearDuplicateFacts) -> list[tuple[str, str]]:
    """Say how good the clusters and their candidates are, with what unverified candidates would make of them."""

    def share(value: float | None) -> str:
        return "no value: no such pair" if value is None else f"{value:.4f}"

    return [
        ("bodies compared", f"{facts.eligible:,}"),
        ("bodies in clusters, verified", f"{facts.bodies:,} in {counted(facts.clusters, 'cluster')}"),
        (
            "by the exact join over all pairs",
            f"{counted(facts.exact_bodies, 'body')}, {counted(facts.exact_pairs, 'pair')}",
        ),
        ("astray: in another cluster than by the exact join", f"{facts.astray:,}"),
        (
            "unverified: what candidates alone would join",
            f"{facts.unverified_bodies:,} in {counted(facts.unverified_clusters, 'cluster')}",
        ),
        ("recall of the candidates", share(facts.lsh_recall)),
        ("precision of the candidates", f"{share(facts.lsh_precision)}, of {facts.lsh_candidates:,}"),
    ]


def _seconds(feed: Feed) -> list[Second]:
    found = []
    for golden_set, engine in feed.evaluated:
        for metric in HEADLINE:
            row = feed.near_metrics.get((golden_set, engine, "row", metric))
            if row is not None:
                exact = cell_of(feed.metric(golden_set, engine, "row", metric)).value
                moved = f"{count_of(row, 'n_moved'):,} of {count_of(row, 'n_items'):,}"
                found.append(Second(golden_set, engine, metric, exact, cell_of(row), moved))
    return found


def _golden_in_words(duplication: Duplication) -> str:
    golden = duplication.golden()
    if not golden.names:
        return "No row of a golden set is answered by a name."
    return (
        f"Of {counted(golden.names, 'name')} that rows give as answers, {golden.ambiguous:,} stand for several "
        f"contents; {golden.ambiguous_apart:,} still do when near copies count as one. "
        f"{counted(golden.entries, 'entry')} carry one of them, of {golden.classes:,} contents, "
        f"{golden.apart:,} when near copies count as one."
    )


# --- provenance ------------------------------------------------------------------------------------------------------


class EngineFacts(NamedTuple):
    """What an engine is made of."""

    engine: str
    fingerprint: str
    """Empty where it did not run."""
    reason: str
    options: str
    made_of: list[tuple[str, str]]
    """Versions and digests by what they are of."""


def _engine(row: Row) -> EngineFacts:
    made_of = row.get("made_of")  # not there in a feed of an earlier release
    return EngineFacts(
        engine=text_of(row, "engine"),
        fingerprint=text_of(row, "fingerprint"),
        reason=text_of(row, "reason"),
        options=text_of(row, "options"),
        made_of=list(_flat(json.loads(made_of))) if isinstance(made_of, str) else [],
    )


def _flat(value: JsonValue, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of nested objects, each with the names that lead to it."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(part, f"{name} {key}".replace("_", " ").strip().removeprefix("inputs "))
    else:
        yield name, value if isinstance(value, str) else canonical_json(value)


_ABOVE = {"corpus", "engines", "options", "golden", "stages"}
"""Parts of the configuration that rows of their own show."""
_CALLED = {
    "abstain_by": "signal that decides whether to answer",
    "cluster_decisions": "decisions about clusters",
    "concepts": "concepts",
    "judge": "judge whose judgments count",
    "max_file_bytes": "largest file that is read",
    "near_threshold": "near-duplicates from a similarity of",
    "not_run": "engines that did not run",
    "qrels_position": "position of the ledger",
    "roles": "roles of taps",
}
"""What the page calls parts of the configuration; the others by their own names."""


def _options(configuration: str) -> list[tuple[str, str]]:
    """List what else of a run's configuration, a JSON object, can change a result, in words and uncut."""
    options: dict[str, JsonValue] = json.loads(configuration)
    return [
        (_CALLED.get(name, name.replace("_", " ")), _in_words(name, value))
        for name, value in sorted(options.items())
        if name not in _ABOVE
    ]


def _in_words(name: str, value: JsonValue) -> str:
    if name == "roles" and isinstance(value, dict):
        roles: dict[str, list[str]] = {}
        for tap, role in value.items():
            roles.setdefault(str(role), []).append(tap)
        return "; ".join(f"{role}: {', '.join(sorted(taps))}" for role, taps in sorted(roles.items()))
    if name == "qrels_position":
        return f"{value}" if value else "0: nothing was read from it"
    if name == "judge":
        return ", prompt ".join(map(str, value)) if isinstance(value, list) else "none: those of models count nowhere"
    if name == "max_file_bytes" and isinstance(value, int):
        return f"{value:,} bytes"
    if isinstance(value, dict):
        return "; ".join(f"{part} {said}" for part, said in _flat(value)) or "none"
    return value if isinstance(value, str) else canonical_json(value)


# --- the template ----------------------------------------------------------------------------------------------------


def _template(name: str = "page.html.j2") -> jinja2.Template:
    """Load a page's template, in which nothing can be printed unescaped or with a control character in it."""
    import jinja2
    import markupsafe

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pipeline", "reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["brief"] = brief
    environment.filters["counted"] = counted
    environment.filters["drawing"] = markupsafe.Markup
    environment.filters["source_hash"] = _source_hash
    return environment.get_template(name)


def _printed(value: object) -> object:
    """Return ``value`` as the template prints it; markup is what this package made, everything else is made visible.

    Raises:
        ValueError: the value is null. A page says why a value is missing; it never prints «None».
    """
    if value is None:
        raise ValueError("a null was about to be printed on the page")
    return value if hasattr(value, "__html__") else visible(str(value))


def _source_hash(source: str) -> str:
    """Return the hash by which a content security policy allows the inline style ``source``."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")
