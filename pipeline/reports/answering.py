"""The section of the page on answers and abstentions: what each policy of answering does, and what the signals tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pipeline.reports.charts import Share, shares
from pipeline.reports.figures import Figure, figure_of
from pipeline.reports.reading import (
    NOTHING,
    Row,
    between,
    count_of,
    counted,
    figure_id,
    names_of,
    number_of,
    rows_of,
    text_of,
)
from pipeline.scoring.policies import ABSTENTION

if TYPE_CHECKING:
    import pyarrow as pa

POLICIES = {"fitted": "fitted threshold", "always_answer": "always answer", "always_abstain": "always abstain"}
SIGNALS = {"top_score": "top score", "reached": "share of the most it could reach", "gap": "gap to the second class"}
MARKS = 10
"""Points of a curve that are marked and told."""


class Rate(NamedTuple):
    """A share with its interval and what it is a share of."""

    value: str
    interval: str
    n: int


class PolicyLine(NamedTuple):
    """What a policy does to some items."""

    id: str
    items: str
    policy: str
    truthfulness: str
    bounds: str
    """What it would be if every unjudged answer were wrong, or perfect."""
    credit: str
    coverage: str
    false_answers: Rate
    false_abstentions: Rate
    unjudged: int


class SignalLine(NamedTuple):
    """What a signal tells about some items."""

    id: str
    signal: str
    decides: bool
    threshold: str
    auroc: list[tuple[str, str]]
    """Of each group of items: its name, and the area or why there is none."""
    excess: str


class Answering(NamedTuple):
    """One set under one engine."""

    golden_set: str
    engine: str
    label: str
    sentences: list[str]
    lines: list[PolicyLine]
    by_split: list[PolicyLine]
    """The same for the items of each split."""
    groups: list[str]
    signals: list[SignalLine]


class Alarm(NamedTuple):
    """An item whose row says that nothing answers it, and which something answers now."""

    golden_set: str
    query_id: str
    question: str
    taps: list[str]


class Answers(NamedTuple):
    """The section."""

    sets: list[Answering]
    alarms: list[Alarm]
    figure: Figure | None


def answers(tables: Mapping[str, pa.Table], questions: Mapping[str, str]) -> Answers:
    """Return what the tables ``abstention`` and ``outcomes`` say; nothing where a run of an earlier release lacks them.

    Args:
        tables: the tables of the run.
        questions: what each item asks, by its id.
    """
    if "abstention" not in tables or "false_answer_n" not in tables["abstention"].column_names:
        return Answers([], [], None)
    rows = {tuple(text_of(row, name) for name in ABSTENTION.key): row for row in rows_of(tables["abstention"])}
    outcomes = rows_of(tables["outcomes"])
    deciding = {
        (text_of(row, "golden_set"), text_of(row, "engine")): text_of(row, "signal")
        for row in sorted(outcomes, key=lambda row: (text_of(row, "golden_set"), text_of(row, "engine")))
    }
    sets = [_answering(rows, *pair, signal) for pair, signal in deciding.items()]
    given = Counter((text_of(row, "golden_set"), text_of(row, "engine")) for row in outcomes if _is_judged_answer(row))
    return Answers(sets, _alarms(outcomes, questions), _curve(rows, deciding, given))


def _is_judged_answer(outcome: Row) -> bool:
    return bool(outcome["answered"]) and (outcome["grade"] is not None or not outcome["answerable"])


def _answering(rows: Mapping[tuple[str, ...], Row], golden_set: str, engine: str, signal: str) -> Answering:
    def row(items: str, policy: str, of: str = signal) -> Row:
        return rows[golden_set, engine, of, items, policy]

    groups = sorted({key[3] for key in rows if key[:2] == (golden_set, engine)}, key=_group_place)
    whole = row("all", "fitted")
    return Answering(
        golden_set,
        engine,
        text_of(whole, "label"),
        _sentences(whole, rows.get((golden_set, engine, signal, "tuning", "always_answer")), signal),
        [_line(row("all", policy)) for policy in POLICIES],
        [_line(row(items, policy)) for items in groups[1:] for policy in POLICIES],
        [_group(items) for items in groups],
        [_signal([row(items, "fitted", of) for items in groups], of == signal) for of in SIGNALS],
    )


def _group_place(items: str) -> int:
    return ["all", "holdout", "regression", "tuning"].index(items)


def _group(items: str) -> str:
    return "all items" if items == "all" else items


def _sentences(whole: Row, tuning: Row | None, signal: str) -> list[str]:
    n, unanswerable, unjudged = (count_of(whole, name) for name in ("n_items", "n_unanswerable", "n_unjudged"))
    answerable = n - unanswerable
    found = []
    if unanswerable:
        wrong = _times(whole, "false_answer_rate", unanswerable)
        found.append(f"Of {counted(unanswerable, 'question')} without an answer it answers {wrong or 'none'}.")
    else:
        found.append("No question is without an answer, so nothing says whether it abstains where it should.")
    if answerable:
        missing = _times(whole, "false_abstention_rate", answerable)
        found.append(f"Of {counted(answerable, 'question')} with one it abstains from {missing or 'none'}.")
    if unjudged:
        found.append(f"{counted(unjudged, 'answer')} nobody judged: left out of truthfulness, and bounded.")
    return [*found, _fitted_on(whole, tuning, signal)]


def _fitted_on(whole: Row, tuning: Row | None, signal: str) -> str:
    threshold, why = number_of(whole, "threshold"), text_of(whole, "threshold_reason")
    if threshold is None:
        return f"There is no threshold on the {SIGNALS[signal]}: {why}."
    of = f"The threshold of {threshold:.4g} on the {SIGNALS[signal]} was fitted"
    if tuning is None:
        return f"{of}."
    judged = count_of(tuning, "n_items") - count_of(tuning, "n_unjudged")
    return (
        f"{of} on {counted(count_of(tuning, 'n_items'), 'item')} of the split tuning: "
        f"{counted(count_of(tuning, 'n_unanswerable'), 'item')} without an answer, and "
        f"{judged - count_of(tuning, 'n_unanswerable'):,} whose answer is judged."
    )


def _times(row: Row, rate: str, of: int) -> int:
    return round((number_of(row, rate) or 0.0) * of)


def _line(row: Row) -> PolicyLine:
    low, high = number_of(row, "truthfulness_low"), number_of(row, "truthfulness_high")
    return PolicyLine(
        figure_id("abstention", row),
        _group(text_of(row, "items")),
        POLICIES[text_of(row, "policy")],
        _shown(row, "truthfulness"),
        f"{low:.3f} to {high:.3f}" if count_of(row, "n_unjudged") and low is not None else "",
        _shown(row, "truthfulness_abstain_credit"),
        _shown(row, "coverage"),
        _rate(row, "false_answer"),
        _rate(row, "false_abstention"),
        count_of(row, "n_unjudged"),
    )


def _rate(row: Row, name: str) -> Rate:
    low, high = number_of(row, f"{name}_low"), number_of(row, f"{name}_high")
    interval = "" if low is None or high is None else between(f"{low:.2f}", f"{high:.2f}")
    return Rate(_shown(row, f"{name}_rate"), interval, count_of(row, f"{name}_n"))


def _shown(row: Row, column: str) -> str:
    value = number_of(row, column)
    return NOTHING if value is None else f"{value:.3f}"


def _signal(rows: Sequence[Row], decides: bool) -> SignalLine:
    first = rows[0]
    threshold = number_of(first, "threshold")
    return SignalLine(
        figure_id("abstention", first),
        SIGNALS[text_of(first, "signal")],
        decides,
        text_of(first, "threshold_reason") if threshold is None else f"{threshold:.4g}",
        [(_shown(row, "auroc"), text_of(row, "auroc_reason")) for row in rows],
        _shown(first, "excess_aurc"),
    )


def _alarms(outcomes: Sequence[Row], questions: Mapping[str, str]) -> list[Alarm]:
    """Return what has an answer now, once for all engines."""
    found = {
        (text_of(row, "golden_set"), text_of(row, "query_id")): names_of(row, "answering_taps")
        for row in outcomes
        if row["answerable_now"]
    }
    return [Alarm(*key, questions.get(key[1], ""), taps) for key, taps in sorted(found.items())]


def _curve(
    rows: Mapping[tuple[str, ...], Row], deciding: Mapping[tuple[str, str], str], given: Mapping[tuple[str, str], int]
) -> Figure:
    """Draw risk against coverage. ``given`` counts the judged answers that the fitted threshold lets through."""
    points: list[Share] = []
    told: list[tuple[str, ...]] = []
    for (golden_set, engine), signal in deciding.items():
        row = rows[golden_set, engine, signal, "all", "fitted"]
        curve = row["curve"]
        steps = [step for step in curve if isinstance(step, dict)] if isinstance(curve, list) else []
        marked = {round(len(steps) * (place + 1) / MARKS) - 1 for place in range(MARKS)}
        for place, step in enumerate(steps):
            coverage, risk, whole = (
                number_of(step, name) or 0.0 for name in ("coverage", "selective_risk", "generalised_risk")
            )
            tip = f"{engine}: of the {coverage:.0%} with the highest {SIGNALS[signal]}, {risk:.0%} are wrong"
            working = place == given.get((golden_set, engine), 0) - 1
            points.append(Share(golden_set, engine, coverage, risk, tip, place in marked, working))
            if place in marked:
                told.append(
                    (golden_set, engine, f"{coverage:.3f}", f"{risk:.3f}", f"{whole:.3f}", figure_id("abstention", row))
                )
    return figure_of(
        "risk-coverage",
        "Risk and coverage",
        "The judged answers in the order of the deciding signal, the highest first: how many of those given so far are "
        "wrong. A signal that tells right from wrong starts low and rises at the end; a flat line tells nothing. "
        "The ring is where the fitted threshold stops."
        if points
        else "No answer is judged, so no curve can be drawn.",
        shares(
            points,
            "coverage: share of the judged answers that are given",
            "share of them that are wrong",
            _engines(deciding),
        )
        if points
        else None,
        ("golden set", "engine", "coverage", "wrong, of those given", "wrong, of all", "id"),
        told,
    )


def _engines(deciding: Mapping[tuple[str, str], str]) -> list[str]:
    return sorted({engine for _, engine in deciding})
