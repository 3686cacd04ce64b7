"""What a tap would do to the measures if it were admitted: read like any tap, measured, and kept for later.

The tap list stays as it is. Once a run over the same taps with this one more is published, what the tap did is
recorded beside what was said of it.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pipeline.config import sources_of
from pipeline.errors import BadInput, Fault
from pipeline.reports.forecasts import ForecastRow, forecast_file, publish_forecast
from pipeline.stages import catalog, check_inputs, classes, corpus, count, index, read_taps, resolve, snapshot
from pipeline.store import canonical_json, digest
from pipeline.taps.failures import without_credentials
from pipeline.taps.snapshot import verdict
from pipeline.taps.taplist import Tap, TapList, corpus_digest, duplicates, is_local, parse_tap_list
from pipeline.workspace import Facts, Workspace, engine_fingerprint, in_order, options_of


class Forecasted(NamedTuple):
    """A published forecast."""

    tap: Tap
    rows: tuple[ForecastRow, ...]
    not_made: tuple[str, ...]
    """Which engines have none, and why."""
    path: Path | None
    """Where it is published; None where no engine has one."""


def forecast(workspace: Workspace, written: str, name: str | None = None) -> Forecasted:
    """Read a tap that is not in the list, and say what admitting it would change.

    Args:
        workspace: the tap list, golden sets and engines in force.
        written: ``URL@PIN``.
        name: the tap's name as ``owner/repo``; the end of its URL unless given.

    Raises:
        BadInput: the tap is named wrongly, stands in the list, or has no entry; or nothing is a target.
        Unsound: a tap, this one or one of the list, is gone, invalid, or lacks its pin.
        Outage: one is out of reach.
    """
    from pipeline.falloff.forecast import forecast as predict
    from pipeline.falloff.points import Named
    from pipeline.growth import Ground, NoCurve

    listed = check_inputs(workspace)
    tap = candidate(listed, written, name)
    widened = replace(
        workspace, settings=replace(workspace.settings, other_taps=TapList(listed.path, (*listed.taps, tap)))
    )
    state = snapshot(widened, tap)
    verdict([*read_taps(widened, listed.taps), state])
    if not count(catalog(widened, tap), "entries"):
        raise BadInput([Fault(f"tap {tap.name}", "it has no entry, so it changes nothing", "name a tap with entries")])
    whole = corpus(widened)
    grouped = classes(widened, whole)
    sets = resolve(widened, grouped)
    running = widened.settings.running
    for engine in running:
        for each in (*sources_of(widened.settings.engines[engine]), engine):
            index(widened, whole, each)
    try:
        ground = Ground(widened, whole, grouped, sets)
    except NoCurve as error:
        raise BadInput([Fault("forecast", str(error), "see docs/falloff.md")]) from error
    before = corpus_digest(listed.taps)
    rows: list[ForecastRow] = []
    not_run = widened.settings.not_run.items()
    not_made = [f"{engine}: no forecast: it is not run: {reason}" for engine, reason in not_run]
    for golden in sets:
        for engine, curve_of in ground.curves(running, golden):
            if isinstance(curve_of, NoCurve):
                not_made.append(f"{engine} on {golden.name}: no forecast: {curve_of}")
                continue
            named = Named(golden.name, golden.digest, engine)
            said = predict(named, ground.corpus, ground.asked(golden), curve_of(range(len(golden.items))), tap.name)
            identity: Facts = {
                "tap": tap.name,
                "corpus": whole.digest,
                "roles": {each.name: each.role for each in in_order(listed)},
                "classes": grouped.key,
                "golden": {each.name: each.digest for each in sets},
                "engines": {each: engine_fingerprint(widened, whole, each) for each in running},
            }
            rows += [
                ForecastRow(
                    **row,
                    forecast_id=digest(identity),
                    pin=str(tap.pin),
                    corpus_before=before,
                    corpus_after=whole.digest,
                    class_rule=widened.settings.config.class_rule,
                    golden_digest=golden.digest,
                    options=canonical_json(options_of(widened, engine)),
                    run_before=None,
                    run_after=None,
                    realised_before=None,
                    realised_after=None,
                    realised=None,
                    error=None,
                    within=None,
                    outcome=None,
                )
                for row in said.to_pylist()
            ]
    if not rows:
        return Forecasted(tap, (), tuple(not_made), None)
    path = forecast_file(workspace.store, rows[0])
    return Forecasted(tap, tuple(publish_forecast(workspace.store, rows)), tuple(not_made), path)


def candidate(listed: TapList, written: str, name: str | None = None) -> Tap:
    """Return the tap that ``URL@PIN`` names, as a row of the list would.

    Raises:
        BadInput: it is not of this form, or the list has a tap of this name or place already.
    """
    url, at, pin = written.rpartition("@")
    where = f"tap {without_credentials(written)!r}"
    if not at or not url:
        raise BadInput([Fault(where, "is not of the form URL@PIN", "give the full id of a commit after @")])
    place = os.path.abspath(url) if _is_path(url) else url
    parts = [part for part in place.replace(":", "/").rstrip("/").removesuffix(".git").split("/") if part]
    called = name or "/".join(parts[-2:])
    row = "".join(f"{key} = {json.dumps(value)}\n" for key, value in (("name", called), ("url", place), ("pin", pin)))
    try:
        (tap,) = parse_tap_list(Path("candidate.toml"), f"[[tap]]\n{row}".encode()).taps
    except BadInput as error:
        faults = [fault._replace(where=f"{where} {fault.where.rpartition(' ')[2]}") for fault in error.faults]
        unnamed = "say what it would be called: --name owner/repo"
        raise BadInput(
            [
                fault._replace(todo=unnamed) if name is None and fault.where == f"{where} name" else fault
                for fault in faults
            ]
        ) from None
    twice = list(duplicates(listed.path, [*listed.taps, tap]))
    if twice:
        raise BadInput([Fault(where, "the list has a tap of this name or place", "name one that it lacks")])
    return tap


def _is_path(url: str) -> bool:
    return is_local(Tap(name="owner/repo", url=url, pin=None, row=1))
