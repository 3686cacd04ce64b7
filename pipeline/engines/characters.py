"""What each character is to the tokenizer, from the Unicode data of the running Python, block by block as met."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np

from pipeline.catalog.scripts import is_han_or_kana
from pipeline.engines import kernel
from pipeline.engines.text import prepared

CODES = 1 << 21
"""Room for whatever four bytes can spell, so that no broken text points outside the table."""

STEADY_MARKS = "\ufe0e\ufe0f\u20e3"
"""Common marks that stay as they are whatever stands beside them: the variation selectors of signs, the keycap.

Other marks may compose with, or be put in order among, their neighbours, so a text that holds one is prepared first.
"""


class CharacterTable:
    """Kinds of characters by code point (``kinds``), and which blocks are filled in by now (``filled``)."""

    def __init__(self) -> None:
        self.kinds = np.zeros(CODES, np.uint8)
        self.filled = np.zeros(CODES >> kernel.BLOCK, np.uint8)

    def fill(self, wanted: kernel.Bytes) -> None:
        """Fill in the blocks that ``wanted`` marks."""
        size = 1 << kernel.BLOCK
        for block in np.flatnonzero(wanted).tolist():
            codes = range(block * size, min((block + 1) * size, 0x110000))
            self.kinds[codes.start : codes.stop] = [_kind(chr(code)) for code in codes]
            self.filled[block] = 1


@lru_cache(maxsize=1)
def character_table() -> CharacterTable:
    """Return the one table of this process. It is filled as texts need it; filling a block twice changes nothing."""
    table = CharacterTable()
    table.fill(np.ones(1, np.uint8))
    return table


def _kind(char: str) -> int:
    category = unicodedata.category(char)
    if category[0] not in "LNM":
        kind = kernel.SEPARATOR
    elif is_han_or_kana(ord(char)):
        kind = kernel.BIGRAM
    else:
        kind = kernel.MARK if category[0] == "M" else kernel.LETTER
    if category[0] in "LN":
        kind |= kernel.TOUCHES
    return kind if _stays(char, category) else kind | kernel.CHANGES


def _stays(char: str, category: str) -> bool:
    """Say whether NFC and lower case leave a text alone that holds only such characters (and lower-case ASCII).

    So it is where each character is in NFC by itself, has no combining class and is never the second part of a
    composition, which only marks and conjoining Jamo are. (Unicode Standard Annex 15, section 9.)
    """
    if char in STEADY_MARKS or category in ("Cs", "Cn", "Co"):
        return True
    return (
        category[0] != "M"
        and not 0x1100 <= ord(char) <= 0x11FF
        and unicodedata.combining(char) == 0
        and prepared(char) == char
    )
