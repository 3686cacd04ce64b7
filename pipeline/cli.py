"""The command ``assay``: the same stages as the DAG, for cron, for CI and for repeating one step by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, CycloptsError, Parameter

from pipeline import __version__, stages
from pipeline.config import PATHS, ClassRule, Config, Overrides, load, variable_of
from pipeline.errors import BadInput, Fault
from pipeline.explain import explain as find_explanation
from pipeline.export import export as write_export
from pipeline.forecast import forecast as make_forecast
from pipeline.importing import import_taps
from pipeline.refresh import refresh
from pipeline.relock import relock
from pipeline.reports.feed import Night, NightRow
from pipeline.study import By, StudyOptions
from pipeline.study import study as make_study
from pipeline.taps.snapshot import verdict
from pipeline.terminal import (
    Watch,
    as_json,
    err,
    headline_table,
    not_run_as_json,
    out,
    show_checks,
    show_explained,
    show_forecast,
    show_line,
    show_night,
    show_not_run,
    show_proposal,
    show_rows,
    show_study,
    show_taps,
    told_in_lines,
)
from pipeline.workspace import Workspace, find_classes, find_corpus, now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.golden.items import GoldenSet
    from pipeline.store import Artifact
    from pipeline.taps.taplist import Tap

app = App(
    name="assay",
    version=__version__,
    help="Measure retrieval over registries of agent skills, so that the number can be trusted.",
    help_epilogue=(
        "Exit codes: 0 done; 1 drift, a missing pin, a tap that is gone or invalid; 2 bad input; "
        "75 an outage, try again later."
    ),
)
taps_app = App(name="taps", help="Check and maintain the tap list.")
app.command(taps_app)


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
    near_threshold: Annotated[float | None, _help("near_threshold")] = None
    orders: Annotated[int | None, _help("orders")] = None
    sizes: Annotated[int | None, _help("sizes")] = None
    max_file_bytes: Annotated[int | None, _help("max_file_bytes")] = None
    engines: Annotated[
        dict[str, dict[str, str]] | None,
        Parameter(
            help="One option of one engine, such as --engines.bm25.tokenizer ascii. "
            "[key: engines.bm25.tokenizer; env: ASSAY_ENGINES_BM25_TOKENIZER; default: bm25 with its defaults]",
            negative=(),
        ),
    ] = None
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
def _opened(options: Options) -> Iterator[Workspace]:
    settings = load(options.overrides())
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
    with _opened(options) as workspace:
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

    made, not_run = _each_engine_and_set(options, engine, step)
    machine = [{"engine": name, "golden_set": golden, **artifact.facts} for name, golden, artifact in made]
    rows = [[name, golden, artifact.facts["queries"], artifact.facts["hits"]] for name, golden, artifact in made]

    def people() -> None:
        show_rows("Rankings", ("engine", "golden set", "queries", "hits"), rows)
        show_not_run(not_run)

    _print(options, [*machine, *not_run_as_json(not_run)], people)


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

    made, not_run = _each_engine_and_set(options, engine, step)
    headline = stages.headline_of([artifact for _, _, artifact in made])

    def people() -> None:
        out.print(headline_table(headline))
        show_not_run(not_run)

    _print(options, [*(row.model_dump() for row in headline), *not_run_as_json(not_run)], people)


def _each_engine_and_set(
    options: Options, engine: str | None, step: Callable[[Workspace, str, stages.Place, GoldenSet], Artifact]
) -> tuple[list[tuple[str, str, Artifact]], Mapping[str, str]]:
    """Take a step for the engine, or for all that can run; return what it made, and why the others did not run."""
    with _opened(options) as workspace:
        corpus = find_corpus(workspace)
        grouped = find_classes(workspace, corpus)
        at = stages.Place(corpus, grouped, stages.resolve(workspace, grouped))
        made = [
            (name, golden.name, step(workspace, name, at, golden))
            for name in _engines(workspace, engine)
            for golden in at.sets
        ]
        return made, workspace.settings.not_run if engine is None else {}


def _engines(workspace: Workspace, name: str | None) -> list[str]:
    configured = sorted(workspace.settings.engines)
    if name is not None and name not in configured:
        raise BadInput([Fault("--engine", f"{name!r} is not configured", f"choose among: {', '.join(configured)}")])
    if name is not None and name in workspace.settings.not_run:
        reason = workspace.settings.not_run[name]
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
        tuple[By, ...],
        Parameter(
            help="In what orders the catalogue grows, given once or several times: taps at random, by the date of "
            "their pinned commit, by size, the worst confuser first; or single entries, which is another regime."
        ),
    ] = ("random",),
    include: Annotated[
        tuple[str, ...], Parameter(help="Taps that join the targets; all unless named.", negative=())
    ] = (),
    exclude: Annotated[tuple[str, ...], Parameter(help="Taps that do not join.", negative=())] = (),
    engine: Annotated[tuple[str, ...], Parameter(help="Engines; all that run unless named.", negative=())] = (),
    seed: Annotated[int, Parameter(help="First seed of drawn orders, and seed of the draws of clusters.")] = 0,
    options: Options = Options(),
) -> None:
    """Study how the scores fall as the catalogue grows: curves with bands, published with a page of their own.

    Example: assay study --orders 20 --sizes 12 --by random --by harm
    """
    asked = StudyOptions(by, include, exclude, engine, seed)
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
    file: Annotated[Path, Parameter(help="Text rows `owner/repo [sha [entries]]`, or a plugin marketplace.json.")],
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
        show_line(f"{output}: {len(taps)} taps written, {len(passed_over)} plugins passed over.")

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
            raise BadInput([Fault("command line", str(error).strip(), "see --help")]) from None


if __name__ == "__main__":
    main()
