"""The command ``assay``: the same stages as the DAG, for cron, for CI and for repeating one step by hand."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

from pipeline import __version__, stages
from pipeline.config import PATHS, Absent, ClassRule, Config, Overrides, load, variable_of
from pipeline.duplicates import Section, check_exact
from pipeline.duplicates import decide as decide_cluster
from pipeline.duplicates import duplicates as find_duplicates
from pipeline.duplicates import group as find_group
from pipeline.errors import BadInput, Fault, Unsound
from pipeline.explain import explain as find_explanation
from pipeline.export import export as write_export
from pipeline.falloff import Statistics
from pipeline.feedback.queue import State
from pipeline.forecast import forecast as make_forecast
from pipeline.golden.decisions import DecisionReason
from pipeline.importing import import_taps
from pipeline.jsonlines import no_text
from pipeline.refresh import refresh
from pipeline.relock import relock
from pipeline.reports.feed import Night, NightRow
from pipeline.reports.reading import counted
from pipeline.scoring import Signal
from pipeline.study import By as OrderedBy
from pipeline.study import StudyOptions
from pipeline.study import study as make_study
from pipeline.taps.snapshot import verdict
from pipeline.terminal import (
    Watch,
    as_json,
    err,
    not_run_as_json,
    out,
    show_checks,
    show_choice,
    show_duplicates,
    show_exact,
    show_explained,
    show_forecast,
    show_group,
    show_headline,
    show_line,
    show_night,
    show_not_run,
    show_proposal,
    show_readiness,
    show_rows,
    show_study,
    show_taps,
    tell_awaited,
    told_in_lines,
)
from pipeline.workspace import Workspace, now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from pipeline.feedback.queue import Entered
    from pipeline.golden.items import GoldenSet
    from pipeline.store import Artifact
    from pipeline.taps.taplist import Tap

app = App(
    name="assay",
    version=__version__,
    help="Measure retrieval over registries of agent skills, so that the number can be trusted.",
    help_epilogue=(
        "Exit codes: 0 done; 1 drift, a missing pin, a tap that is gone or invalid, a check that fails, or a fault of "
        "Assay itself; 2 bad input; 75 an outage, try again later; 130 stopped by Ctrl-C."
    ),
)
taps_app = App(name="taps", help="Check and maintain the tap list.")
app.command(taps_app)
golden_app = App(name="golden", help="Golden sets: their digest, and the items that the ledger keeps.")
app.command(golden_app)
concepts_app = App(name="concepts", help="Concepts that the ledger keeps, beside those of a file.")
app.command(concepts_app)
qrels_app = App(name="qrels", help="Judgments: what is relevant to a question, and who says so.")
app.command(qrels_app)
feedback_app = App(name="feedback", help="Failures, and how they become permanent tests.")
app.command(feedback_app)


def _help(option: str) -> Parameter:
    """Say what an option does, its key in the configuration file, its variable, and its default."""
    field = Config.model_fields[option]
    default = ", ".join(field.default) if isinstance(field.default, list) else field.default
    beside = " beside the file" if option in PATHS and default else ""
    names = f"[key: {option}; env: {variable_of(option)}; default: {'none' if default is None else default}{beside}]"
    return Parameter(help=f"{field.description} {names}", negative=())


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """Options of every command. The command line goes before the environment, and that before the file."""

    # Paths are text here: as a path, one that is empty would be the current folder.
    config: Annotated[
        str | None, Parameter(help="Configuration file. [env: ASSAY_CONFIG; default: config/assay.toml]")
    ] = None
    store: Annotated[str | None, _help("store")] = None
    taps: Annotated[str | None, _help("taps")] = None
    golden: Annotated[tuple[str, ...] | None, _help("golden")] = None
    class_rule: Annotated[ClassRule | None, _help("class_rule")] = None
    cluster_decisions: Annotated[str | None, _help("cluster_decisions")] = None
    concepts: Annotated[str | None, _help("concepts")] = None
    as_of: Annotated[int | None, _help("as_of")] = None
    judge_model: Annotated[str | None, _help("judge_model")] = None
    judge_prompt_version: Annotated[str | None, _help("judge_prompt_version")] = None
    near_threshold: Annotated[float | None, _help("near_threshold")] = None
    orders: Annotated[int | None, _help("orders")] = None
    sizes: Annotated[int | None, _help("sizes")] = None
    abstain_by: Annotated[Signal | None, _help("abstain_by")] = None
    max_file_bytes: Annotated[int | None, _help("max_file_bytes")] = None
    engines: Annotated[
        dict[str, dict[str, str]] | None,
        Parameter(
            help="One option of one engine, such as --engines.bm25.tokenizer ascii. "
            "[key: engines.bm25.tokenizer; env: ASSAY_ENGINES_BM25_TOKENIZER; default: bm25 with its defaults]",
            negative=(),
        ),
    ] = None
    floors: Annotated[
        dict[str, dict[str, float]] | None,
        Parameter(
            help="A floor of one measure of one engine, such as --floors.bm25.recall@10 0.3; the falloff curve tells "
            "at what size it is crossed. In the environment a TOML table, such as { bm25 = { 'recall@10' = 0.3 } }. "
            "[key: floors; env: ASSAY_FLOORS; default: none]",
            negative=(),
        ),
    ] = None
    ledger: Annotated[str | None, _help("ledger")] = None
    threads: Annotated[int | None, _help("threads")] = None
    fetch_seconds: Annotated[int | None, _help("fetch_seconds")] = None
    json: Annotated[bool, Parameter(help="Print machine-readable output.", negative=())] = False
    debug: Annotated[bool, Parameter(help="Show a traceback when something fails.", negative=())] = False

    def overrides(self) -> Overrides:
        """Return the options that steer the configuration."""
        values = asdict(self)
        del values["json"], values["debug"]
        return Overrides(**values)


@contextmanager
def _opened(options: Options, *, with_files: bool = False) -> Iterator[Workspace]:
    settings = load(options.overrides(), with_files=with_files)
    tell_awaited(settings.awaited_ledger)
    night = Night(settings.store, Night.new_id(now()))
    try:
        with Watch(quiet=options.json) as watch:
            yield Workspace(settings, night, watch)
    finally:
        night.drop()  # what a whole run did is in the feed by now; a single step is no night


def _print(options: Options, machine: object, people: Callable[[], None]) -> None:
    if options.json:
        print(json.dumps(machine, ensure_ascii=False, indent=1, sort_keys=True))
    else:
        people()


@app.command
def run(*, options: Options = Options()) -> None:
    """Run the nightly evaluation in this process: from pins to a published report.

    Example: assay run --taps config/taps.toml --golden config/golden
    """
    started = now()
    with _opened(options, with_files=True) as workspace:
        try:
            published = stages.run(workspace)
        except BaseException as error:
            workspace.night.failed(error)
            night = workspace.night.close(started, now())
            _show_taps_unless_ok(options, night)
            raise
        night = workspace.night.close(started, now())
    _print(options, as_json(published, night), lambda: show_night(published, night))


def _show_taps_unless_ok(options: Options, night: NightRow) -> None:
    if any(state.state != "ok" for state in night.taps):
        machine = {"night": night.night, "taps": [state.model_dump() for state in night.taps]}
        _print(options, machine, lambda: show_taps(night.taps, err))


@app.command
def snapshot(
    tap: Annotated[str | None, Parameter(help="One tap; all unless named.")] = None, *, options: Options = Options()
) -> None:
    """Read taps at their pins, from the store or by git.

    Example: assay snapshot acme/skills
    """
    with _opened(options) as workspace:
        states = [stages.snapshot(workspace, row) for row in _taps(workspace, tap)]
    _print(options, {"taps": [state.model_dump() for state in states]}, lambda: show_taps(states))
    verdict(states)


@app.command
def catalog(
    tap: Annotated[str | None, Parameter(help="One tap; all unless named.")] = None, *, options: Options = Options()
) -> None:
    """Parse the files of taps into entries.

    Example: assay catalog acme/skills
    """
    with _opened(options) as workspace:
        made = [(row.name, stages.catalog(workspace, row)) for row in _taps(workspace, tap)]
    _print(
        options,
        {name: artifact.facts for name, artifact in made},
        lambda: show_rows(
            "Catalogues",
            ("tap", "entries", "classes", "skills", "rules", "workflows"),
            [[name, *(artifact.facts[column] for column in _CATALOG_COLUMNS)] for name, artifact in made],
        ),
    )


_CATALOG_COLUMNS = ("entries", "classes", "skills", "rules", "workflows")


def _taps(workspace: Workspace, name: str | None) -> Sequence[Tap]:
    taps = workspace.settings.tap_list()
    chosen = [tap for tap in taps.taps if name in (None, tap.name)]
    if not chosen:
        raise BadInput([Fault(str(taps.path), f"no tap is called {name!r}", "name one of the list as owner/repo")])
    return chosen


@app.command
def classes(*, options: Options = Options()) -> None:
    """Group the corpus's entries into content classes, and into near-duplicate clusters.

    Example: assay classes --class-rule entry
    """
    with _opened(options) as workspace:
        whole = stages.corpus(workspace)
        grouped = stages.classes(workspace, whole)
        stages.sign(workspace, whole)
        clustered = stages.clusters(workspace, whole)

    def people() -> None:
        show_rows("Content classes", ("fact", "value"), sorted(grouped.facts.items()))
        show_rows("Near-duplicates", ("fact", "value"), sorted(clustered.facts.items()))

    _print(options, {**grouped.facts, "near_duplicates": clustered.facts}, people)


@app.command
def rank(
    *,
    engine: Annotated[str | None, Parameter(help="One engine; all unless named.")] = None,
    options: Options = Options(),
) -> None:
    """Index the corpus and rank it for every question.

    Example: assay rank --engine bm25
    """

    def step(workspace: Workspace, name: str, at: stages.Place, golden: GoldenSet) -> Artifact:
        (made,) = stages.rank_sets(workspace, at.corpus, at.grouped, name, [golden])
        return made

    made, absent = _each_engine_and_set(options, engine, step)
    machine = [{"engine": name, "golden_set": golden, **artifact.facts} for name, golden, artifact in made]
    rows = [[name, golden, artifact.facts["queries"], artifact.facts["hits"]] for name, golden, artifact in made]

    def people() -> None:
        show_rows("Rankings", ("engine", "golden set", "queries", "hits"), rows)
        show_not_run(absent)

    _print(options, [*machine, *not_run_as_json(absent)], people)


@app.command
def score(
    *,
    engine: Annotated[str | None, Parameter(help="One engine; all unless named.")] = None,
    options: Options = Options(),
) -> None:
    """Score stored rankings against their golden sets.

    Example: assay score --engine bm25
    """

    def step(workspace: Workspace, name: str, at: stages.Place, golden: GoldenSet) -> Artifact:
        return stages.score(workspace, at.corpus, at.grouped, name, golden)

    made, absent = _each_engine_and_set(options, engine, step)
    headline = stages.headline_of([artifact for _, _, artifact in made])

    def people() -> None:
        show_headline(headline)
        show_not_run(absent)

    _print(options, [*(row.model_dump() for row in headline), *not_run_as_json(absent)], people)


def _each_engine_and_set(
    options: Options, engine: str | None, step: Callable[[Workspace, str, stages.Place, GoldenSet], Artifact]
) -> tuple[list[tuple[str, str, Artifact]], Absent | None]:
    """Take a step for the engine, or for all that can run; return what it made, and which of all cannot run."""
    with _opened(options) as workspace:
        at = stages.resolved_place(workspace)
        made = [
            (name, golden.name, step(workspace, name, at, golden))
            for name in _engines(workspace, engine)
            for golden in at.sets
        ]
        return made, workspace.settings.absent if engine is None else None


def _engines(workspace: Workspace, name: str | None) -> list[str]:
    configured = sorted(workspace.settings.engines)
    if name is not None and name not in configured:
        raise BadInput([Fault("--engine", f"{name!r} is not configured", f"choose among: {', '.join(configured)}")])
    if name is not None and name in workspace.settings.not_run:
        reason = workspace.settings.absent.told[name]
        raise BadInput([Fault("--engine", f"{name} is not run: {reason}", "mend that, or choose another")])
    return workspace.settings.running if name is None else [name]


@app.command
def checks(*, options: Options = Options()) -> None:
    """Hold a sample of the corpus's text against what other packages make of it, and ask engines for known items.

    Example: assay checks --json
    """
    with _opened(options) as workspace:
        made, asked = stages.check(workspace, stages.place(workspace))
        checked, known = stages.checks_of(made), stages.known_items_of(asked)
    machine = {
        "checks": [row.model_dump() for row in checked],
        "known_items": [row.model_dump(exclude={"misses"}) for row in known],
    }
    _print(options, machine, lambda: show_checks(checked, known))


@app.command
def study(
    *,
    by: Annotated[
        tuple[OrderedBy, ...],
        Parameter(
            help="In what orders the catalogue grows, given once or several times: taps at random, by the date of "
            "their pinned commit, by size, the worst confuser first; or single entries, which is another regime.",
            negative=(),
        ),
    ] = ("random",),
    include: Annotated[
        tuple[str, ...], Parameter(help="Taps that join the targets; all unless named.", negative=())
    ] = (),
    exclude: Annotated[tuple[str, ...], Parameter(help="Taps that do not join.", negative=())] = (),
    engine: Annotated[tuple[str, ...], Parameter(help="Engines; all that run unless named.", negative=())] = (),
    seed: Annotated[int, Parameter(help="First seed of drawn orders, and seed of the draws of clusters.")] = 0,
    step: Annotated[int, Parameter(help="Entries between two sizes, in place of --sizes.")] = 0,
    at: Annotated[
        tuple[int, ...],
        Parameter(help="A size, in place of --sizes; may be given several times. The ends are added.", negative=()),
    ] = (),
    statistics: Annotated[
        Statistics,
        Parameter(
            help="What the weights of words are taken from: each subset, as an index of it would have them, or in "
            "every subset the whole corpus: global."
        ),
    ] = "subset",
    options: Options = Options(),
) -> None:
    """Study how the scores fall as the catalogue grows: curves with bands, published with a page of their own.

    Example: assay study --orders 20 --sizes 12 --by random --by harm
    """
    asked = StudyOptions(by, include, exclude, engine, seed, step, at, statistics)
    with _opened(options) as workspace:
        studied = make_study(workspace, asked)
    machine = {
        **studied.row.model_dump(exclude={"configuration"}),
        "folder": str(studied.folder),
        "said": [each._asdict() for each in studied.growth.said],
        "not_drawn": list(studied.growth.not_drawn),
    }
    _print(options, machine, lambda: show_study(studied))


@app.command
def forecast(
    tap: Annotated[str, Parameter(name="URL@PIN", help="Repository, and full id of a commit: URL@PIN.")],
    *,
    name: Annotated[
        str | None, Parameter(help="What the tap would be called, as owner/repo; the end of its URL unless given.")
    ] = None,
    options: Options = Options(),
) -> None:
    """Say what a tap would do to the measures if it were admitted. The tap list stays as it is.

    Example: assay forecast ../new-registry.git@0123456789abcdef0123456789abcdef01234567
    """
    with _opened(options) as workspace:
        made = make_forecast(workspace, tap, name)
    machine = {
        "tap": made.tap.name,
        "pin": made.tap.pin,
        "file": None if made.path is None else str(made.path),
        "forecasts": [row.model_dump() for row in made.rows],
        "not_made": list(made.not_made),
    }
    _print(options, machine, lambda: show_forecast(made))


@app.command(name="worksheet")
def worksheet_of(
    golden_set: Annotated[str, Parameter(help="Name of the golden set: the stem of its file.")],
    *,
    pin_lookups: Annotated[
        bool,
        Parameter(help="Print the rows that a lookup pins, as lines for the file, instead.", negative=()),
    ] = False,
    options: Options = Options(),
) -> None:
    """List every candidate of every row that is graded by a name of several contents, to be judged by a person.

    Example: assay worksheet default
    """
    from pipeline.golden.worksheet import as_markdown
    from pipeline.worksheet import prepare

    with _opened(options) as workspace:
        prepared = prepare(workspace, golden_set)
    if pin_lookups:
        _print(options, [json.loads(line) for line in prepared.pins], lambda: print(*prepared.pins, sep="\n"))
    else:
        _print(options, prepared.sheet.model_dump(), lambda: print(as_markdown(prepared.sheet)))


def _text(kind: object, value: object) -> None:
    """Refuse words that are kept for ever and are no text: bytes that are no UTF-8, or none at all."""
    texts = value if isinstance(value, tuple) else () if value is None else (value,)
    if any(no_text(str(text)) for text in texts):
        raise ValueError("it is no text in UTF-8")


Text = Parameter(validator=_text)
By = Annotated[str, Text, Parameter(name="--by", help="Who does it, and answers for it.")]
SetName = Annotated[str, Parameter(name="SET", help="Name of the golden set: the stem of its file, or in the ledger.")]
Form = Annotated[Literal["jsonl", "trec"], Parameter(help="JSON Lines with every field, or TREC qrels.")]


@golden_app.command(name="freeze")
def golden_freeze(name: SetName, *, options: Options = Options()) -> None:
    """Show the digest of a golden set as it stands: what a run over it names.

    Example: assay golden freeze default
    """
    from pipeline.keeping import golden_set

    with _opened(options) as workspace:
        golden = golden_set(workspace, name)
    machine = {"golden_set": name, "digest": golden.digest, "items": len(golden.items), "superseded": golden.superseded}
    _print(options, machine, lambda: show_line(f"{name}@{golden.digest} {counted(len(golden.items), 'item')}"))


@golden_app.command(name="check")
def golden_check(name: SetName, *, options: Options = Options()) -> None:
    """Check every row of all golden sets against the corpus, and show what one set is good for.

    Example: assay golden check default
    """
    from pipeline.keeping import golden_set
    from pipeline.workspace import readiness_of

    with _opened(options) as workspace:
        at = stages.resolved_place(workspace)
        found = readiness_of(workspace, at.corpus, at.grouped, golden_set(workspace, name))
    _print(options, [row.model_dump() for row in found], lambda: show_readiness(name, found))


@golden_app.command(name="import")
def golden_import(
    name: SetName,
    file: Annotated[Path, Parameter(help="Rows as JSON Lines; names and values of CRAG are mapped.")],
    *,
    options: Options = Options(),
) -> None:
    """Add the rows of a file to a golden set that the ledger keeps. Doing it twice adds nothing.

    Example: assay golden import asked items.jsonl
    """
    from pipeline.curation import import_items

    with _opened(options) as workspace:
        done = import_items(workspace, name, file)
    said = f"{name}: {counted(done.added, 'row')} added, {done.known} were there already."
    _print(options, {"golden_set": name, **done._asdict()}, lambda: show_line(said))


@golden_app.command(name="export")
def golden_export(name: SetName, *, options: Options = Options()) -> None:
    """Print a golden set as JSON Lines, every version of every item.

    Example: assay golden export default
    """
    from pipeline.curation import exported_lines
    from pipeline.keeping import golden_set

    with _opened(options) as workspace:
        lines = exported_lines(golden_set(workspace, name))
    _print(options, [json.loads(line) for line in lines], lambda: print(*lines, sep="\n"))


@golden_app.command(name="decide")
def golden_decide(
    name: SetName,
    item: Annotated[str, Text, Parameter(name="QUERY_ID", help="Id of the item.")],
    target: Annotated[str, Text, Parameter(help="What is decided about: `tap::path`, or `class:<body digest>`.")],
    *,
    include: Annotated[bool, Parameter(negative="--exclude", help="Whether it counts as an answer.")],
    reason: Annotated[
        DecisionReason, Parameter(help="Why: `helps` includes, the others exclude, `other` does either.")
    ],
    by: By,
    note: Annotated[str | None, Text, Parameter(help="For people; needed where the reason is `other`.")] = None,
    options: Options = Options(),
) -> None:
    """Decide about a class for an item of a set that the ledger keeps. A later decision counts instead of this one.

    Example: assay golden decide asked c1 acme/skills::db/SKILL.md --exclude --reason different_job --by kim
    """
    from pipeline.curation import decide

    named = "class" if target.startswith("class:") else "entry"
    given: dict[str, JsonValue] = {named: target, "include": include, "reason": reason, "by": by, "note": note}
    with _opened(options) as workspace:
        golden = decide(workspace, name, item, given)
    said = f"{name}@{golden.digest}"
    _print(options, {"golden_set": name, "queryId": item, "digest": golden.digest}, lambda: show_line(said))


@concepts_app.command(name="import")
def concepts_import(
    file: Annotated[Path, Parameter(help="Concepts as JSON Lines: `conceptId`, `name`, `aliases`.")],
    *,
    options: Options = Options(),
) -> None:
    """Declare the concepts of a file in the ledger. A changed one becomes its next version; twice adds nothing.

    Example: assay concepts import concepts.jsonl
    """
    from pipeline.curation import import_concepts

    with _opened(options) as workspace:
        done = import_concepts(workspace, file)
    said = f"{counted(done.added, 'concept')} added, {done.known} were there already."
    _print(options, done._asdict(), lambda: show_line(said))


@concepts_app.command(name="export")
def concepts_export(*, options: Options = Options()) -> None:
    """Print the concepts that the ledger keeps as JSON Lines, each in its last version.

    Example: assay concepts export
    """
    from pipeline.curation import exported_concepts

    with _opened(options) as workspace:
        lines = exported_concepts(workspace)
    _print(options, [json.loads(line) for line in lines], lambda: print(*lines, sep="\n"))


@qrels_app.command(name="add")
def qrels_add(
    query: Annotated[str, Text, Parameter(name="QUERY_ID", help="Id of the item.")],
    target: Annotated[
        str, Text, Parameter(help="`tap::path`, or `class:` and the digits of its id; or `tap@<full pin>:path`.")
    ],
    grade: Annotated[int, Parameter(help="0 irrelevant, 1 marginal, 2 relevant, 3 perfectly relevant.")],
    *,
    annotator: Annotated[str, Text, Parameter(help="Who judges.")],
    rationale: Annotated[str | None, Text, Parameter(help="Why.")] = None,
    options: Options = Options(),
) -> None:
    """Append the judgment of a person. What he said before stays; the last counts.

    Example: assay qrels add access-set acme/skills::access/SKILL.md 3 --annotator kim
    """
    from pipeline.keeping import add_judgment

    given: dict[str, JsonValue] = {"queryId": query, "grade": grade, "source": "human"}
    with _opened(options) as workspace:
        qrel = add_judgment(workspace, target, given | {"annotator": annotator, "rationale": rationale})
    _print(options, qrel.model_dump(by_alias=True), lambda: show_line(f"{qrel.id}, number {qrel.seq}"))


@qrels_app.command(name="import")
def qrels_import(
    file: Annotated[Path, Parameter(help="The judgments.")],
    *,
    form: Form = "jsonl",
    annotator: Annotated[str | None, Text, Parameter(help="Who gave the grades of a TREC file.")] = None,
    options: Options = Options(),
) -> None:
    """Append the judgments of a file, all of them or, where one is wrong, none.

    Example: assay qrels import judged.qrels --form trec --annotator kim
    """
    from pipeline.keeping import import_judgments

    with _opened(options) as workspace:
        done = import_judgments(workspace, file, form, annotator)
    said = f"{counted(done.added, 'judgment')} added."
    if done.passed_over:
        said += f" {counted(done.passed_over, 'judgment')} passed over: golden sets say them each night."
    if done.unasked:
        said += f" No golden set asks, so that they count nowhere yet: {', '.join(done.unasked)}"
    _print(options, {**done._asdict()}, lambda: show_line(said))


@qrels_app.command(name="export")
def qrels_export(*, form: Form = "jsonl", options: Options = Options()) -> None:
    """Print the judgments: every row as JSON Lines, or one grade a question and content as TREC qrels.

    Example: assay qrels export --form trec
    """
    from pipeline.keeping import exported_judgments

    with _opened(options) as workspace:
        lines = exported_judgments(workspace, form)
    _print(options, {"form": form, "lines": lines}, lambda: print(*lines, sep="\n"))


@qrels_app.command(name="conflicts")
def qrels_conflicts(*, options: Options = Options()) -> None:
    """List where people, exemplars and the judge differ about a question and content, and which grade counts.

    Example: assay qrels conflicts
    """
    from pipeline.keeping import listed_conflicts

    with _opened(options) as workspace:
        found = listed_conflicts(workspace)
    rows = [
        (
            f"{row.golden_set} {row.query_id}",
            f"class:{row.class_id}",
            f"{row.grade} ({row.source})",
            *("" if grade is None else grade for grade in (row.human, row.provenance, row.llm)),
            ", ".join(f"{each.annotator} {each.grade}" for each in row.annotators),
        )
        for row in found
    ]
    columns = ("question", "content", "counts", "human", "provenance", "llm", "people")
    _print(options, [row.model_dump() for row in found], lambda: show_rows("Conflicts", columns, rows))


FailureId = Annotated[str, Parameter(name="ID", help="Id of the failure, or its last digits.")]


def _print_entered(options: Options, entered: Entered) -> None:
    machine = entered.model_dump(mode="json", by_alias=True)
    _print(options, machine, lambda: show_line(f"{entered.id} {entered.state}"))


@feedback_app.command(name="fill")
def feedback_fill(*, options: Options = Options()) -> None:
    """Enter the failures of the stored scores into the queue, as the night does.

    Example: assay feedback fill
    """
    with _opened(options) as workspace:
        at = stages.place(workspace)
        done = stages.feedback(workspace, at.corpus, at.grouped, at.sets)
    said = f"{counted(done.failures, 'failure')}, {done.new} of them new."
    _print(options, done._asdict(), lambda: show_line(said))


@feedback_app.command(name="list")
def feedback_list(
    *,
    state: Annotated[State | None, Parameter(help="What became of it; everything unless given.")] = None,
    options: Options = Options(),
) -> None:
    """List the failures of runs and the misses of users.

    Example: assay feedback list --state open
    """
    from pipeline.promotion import listed

    with _opened(options) as workspace:
        found = listed(workspace, state)
    rows = [
        [each.id, each.state, each.failure.failure_class, each.failure.engine or "–", each.failure.question]
        for each in found
    ]
    _print(
        options,
        [each.model_dump(mode="json", by_alias=True) for each in found],
        lambda: show_rows("Failures", ("id", "state", "kind", "engine", "question"), rows, whole=("id",)),
    )


@feedback_app.command(name="add")
def feedback_add(
    question: Annotated[str, Text, Parameter(help="What was asked.")],
    *,
    shown: Annotated[
        tuple[str, ...], Text, Parameter(help="What was shown, best first; may be given several times.")
    ] = (),
    wanted: Annotated[tuple[str, ...], Text, Parameter(help="What was wanted; may be given several times.")] = (),
    golden_set: Annotated[str | None, Text, Parameter(help="Its set; needed where there are several.")] = None,
    options: Options = Options(),
) -> None:
    """Enter what a user asked and did not get.

    Example: assay feedback add "squash my commits" --shown acme/skills::merge/SKILL.md --wanted rebase
    """
    from pipeline.promotion import add_miss

    with _opened(options) as workspace:
        entered = add_miss(workspace, question, shown, wanted, golden_set)
    _print_entered(options, entered)


@feedback_app.command(name="correct")
def feedback_correct(
    failure: FailureId,
    text: Annotated[str, Text, Parameter(help="The right answer in words.")],
    *,
    by: By,
    cite: Annotated[tuple[str, ...], Text, Parameter(help="Where it is: `tap::path` or `class:<body digest>`.")] = (),
    no_answer: Annotated[bool, Parameter(help="There is no answer in the corpus.", negative=())] = False,
    options: Options = Options(),
) -> None:
    """Say what should have been answered, and where it is.

    Example: assay feedback correct 4TQK9 "the interactive form" --cite acme/skills::git/SKILL.md --by kim
    """
    from pipeline.promotion import correct_failure

    with _opened(options) as workspace:
        entered = correct_failure(workspace, failure, text, cite, by, answerable=not no_answer)
    _print_entered(options, entered)


@feedback_app.command(name="reject")
def feedback_reject(
    failure: FailureId,
    why: Annotated[str, Text, Parameter(help="Why it is no failure.")],
    *,
    by: By,
    options: Options = Options(),
) -> None:
    """Say that a failure is none.

    Example: assay feedback reject 4TQK9 "both answers are right" --by kim
    """
    from pipeline.promotion import reject_failure

    with _opened(options) as workspace:
        entered = reject_failure(workspace, failure, by, why)
    _print_entered(options, entered)


@feedback_app.command(name="triage")
def feedback_triage(
    failure: FailureId,
    note: Annotated[str, Text, Parameter(help="What was found, or who goes on with it.")],
    *,
    by: By,
    options: Options = Options(),
) -> None:
    """Say that somebody looked at a failure; it waits for its correction.

    Example: assay feedback triage 4TQK9 "the author of the tap knows" --by kim
    """
    from pipeline.promotion import triage_failure

    with _opened(options) as workspace:
        entered = triage_failure(workspace, failure, by, note)
    _print_entered(options, entered)


@feedback_app.command(name="promote")
def feedback_promote(failure: FailureId, *, by: By, options: Options = Options()) -> None:
    """Make a permanent test of a corrected failure; the next night scores it. Doing it twice changes nothing.

    Example: assay feedback promote 4TQK9 --by kim
    """
    from pipeline.promotion import promote_failure

    with _opened(options) as workspace:
        done = promote_failure(workspace, failure, by)
    version = "repeats it: no item was made" if done.item_version is None else f"version {done.item_version}"
    said = f"{done.golden_set} {done.query_id}: {version}" + ("" if done.new else ", as before")
    _print(options, done._asdict(), lambda: show_line(said))


@taps_app.command(name="check")
def taps_check(*, options: Options = Options()) -> None:
    """Read every tap at its pin and hold its counts against its row; score nothing.

    Example: assay taps check --taps config/taps.toml
    """
    with _opened(options) as workspace:
        states = stages.read_taps(workspace, workspace.settings.tap_list().taps)
    _print(options, {"taps": [state.model_dump() for state in states]}, lambda: show_taps(states))
    verdict(states)


@taps_app.command(name="relock")
def taps_relock(
    *,
    options: Options = Options(),
    dry_run: Annotated[bool, Parameter(help="Show what would change, and write nothing.", negative=())] = False,
) -> None:
    """Measure the counts of the same pins again and write them into the tap list. No pin moves, nothing is scored.

    Example: assay taps relock --dry-run
    """
    with _opened(options) as workspace:
        changes = relock(workspace, write=not dry_run)
    rows = [
        [change.tap, change.field, "–" if change.before is None else change.before, change.after] for change in changes
    ]
    _print(
        options,
        [change._asdict() for change in changes],
        lambda: (
            show_rows("Would change" if dry_run else "Changed", ("tap", "count", "before", "after"), rows)
            if changes
            else out.print("Every count is as measured: nothing to change.")
        ),
    )


Run = Annotated[str | None, Parameter(help="First digits of a run's id; the run published last unless given.")]


@app.command
def explain(
    wanted: Annotated[
        str,
        Parameter(name="ID", help="Id of a number or a run, its first six digits at least; or a query id."),
    ],
    *,
    run: Annotated[
        str | None, Parameter(help="First digits of the run's id; the last published run unless given.")
    ] = None,
    hits: Annotated[int, Parameter(help="Hits that are shown of each ranking.")] = 10,
    options: Options = Options(),
) -> None:
    """Show what stands behind a number of the report, and the command that makes it again.

    Example: assay explain 1a2b3c4d --json
    """
    with _opened(options) as workspace:
        explained = find_explanation(workspace, wanted, run, hits)
    _print(options, explained.model_dump(), lambda: show_explained(explained))


@app.command(name="duplicates")
def duplicates_of(
    *,
    run: Run = None,
    by: Annotated[Section | None, Parameter(help="The one section to show; all unless named.")] = None,
    limit: Annotated[
        int | None,
        Parameter(help="Rows of each section, and pairs on each side; 15 unless given, all with --json."),
    ] = None,
    draw: Annotated[
        int | None, Parameter(help="Draw the pairs by this seed, in place of those nearest to the threshold.")
    ] = None,
    exact: Annotated[
        bool,
        Parameter(
            help="Join all pairs of bodies anew and hold the clusters against that; exit 1 where more than 0.2% of the "
            "bodies are astray.",
            negative=(),
        ),
    ] = False,
    cluster: Annotated[
        str | None,
        Parameter(
            help="One cluster or family, by the first digits of its id or an entry `tap::path` of it: its bodies, "
            "and the words in which every two of them differ."
        ),
    ] = None,
    decide: Annotated[
        str | None,
        Parameter(name="--decide", help="The same: print the lines that decide about it, for the decisions."),
    ] = None,
    options: Options = Options(),
) -> None:
    """Show what of a published run is a copy of what: by tap and name, families, clusters, pairs, golden names.

    Example: assay duplicates --by pairs --limit 5
    """
    if limit is not None and limit < 1:
        raise BadInput([Fault("--limit", f"{limit} is no number of rows", "give 1 or more")])
    with _opened(options) as workspace:
        if exact:
            check = check_exact(workspace, run)
            _print(options, check.model_dump(), lambda: show_exact(check))
            if not check.sound:
                what = f"{check.astray:,} of {check.compared:,} bodies are astray from the exact join"
                raise Unsound(f"run {check.run_id[:12]}: {what}; report it, with the run's tap list")
        elif cluster is not None:
            one = find_group(workspace, cluster, run, limit if limit is not None or options.json else _ROWS)
            _print(options, one.model_dump(), lambda: show_group(one))
        elif decide is not None:
            choice = decide_cluster(workspace, decide, run)
            _print(options, choice._asdict(), lambda: show_choice(choice))
        else:
            most = limit if limit is not None or options.json else _ROWS
            found = find_duplicates(workspace, run, by, most, draw)
            _print(options, found.model_dump(), lambda: show_duplicates(found))


_ROWS = 15


@app.command
def export(
    folder: Annotated[Path, Parameter(name="DIR", help="Folder to write to; other files in it are left alone.")],
    *,
    run: Annotated[
        str | None, Parameter(help="First digits of the run's id; the last published run unless given.")
    ] = None,
    header: Annotated[
        bool, Parameter(help="Begin run files with their ir_metadata, in comment lines.", negative=())
    ] = False,
    options: Options = Options(),
) -> None:
    """Write a published run as TREC files: rankings, qrels, and an ir_metadata file beside each ranking.

    Example: assay export build/trec --json
    """
    with _opened(options) as workspace:
        made = write_export(workspace, folder.absolute(), run, header)
    rows = [[file.name, file.queries, file.rows] for file in made.files]
    machine = {
        "run_id": made.run_id,
        "folder": str(folder.absolute()),
        "files": [{"name": file.name, "queries": file.queries, "lines": file.rows} for file in made.files],
    }
    _print(options, machine, lambda: show_rows(f"Run {made.run_id[:12]}", ("file", "queries", "lines"), rows))


@taps_app.command(name="refresh")
def taps_refresh(
    *,
    options: Options = Options(),
    write: Annotated[
        Path | None,
        Parameter(help="Write the list with the new pins: over itself, or into a new file beside it."),
    ] = None,
) -> None:
    """Propose the heads of upstream as new pins, and show what would move. Nothing is scored.

    It shows the entries that are born, gone, edited or moved, and the golden rows that would name nothing or other
    content, with the new place of their content. Without --write no file is changed, and a row whose head cannot be
    read keeps its pin.

    Example: assay taps refresh --write config/taps.toml
    """
    with _opened(options) as workspace:
        refreshed = refresh(workspace, write)
    written = None if refreshed.written is None else str(refreshed.written)
    _print(
        options,
        {**refreshed.proposal.model_dump(), "written": written},
        lambda: show_proposal(refreshed.proposal, written),
    )
    verdict(refreshed.states)


@taps_app.command(name="import")
def taps_import(
    file: Annotated[Path, Parameter(help="Text rows `owner/repo [sha [entries [distinct]]]`, or a marketplace.json.")],
    *,
    output: Annotated[Path, Parameter(help="The tap list to write.")] = Path("taps.toml"),
    force: Annotated[bool, Parameter(help="Replace the file that is there.", negative=())] = False,
    json: Annotated[bool, Parameter(help="Print machine-readable output.", negative=())] = False,
) -> None:
    """Make a tap list from text rows, or from the plugins of a marketplace that are pinned by a sha.

    Example: assay taps import .claude-plugin/marketplace.json --output taps.toml
    """
    imported = import_taps(file, output, force=force)
    taps, passed_over = imported.taps.taps, imported.passed_over
    machine = {
        "output": str(output),
        "taps": [tap.model_dump() for tap in taps],
        "passed_over": [each._asdict() for each in passed_over],
    }

    def people() -> None:
        if passed_over:
            show_rows("Passed over", ("plugin", "why"), [[each.plugin, each.reason] for each in passed_over])
        show_line(f"{output}: {counted(len(taps), 'tap')} written, {counted(len(passed_over), 'plugin')} passed over.")

    _print(Options(json=json), machine, people)


@app.command
def schemas(
    *,
    check: Annotated[
        bool, Parameter(help="Change nothing; exit 2 where a file differs from the code.", negative=())
    ] = False,
    folder: Annotated[Path, Parameter(help="Where the schemas stand.")] = Path("schemas"),
    json: Annotated[bool, Parameter(help="Print machine-readable output.", negative=())] = False,
) -> None:
    """Write the public schemas from the code's own definitions, or hold them against it.

    Example: assay schemas --check
    """
    from pipeline.tables import check_schemas, schema_files, write_schemas

    if check:
        check_schemas(folder)
    else:
        write_schemas(folder)
    names = sorted(schema_files())
    says = "every schema is what the code says" if check else f"{len(names)} schemas written"
    machine = {"folder": str(folder), "written": not check, "schemas": names}
    _print(Options(json=json), machine, lambda: show_line(f"{folder}: {says}."))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and end with its exit code. Errors are single lines on standard error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with told_in_lines(debug="--debug" in words):
        try:
            app(words, exit_on_error=False, print_error=False, result_action="return_value")
        except CycloptsError as error:
            raise BadInput([_of_engines(words) or Fault("command line", str(error).strip(), "see --help")]) from None


_OF_ENGINES = {
    "--engines": (
        "names no engine with one of its options",
        "give one option of one engine, such as --engines.bm25.tokenizer ascii",
    ),
    "--floors": (
        "names no engine with one of its measures",
        "give one floor of one engine, such as --floors.bm25.recall@10 0.3",
    ),
}
"""Options that name an engine, what is wrong where they do not, and what to do about it."""


def _of_engines(words: Sequence[str]) -> Fault | None:
    """Return what is wrong with the first word that would be an option of an engine; None where all of them are."""
    for word in words:
        name = word.partition("=")[0]
        told = _OF_ENGINES.get(name.partition(".")[0])
        if told and not re.fullmatch(r"--[a-z]+\.[^.=]+\.[^.=]+(=.*)?", word, re.DOTALL):
            return Fault(name, *told)
    return None


if __name__ == "__main__":
    main()
