"""Make a tap list from what others publish about registries. Nothing is fetched."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pipeline.errors import BadInput, Fault
from pipeline.store import replace_file
from pipeline.taps.listings import PassedOver, as_tap_list, read_listing
from pipeline.taps.taplist import TapList, parse_tap_list


class Imported(NamedTuple):
    """A tap list that was made, and what of the listing it leaves out."""

    taps: TapList
    passed_over: tuple[PassedOver, ...]


def import_taps(listing: Path, output: Path, *, force: bool = False) -> Imported:
    """Write the tap list that a listing gives to ``output``.

    Raises:
        BadInput: the listing or what comes of it is wrong, all faults at once; or ``output`` is there already.
    """
    found = read_listing(listing)
    if output.suffix.lower() != ".toml":
        raise BadInput([Fault(str(output), "a tap list of this form ends in .toml", "name it so with --output")])
    if output.exists() and not force:
        todo = "name another file with --output, or replace it with --force"
        raise BadInput([Fault(str(output), "is there already", todo)])
    data = as_tap_list(found, listing.name).encode("utf-8")
    taps = parse_tap_list(output, data, need_pins=False)
    replace_file(output, data)
    return Imported(taps, found.passed_over)
