"""Guess the licence of a tap from the text of its licence file. A guess for the reader of a report, not advice."""

from __future__ import annotations

import re
from collections.abc import Iterable

LICENCE_FILE = re.compile(rb"(licen[cs]e|copying)([._-][^/]*)?", re.IGNORECASE)
"""The names of licence files, at the root only."""

_MIT_GRANT = r"permission is hereby granted, free of charge, to any person obtaining a copy"
_MIT_NOTICE = r"the above copyright notice and this permission notice"
_BSD = r"redistribution and use in source and binary forms"
_BSD_NAME = r"(neither the names? of|may not be used to endorse)"
_BSD_ADVERTISING = r"all advertising materials mentioning"
_ISC = r"permission to use, copy, modify,? (and/or|and) distribute this software for any purpose with or without fee"

_SIGNS: dict[str, tuple[str, ...]] = {
    "AGPL-3.0": (r"^\W*gnu affero general public license version 3\b",),
    "Apache-2.0": (r"apache license,? version 2\.0",),
    "BSD-2-Clause": (_BSD, rf"!{_BSD_NAME}", f"!{_BSD_ADVERTISING}"),
    "BSD-3-Clause": (_BSD, _BSD_NAME, f"!{_BSD_ADVERTISING}"),
    "CC-BY-4.0": (r"attribution 4\.0 international",),
    "CC-BY-SA-4.0": (r"attribution-sharealike 4\.0 international",),
    "CC0-1.0": (r"cc0 1\.0 universal",),
    "GPL-2.0": (r"^\W*gnu general public license version 2\b",),
    "GPL-3.0": (r"^\W*gnu general public license version 3\b",),
    "ISC": (_ISC, r"provided that the above copyright notice"),
    "MIT": (_MIT_GRANT, _MIT_NOTICE),
    "MPL-2.0": (r"mozilla public license,? version 2\.0",),
    "Unlicense": (r"this is free and unencumbered software released into the public domain",),
}
"""What the text of each licence holds, in lower case with single spaces; a leading ``!`` says what it must not hold."""


def guess(texts: Iterable[bytes]) -> str | None:
    """Return the SPDX identifier of the first of ``texts`` that is exactly one known licence, or None.

    A text that shows the signs of two licences is not guessed at.
    """
    return next((found for text in texts if (found := _guess_one(text))), None)


def _guess_one(text: bytes) -> str | None:
    plain = " ".join(text.decode("utf-8", "replace").lower().split())
    found = [name for name, signs in _SIGNS.items() if all(_shows(plain, sign) for sign in signs)]
    return found[0] if len(found) == 1 else None


def _shows(plain: str, sign: str) -> bool:
    if sign.startswith("!"):
        return not re.search(sign[1:], plain)
    return re.search(sign, plain) is not None
