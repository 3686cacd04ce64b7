"""What people see in a terminal: progress, the state of the taps, the table of a night; all foreign text escaped."""

from __future__ import annotations

import errno
import os
import re
import select
import sys
import traceback
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TextIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from pipeline.checks import CheckRow
from pipeline.checks.known import KnownItemsRow
from pipeline.classes.wordings import MARKS
from pipeline.config import Absent
from pipeline.duplicates import MOST_ASTRAY, Choice, ExactCheck, Group
from pipeline.errors import AssayError, one_line
from pipeline.feedback.readiness import ReadinessRow
from pipeline.reports.duplication import (
    Became,
    ClusterView,
    Duplicates,
    FamilyView,
    GoldenNames,
    NameCopies,
    ReadPair,
    TapCopies,
    WordRun,
)
from pipeline.reports.explained import (
    Behind,
    Explained,
    ExplainedFigure,
    ExplainedMetric,
    ExplainedRun,
    Origin,
    Reproduction,
    ShownItem,
)
from pipeline.reports.feed import NightRow, NightStep, Step, StudyRow
from pipeline.reports.proposal import PinProposal, RowChange, TapChange
from pipeline.reports.reading import HEADLINE, counted, told_of_both
from pipeline.scoring.answered import Answered
from pipeline.scoring.rows import MetricValue
from pipeline.stages import Headline, Published
from pipeline.taps.snapshot import TapState

if TYPE_CHECKING:
    from pipeline.forecast import Forecasted
    from pipeline.study import Studied


class Terminal(Console):
    """A console that leaves a reader who went away to `told_in_lines`."""

    def on_broken_pipe(self) -> None:
        """Let the error through."""
        raise


out = Terminal(highlight=False, soft_wrap=True)
err = Terminal(highlight=False, soft_wrap=True, stderr=True)


class Watch:
    """Shows the steps of a night while they run: a line that changes on a terminal, plain lines elsewhere.

    Steps that the store served are counted, not listed: they took no time.
    """

    def __init__(self, quiet: bool = False, console: Console = err) -> None:
        self._quiet = quiet
        self._console = console
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<10}"),
            TextColumn("{task.fields[subject]}"),
            TextColumn("{task.completed} made, {task.fields[served]} from the store"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._tasks: dict[str, tuple[TaskID, int]] = {}

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, step: Step) -> None:
        """Show one step."""
        if self._quiet:
            return
        served = step.source == "store"
        if not self._console.is_terminal:
            if not served:
                detail = f", {one_line(step.detail)}" if step.detail else ""
                line = f"{step.stage:<9} {one_line(step.subject)}: {step.source} in {step.seconds:.2f} s{detail}"
                self._console.print(line, markup=False)
            return
        task, count = self._tasks.get(step.stage) or (
            self._bar.add_task(step.stage, total=None, subject="", served=0),
            0,
        )
        self._tasks[step.stage] = (task, count + served)
        subject = escape(one_line(step.subject))[:60]
        self._bar.update(task, advance=0 if served else 1, subject=subject, served=count + served)


def show_night(published: Published, night: NightRow) -> None:
    """Print what ran and what the store served, the headline measures, and where the report is."""
    steps = night.steps
    out.print(_steps_table(steps))
    _show_some([f"{each.stage} {each.subject}: {each.detail}" for each in night.details])
    show_headline(published.headline)
    show_answers(published.answers)
    show_not_run(published.absent)
    show_checks(published.checks, published.known_items)
    made, served = sum(step.computed for step in steps), sum(step.served for step in steps)
    if not made:
        said = f"Nothing was recomputed: all {served} outputs came from the store"
    elif served:
        said = f"{made} of {made + served} outputs {_was(made)} made, the others came from the store"
    else:
        said = f"All {made} outputs were made"
    out.print(f"{said}, in {night.seconds:.1f} s.")
    out.print(f"run     {published.run_id}")
    out.print(f"feed    {escape(str(published.folder))}")
    out.print(f"report  {escape(str(published.folder / 'report.html'))}")


class Breakable:
    """A foreign text in a cell: on one line if it fits, else broken after a space, a word that is too long at a sign.

    The sign of a number stays with it.
    """

    def __init__(self, text: str) -> None:
        self._words = _SPACES.split(one_line(text))
        self._pieces = [piece for word in self._words for piece in _SIGNS.split(word)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        fit = all(cell_len(word.rstrip()) <= options.max_width for word in self._words)
        lines, line = [], ""
        for piece in self._words if fit else self._pieces:
            if line and cell_len((line + piece).rstrip()) > options.max_width:
                lines.append(line.rstrip())
                line = ""
            line += piece
        yield Text("\n".join([*lines, line.rstrip()]), overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        lengths = [cell_len(piece.rstrip()) for piece in self._pieces]
        whole = min(cell_len("".join(self._pieces)), options.max_width)
        return Measurement(min(max(lengths), whole), whole)


_SPACES = re.compile(r"(?<= )(?! )")
_SIGNS = re.compile(r"(?<=[/:,_-])(?<!^[-])(?![ /:,_-])")
"""Where a word may be broken: after signs that join words, as in names and paths, but not after that of a number."""


def _table(title: str, *columns: str) -> Table:
    """Return a table that reads well at 80 columns: light rules, names folded rather than cut."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _add_numbers(table: Table, *columns: str) -> None:
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)


def _steps_table(steps: Sequence[NightStep]) -> Table:
    table = _table("What ran, and what the store served", "step")
    _add_numbers(table, "made", "from the store", "seconds")
    for row in steps:
        table.add_row(row.stage, str(row.computed), str(row.served), f"{row.seconds:.2f}")
    return table


def show_headline(headline: Sequence[Headline]) -> None:
    """Print the headline measures, and what is counted beside them."""
    out.print(headline_table(headline))
    for pinned, by_name in pairwise(headline):
        if pinned.n_both and (pinned.golden_set, pinned.engine) == (by_name.golden_set, by_name.engine):
            told = told_of_both(pinned.n_both, pinned.over_both, by_name.over_both)
            show_line(f"{pinned.golden_set}, {pinned.engine}: {told}")
    if headline:
        show_line(
            "Items are those that count. The n of the report counts clusters of related ones, so it may be smaller."
        )


def headline_table(headline: Iterable[Headline]) -> Table:
    """Return the headline measures as a table: for each golden set and engine, one row a grading."""
    names = ("recall@10", "hit@1", "mrr@100", "ndcg@10")
    table = _table("Headline measures")
    table.add_column("set, engine, graded", overflow="fold", min_width=15)
    _add_numbers(table, *names, "items")
    table.add_column("label", no_wrap=True)
    above = ""
    for row in headline:
        heading = f"{row.golden_set}, {row.engine}"
        if heading != above:
            table.add_row(Breakable(heading))
            above = heading
        values = [row.values.get(name) for name in names]
        shown = ("–" if value is None else f"{value:.4f}" for value in values)
        table.add_row(f"  {GRADINGS[row.grading]}", *shown, str(row.n_items), row.label)
    return table


GRADINGS = {"row": "as pinned", "name": "by name"}


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def show_answers(answers: Iterable[Answered]) -> None:
    """Print how each set was answered under each engine, what failed, and what has an answer now, a line each."""
    for row in answers:
        who = f"{row.golden_set}, {row.engine}"
        truth = "no answer is judged" if row.truthfulness is None else f"truthfulness {row.truthfulness:.3f}"
        always = "" if row.always_answer is None else f", always answering {row.always_answer:.3f}"
        show_line(
            f"answers {who}: {truth}{always}; false answers {_rate_of(row.false_answer_rate, row.n_unanswerable)}, "
            f"false abstentions {_rate_of(row.false_abstention_rate, row.n_answerable)}"
        )
        kinds = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in row.failures.items())
        show_line(f"failed  {who}: {kinds or 'nothing'}")
        if row.answerable_now:
            said = f"{_some(row.answerable_now)}; the report names the taps"
            show_line(f"alarm   {who}: answerable now, and its row says that nothing answers it: {said}")


def _rate_of(rate: float | None, n: int) -> str:
    return f"none of {n}" if rate is None else f"{rate:.3f} of {n}"


def show_not_run(absent: Absent | None) -> None:
    """Print why engines did not run, and of how many; nothing where all did, or only one was asked for."""
    if absent is not None and absent.told:
        title = f"Not run: {len(absent.told)} of {absent.engines} engines"
        show_rows(title, ("engine", "reason"), sorted(absent.told.items()))


def show_checks(checks: Iterable[CheckRow], known: Iterable[KnownItemsRow]) -> None:
    """Print what was held against other packages, and how often a name finds its content, a line each."""
    for row in checks:
        show_line(f"check   {row.check} of {row.subject} with {row.peer}: {row.detail}, {_apart(row.worst_difference)}")
    for item in known:
        if item.value is None:
            show_line(f"names   {item.engine}: no {item.metric} by exact name: {item.reason}")
            continue
        between = "" if item.ci_low is None else f" ({item.ci_low:.2f} to {item.ci_high:.2f})"
        of = f"n {item.n}, {item.n_ambiguous} of them ambiguous"
        show_line(f"names   {item.engine}: {item.metric} by exact name {item.value:.3f}{between}, {of}")


def _apart(worst: float | None) -> str:
    if worst is None:
        return "nothing to compare"
    return f"at most {worst:.1e} apart" if worst else "all equal"


def not_run_as_json(absent: Absent | None) -> list[dict[str, object]]:
    """Return why engines did not run, a row each, to stand beside rows of engines that did."""
    return [
        {"engine": name, "status": "not run", "reason": reason}
        for name, reason in sorted(absent.reasons.items() if absent else ())
    ]


def show_taps(states: Sequence[TapState], console: Console = out) -> None:
    """Print the state of every tap, those that are not ok last and with the reason."""
    table = _table("Taps", "tap", "pin", "state", "source", "reason")
    for state in sorted(states, key=lambda state: (state.state != "ok", state.name)):
        style = None if state.state == "ok" else "bold"
        table.add_row(
            Breakable(state.name),
            str(state.pin)[:12],
            state.state,
            state.source or "–",
            Breakable(state.reason),
            style=style,
        )
    console.print(table)


def show_rows(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], whole: Container[str] = ()) -> None:
    """Print a small table; numbers stand to the right. Cells of ``whole`` columns are never broken: they are copied."""
    table = _table(title)
    listed = [list(row) for row in rows]
    for number, column in enumerate(columns):
        numeric = bool(listed) and all(isinstance(row[number], int | float) for row in listed)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=column in whole)
    for row in listed:
        table.add_row(*(Breakable(str(cell)) for cell in row))
    out.print(table)


def show_readiness(name: str, found: Sequence[ReadinessRow]) -> None:
    """Print what a golden set is good for, a line a demand, with the first items at fault and how many there are."""
    most = 3
    rows = []
    for row in found:
        more = f" and {row.n_ids - most:,} more" if row.n_ids > most else ""
        rows.append([row.verdict, row.demand, row.wanted, row.says, ", ".join(row.ids[:most]) + more])
    show_rows(f"Readiness of {name}", ("", "demand", "wanted", "found", "items at fault"), rows)


def show_explained(explained: Explained) -> None:
    """Print what stands behind a number, a question or a run: what it is, how to make it again, its rows."""
    if isinstance(explained, ExplainedMetric):
        _print_facts(f"Number {explained.id}", explained.metric | {"mean of the items": explained.mean_of_items})
    elif isinstance(explained, ExplainedRun):
        show_rows(
            "Headline measures",
            ("id", "set", "engine", "graded", "measure", "value", "label"),
            [
                [row.id, row.golden_set, row.engine, GRADINGS[row.grading], row.metric, _rounded(row.value), row.label]
                for row in explained.headline
            ],
        )
    if isinstance(explained, ExplainedFigure):
        _print_facts(f"Figure {explained.id} of {explained.table}", explained.row)
        for behind in explained.behind:
            _print_behind(behind)
    if isinstance(explained.origin, StudyRow):
        _print_facts("The study that it belongs to", explained.origin.model_dump(exclude={"configuration"}))
    else:
        _print_origin(explained.origin)
    _print_reproduction(explained.reproduction)
    if isinstance(explained, ExplainedMetric) and explained.parts:
        rows = [[part.id, part.facet_value, _rounded(part.value), part.n_items] for part in explained.parts]
        show_rows("The means that it is the mean of", ("id", "value of the facet", "mean", "items"), rows)
    if not isinstance(explained, ExplainedRun | ExplainedFigure):
        for item in explained.items:
            _print_item(item)


def _print_behind(behind: Behind) -> None:
    shown = _TELLING.get(behind.table) or tuple(behind.rows[0] if behind.rows else ())
    rows = [[_cell(row[name]) for name in shown] for row in behind.rows]
    heads = [name.replace("_", " ") for name in shown]
    show_rows(f"Behind it, of {behind.table}: {counted(len(rows), 'row')}", tuple(heads), rows)


_TELLING = {
    "falloff": ("engine", "seed", "entries", "taps", "value", "order_low", "order_high", "query_low", "query_high"),
    "falloff_fits": ("model", "a", "b", "error", "held_out_error", "chosen"),
    "metrics": ("metric", "grading", "value", "ci_low", "ci_high", "n"),
}
"""What is shown of the rows behind a figure; of other tables all that was picked from them."""


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else _shown(value)


def _print_facts(title: str, facts: Mapping[str, object]) -> None:
    show_rows(title, ("fact", "value"), [[name, _shown(value)] for name, value in facts.items()])


def _shown(value: object) -> str:
    return "–" if value is None else str(value)


def _print_origin(origin: Origin) -> None:
    rows: dict[str, object] = {name: getattr(origin, name) for name in ("run_id", "corpus", "class_rule")}
    rows |= {name: getattr(origin, name) for name in ("taps", "entries", "classes")}
    rows |= {
        f"golden set {golden.name}": f"{golden.digest}, {counted(golden.items, 'item')}"
        for golden in origin.golden_sets
    }
    rows |= {f"engine {engine.engine}": f"{engine.fingerprint} {engine.options}" for engine in origin.engines}
    rows |= {f"{engine.engine} is made of": engine.made_of for engine in origin.engines if engine.made_of}
    _print_facts("Where it comes from", rows | {f"stage {each.stage}": each.version for each in origin.stages})


def _print_reproduction(reproduction: Reproduction) -> None:
    if reproduction.command is not None:
        out.print("To make it again, in a store of its own:\n")
        out.print(reproduction.command, markup=False)
        out.print()
        show_line(
            "It reads the configuration file and what that names (golden sets, models, run files) as they are then. "
            "Where one has changed, `assay explain` prints what differs in place of the command."
        )
        out.print()
        return
    out.print("It cannot be made again from here; name the run's files with --config, --taps and --golden:")
    for line in reproduction.missing:
        out.print(f"  {one_line(line)}", markup=False)


def _print_item(item: ShownItem) -> None:
    heading = f"{item.query_id} · {item.golden_set}, {item.engine}, {GRADINGS[item.grading]}: {item.question}"
    out.print(one_line(heading), markup=False, style="bold")
    out.print(one_line(f"  wanted: {', '.join(item.wanted) or '–'}"), markup=False)
    _print_values(item.values)
    show_rows(
        "",
        ("rank", "grade", "score", "entry", "class"),
        [
            [hit.rank, _shown(hit.grade), f"{hit.score:.4f}", f"{hit.tap}::{hit.path}", hit.class_id[:12]]
            for hit in item.hits
        ],
    )


def _print_values(values: Sequence[MetricValue]) -> None:
    """Print one value on a line; several as a table, a row a measure and a column a depth, and below why some lack."""
    if len(values) > 1:
        split = [(*value.metric.split("@"), _rounded(value.value)) for value in values]
        depths = sorted({depth for _, depth, _ in split}, key=int)
        cells = {(name, depth): shown for name, depth, shown in split}
        rows = [
            [name, *(cells.get((name, depth), "") for depth in depths)] for name in dict.fromkeys(s[0] for s in split)
        ]
        table = _table("", "measure")
        _add_numbers(table, *(f"@{depth}" for depth in depths))
        for row in rows:
            table.add_row(*row)
        out.print(table)
    for value in values:
        if value.reason is not None:
            show_line(f"  {value.metric} {_shown(value.value)} ({value.reason})")
        elif len(values) == 1:
            show_line(f"  {value.metric} {_rounded(value.value)}")


def _rounded(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def show_study(studied: Studied) -> None:
    """Show what a study says in words, and where it is."""
    if studied.row.statistics == "global":
        out.print(
            "Words weigh in every subset what they weigh in the whole corpus (--statistics global).", markup=False
        )
    for each in studied.growth.said:
        who = f"{each.golden_set}, {each.engine}, {each.kind}" + ("" if each.label == "ok" else f" ({each.label})")
        out.print(who, markup=False, style="bold")
        for sentence in each.sentences:
            out.print(f"  {one_line(sentence)}", markup=False)
    for sentence in studied.growth.not_drawn:
        out.print(one_line(sentence), markup=False)
    if studied.growth.lost or studied.growth.more_lost:
        lost = len(studied.growth.lost) + studied.growth.more_lost
        out.print(f"Questions that were lost, by set and engine: {lost}; the report says who took which.", markup=False)
    out.print(f"study   {studied.row.study_id}\nreport  {studied.folder / 'report.html'}", markup=False)


def show_forecast(made: Forecasted) -> None:
    """Show what a tap would change: the headline measures as pinned, and what it would take and bring."""
    shown = [row for row in made.rows if row.grading == "row" and row.metric in HEADLINE]
    table = _table(f"What {made.tap.name} would change", "set, engine, measure")
    _add_numbers(table, "now", "with it", "change", "low", "high")
    table.add_column("outlook", overflow="fold")
    above = ""
    for row in shown:
        heading = f"{row.golden_set}, {row.engine}"
        if heading != above:
            table.add_row(Breakable(heading))
            above = heading
        changes = (_figure(value, "+") for value in (row.change, row.low, row.high))
        outlook = ": ".join(said for said in (row.outlook, row.reason) if said)
        table.add_row(f"  {row.metric}", _figure(row.before), _figure(row.after), *changes, Breakable(outlook))
    out.print(table)
    if shown:
        show_line("Low and high are the ends of the 95% interval of the change.")
    for row in [row for row in shown if row.metric == HEADLINE[0]]:
        where = f"{row.golden_set}, {row.engine}"
        for verb, items in (("take", row.taken), ("bring", row.brought)):
            many = f"{len(items)}: {', '.join(items[:20])}" if items else "none"
            out.print(f"{where}: questions that it would {verb}: {one_line(many)}", markup=False)
    if made.rows:
        first = made.rows[0]
        out.print(
            f"{counted(first.entries, 'entry')}, {first.mirrors:,} of them copies of what is there already",
            markup=False,
        )
        if first.outcome is None:
            out.print(f"admitted already: recall@10 changed by {_figure(first.realised, '+')}", markup=False)
    for line in made.not_made:
        out.print(one_line(line), markup=False)
    out.print(f"file    {made.path}" if made.path else "nothing is published", markup=False)


def _figure(value: float | None, sign: str = "") -> str:
    return "–" if value is None else f"{round(value, 4) + 0.0:{sign if round(value, 4) else ''}.4f}"


def show_line(text: str) -> None:
    """Print one line, whatever is in it."""
    out.print(escape(one_line(text)))


# --- duplicates -------------------------------------------------------------------------------------------------------


def show_duplicates(found: Duplicates) -> None:
    """Print the sections that were asked for."""
    facts = found.near_duplicates
    show_line(
        f"Run {found.run_id[:12]}: {counted(facts.clusters, 'near-duplicate cluster')} of "
        f"{counted(facts.bodies, 'body')} and {counted(facts.entries, 'entry')}, joined from a similarity of "
        f"{found.near_threshold}; "
        f"{facts.astray:,} of {counted(facts.eligible, 'body')} astray from the exact join."
    )
    left_out = found.left_out.get
    if found.taps is not None:
        _show_copies(found.taps, left_out("taps"))
    if found.names is not None:
        _show_names("Largest homonyms", found.names, left_out("names"))
    if found.families is not None:
        _show_families(found.families, left_out("families"))
    if found.clusters is not None:
        _show_clusters(found.clusters, left_out("clusters"))
    if found.pairs is not None:
        for pair in found.pairs:
            _show_pair(pair)
        _show_left_out("pairs", left_out("pairs"))
    if found.golden is not None:
        _show_golden(found.golden)
        _show_names("Golden names", found.golden_names or [], left_out("golden_names"))
    if found.became is not None:
        _show_became(found.became)


def _show_copies(taps: Sequence[TapCopies], left_out: int | None) -> None:
    head = (
        "tap",
        "entries",
        "mirrors\ninside",
        "of earlier\ntaps",
        "near\ninside",
        "near, of\nearlier",
        "copies",
        "both\nsides",
    )
    rows = [
        [row.tap, row.entries, row.mirrors_inside, row.mirrors_of_earlier, row.near_inside, row.near_of_earlier]
        + ["–" if share is None else f"{share:.0%}" for share in (row.share, row.both_sides)]
        for row in taps
    ]
    _show_section("Copies, by tap", head, rows, left_out)
    if rows:
        show_line(
            "Copies: of an entry that comes earlier by tap and path. Both sides: of any, as in the report's chart."
        )


def _show_families(families: Sequence[FamilyView], left_out: int | None) -> None:
    for each in families:
        counts = ", ".join([counted(each.bodies, "body"), counted(each.entries, "entry"), counted(each.taps, "tap")])
        shared = f"{each.shared_words:.0%} of the words shared"
        show_line(f"family {each.family_id[:12]}: {counts}, {shared}: {_some(each.names)}")
        show_line(f"  slots: {_some(each.slots, ' | ') or 'none seen'}")
        show_line(f"  evidence: {_some(each.evidence, ' | ') or 'none'}")
    if not families:
        show_line("Template families: none.")
    _show_left_out("families", left_out)


def _show_clusters(clusters: Sequence[ClusterView], left_out: int | None) -> None:
    rows = [
        [row.cluster_id[:12], row.reading, row.bodies, row.entries, row.taps, lowest, _some(row.names)]
        for row in clusters
        for lowest in ["–" if row.lowest_similarity is None else f"{row.lowest_similarity:.3f}"]
    ]
    head = ("cluster", "read as", "bodies", "entries", "taps", "lowest", "names")
    _show_section("Clusters that span names", head, rows, left_out)


def _show_section(title: str, head: Sequence[str], rows: Sequence[Sequence[object]], left_out: int | None) -> None:
    if rows:
        show_rows(title, head, rows)
    else:
        show_line(f"{title}: none.")
    _show_left_out(title.lower(), left_out)


def _show_left_out(what: str, left_out: int | None) -> None:
    if left_out:
        show_line(f"and {left_out:,} more ({what}); --limit shows more, --json all")


def _show_names(title: str, names: Sequence[NameCopies], left_out: int | None) -> None:
    head = ("name", "entries", "contents", "apart", "clusters", "taps")
    rows = [[row.name, row.entries, row.classes, row.apart, row.clusters, row.taps] for row in names]
    _show_section(title, head, rows, left_out)


def _show_golden(golden: GoldenNames) -> None:
    show_line(
        f"Golden names: {golden.names:,}, of which stand for several contents {golden.ambiguous:,}, and when copies "
        f"count as one {golden.ambiguous_apart:,}. They are carried by {counted(golden.entries, 'entry')} of "
        f"{counted(golden.classes, 'content')}, {golden.apart:,} apart."
    )


def _show_pair(pair: ReadPair) -> None:
    out.print(f"{pair.similarity:.4f} {pair.side}", style="bold")
    for name, place, body in (
        (pair.left_name, pair.left, pair.left_body),
        (pair.right_name, pair.right, pair.right_body),
    ):
        show_line(f"  {name}  {place}  class:{body[:12]}")
    if pair.words is None:
        show_line(f"  {pair.differs}  (the bodies are in the store no more)")
    else:
        out.print(_worded(pair.words, out.is_terminal and not out.no_color))
    out.print()


def _worded(words: Sequence[WordRun], coloured: bool) -> Text:
    """Return where two bodies differ: in colours, or with ``MARKS`` where there are none."""
    text = Text("  ")
    for run in words:
        said, (begin, end) = one_line(run.text), MARKS[run.side]
        text.append(f"{said} " if coloured else f"{begin}{said}{end} ", style=_STYLES[run.side] if coloured else "")
    return text


_STYLES = {"both": "", "left": "red strike", "right": "green underline"}


def _show_became(became: Became) -> None:
    rows = [[count.subject, count.event, count.count] for count in became.counts]
    show_rows(f"Since run {became.run_before[:12]}", ("what", "became", "how many"), rows)
    _show_some(
        [
            f"cluster {event.lineage_id[:12]} {event.event}: "
            f"{(event.cluster_before or '–')[:12]} → {(event.cluster_after or '–')[:12]}"
            for event in became.clusters
        ]
    )


def _some(texts: Sequence[str], between: str = ", ", most: int = 4) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return between.join(texts[:most]) + more


def show_exact(check: ExactCheck) -> None:
    """Print how the clusters of a run stand to the exact join."""
    show_rows(
        f"Run {check.run_id[:12]} against the exact join, from a similarity of {check.near_threshold}",
        ("fact", "value"),
        [
            ["bodies compared", f"{check.compared:,}"],
            ["pairs of the exact join", f"{check.exact_pairs:,}"],
            ["bodies that it joins", f"{check.exact_bodies:,}"],
            ["bodies in the run's clusters", f"{check.clustered_bodies:,}"],
            ["bodies that unverified candidates would join", f"{check.unverified_bodies:,}"],
            ["candidates", f"{check.candidates:,}"],
            ["recall of the candidates", _shown(check.recall)],
            ["precision of the candidates", _shown(check.precision)],
            ["bodies astray", f"{check.astray:,} ({check.astray_share:.3%}; at most {MOST_ASTRAY:.1%})"],
        ],
    )


def show_group(found: Group) -> None:
    """Print one cluster or family: its bodies, then its pairs with the words in which they differ."""
    read_as = "" if found.kind == "family" else f", read as {found.reading}"
    bodies = counted(len(found.members), "distinct body")
    show_line(f"{found.kind} {found.id[:12]} of run {found.run_id[:12]}: {bodies}{read_as}")
    for member in found.members:
        show_line(f"  {member.number}  {', '.join(member.names)}  class:{member.body[:12]}")
        for entry in member.entries:
            show_line(f"       {entry}")
    out.print()
    if found.pairs is None:
        show_line("The bodies are in the store no more; `assay run` with the run's tap list brings them back.")
    for pair in found.pairs or ():
        side = "" if pair.similarity >= found.near_threshold else f", below the threshold of {found.near_threshold}"
        out.print(f"{pair.left} and {pair.right}: {pair.similarity:.4f}{side}", style="bold")
        out.print(_worded(pair.words, out.is_terminal and not out.no_color))
        out.print()
    _show_left_out("pairs", found.left_out)
    show_line(f"`assay duplicates --decide {found.id[:12]}` prints the lines that decide about it.")


def show_choice(choice: Choice) -> None:
    """Print the lines of which one goes into the decisions file."""
    same, different = choice.lines()
    print("# They are one skill; say who decided in «by»:", same, sep="\n")
    print("# They are different skills; leave out of «bodies» what you do not mean:", different, sep="\n")


MOST_SHOWN = 40
"""Lines of a kind that a terminal shows, of what would move or how outputs were made; the rest are counted."""


def show_proposal(proposal: PinProposal, written: str | None) -> None:
    """Print what new pins would move, and where the list with them was written."""
    moving = [tap for tap in proposal.taps if tap.changes_pin]
    if moving:
        table = _table("What new pins would move", "tap", "pin → head")
        _add_numbers(table, "entries", "born", "gone", "edited", "moved")
        for tap in moving:
            table.add_row(*_tap_cells(tap))
        out.print(table)
    _show_some([line for tap in moving for line in _moves(tap)])
    for tap in proposal.taps:
        if tap.state != "ok":
            show_line(f"{tap.tap}: {tap.state}: {tap.reason}")
        elif tap.not_compared:
            show_line(f"{tap.tap}: not compared: {tap.not_compared}")
    if proposal.near_duplicates is not None and proposal.near_duplicates.said:
        show_line(f"Near-duplicates: {proposal.near_duplicates.said}.")
    if proposal.golden is None:
        show_line(f"Golden rows: not checked: {proposal.golden_not_checked}")
    elif proposal.golden:
        _show_some([_golden_line(row) for row in proposal.golden])
    else:
        show_line("Golden rows: every one names what it named.")
    show_line(f"{len(moving)} of {counted(len(proposal.taps), 'tap')} would get another pin.")
    if written:
        show_line(f"written {written}")


def _tap_cells(tap: TapChange) -> list[Breakable | str]:
    pins = " → ".join(commit[:7] if commit else "–" for commit in (tap.pin, tap.proposed))
    entries = " → ".join("–" if counts is None else str(counts.entries) for counts in (tap.before, tap.after))
    lists = (tap.born, tap.gone, tap.edited, tap.moved)
    return [Breakable(tap.tap), pins, entries, *("–" if items is None else str(len(items)) for items in lists)]


def _moves(tap: TapChange) -> Iterator[str]:
    for kind, paths in (("born", tap.born), ("gone", tap.gone), ("edited", tap.edited)):
        yield from (f"{tap.tap}: {kind} {path}" for path in paths or ())
    yield from (f"{tap.tap}: moved {move.before} to {move.after}" for move in tap.moved or ())


def _golden_line(row: RowChange) -> str:
    places = [(place.why, place.entry) for place in row.candidates]
    instead = ", ".join(f"{why}: {entry}" for why, entry in places) or "no candidate"
    already = " at the pins too" if row.already else ""
    return f"{row.golden_set} line {row.line} {row.field}: {row.what}{already}; {instead}"


def _show_some(lines: Sequence[str]) -> None:
    for line in lines[:MOST_SHOWN]:
        show_line(line)
    if len(lines) > MOST_SHOWN:
        show_line(f"and {len(lines) - MOST_SHOWN} more; --json has all")


def as_json(published: Published, night: NightRow) -> dict[str, object]:
    """Return what a program wants to know of a night that published a run."""
    return {
        "run_id": published.run_id,
        "feed": str(published.folder),
        "report": str(published.folder / "report.html"),
        "night": night.night,
        "steps": [step.model_dump() for step in night.steps],
        "details": [detail.model_dump() for detail in night.details],
        "headline": [row.model_dump() for row in published.headline],
        "answers": [row.model_dump() for row in published.answers],
        "not_run": dict(published.not_run),
        "checks": [row.model_dump() for row in published.checks],
        "known_items": [row.model_dump(exclude={"misses"}) for row in published.known_items],
    }


def tell_awaited(ledger: Path | None) -> None:
    """Say on standard error of a ledger that is named and is not there, that nothing is read from it."""
    if ledger is not None:
        what = "there is no ledger here, so nothing is read from it"
        print(f"assay: {one_line(str(ledger))}: {what}; mend `ledger` where there should be one", file=sys.stderr)


@contextmanager
def told_in_lines(debug: bool = False) -> Iterator[None]:
    """End the program with the right exit code when something goes wrong, and say why in single lines.

    Where whoever read the output went away, as ``head`` does, it ends without a word, as if the signal had ended it.
    """
    try:
        yield
        sys.stdout.flush()  # what waits in the buffer is written here, where it can still fail in order
    except AssayError as error:
        lines, exit_code = str(error).splitlines(), error.exit_code
    except KeyboardInterrupt:
        lines, exit_code = ["stopped; what was finished is kept, so the next run goes on from there"], 130
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            sys.exit(_SIGPIPE)
        lines, exit_code = [_outside(error)], 75 if error.errno in (errno.ENOSPC, errno.EDQUOT) else 2
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        lines, exit_code = [f"a fault of Assay itself: {text}; run again with --debug and report the traceback"], 1
    else:
        return
    if debug:
        traceback.print_exc()
    for line in lines:
        print(f"assay: {one_line(line)}", file=sys.stderr)
    sys.exit(exit_code)


_SIGPIPE = 128 + 13
"""What a shell says of a program that the signal ended."""


def _nobody_reads() -> bool:
    """Whether standard output or error is a pipe that nobody reads; if so, what still waits for it goes nowhere."""
    broken = [stream for stream in (sys.stdout, sys.stderr) if _is_broken(stream)]
    for stream in broken:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    return bool(broken)


def _is_broken(stream: TextIO) -> bool:
    try:
        descriptor = stream.fileno()
    except OSError:  # no file at all, such as a buffer in memory
        return False
    asked = select.poll()
    asked.register(descriptor, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in asked.poll(0))


def _outside(error: OSError) -> str:
    """Say what the operating system refused, where, and what to do."""
    todo = (
        "make room and run again; what was finished is kept"
        if error.errno in (errno.ENOSPC, errno.EDQUOT)
        else "give a place that can be read and written, with --store or in the configuration"
    )
    return f"{error.filename or 'a file'}: {error.strerror or error}; {todo}"
