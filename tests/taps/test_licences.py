from __future__ import annotations

import pytest

from pipeline.taps.licences import LICENCE_FILE, guess

MIT = b"""MIT License\n\nCopyright (c) 2024 Somebody\n\nPermission is hereby granted, free of charge, to any person
obtaining a copy of this software. The above copyright notice and this permission notice shall be included."""
BSD2 = b"Redistribution and use in source and binary forms, with or without modification, are permitted."
ISC = b"""Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby
granted, provided that the above copyright notice appears."""


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        (MIT, "MIT"),
        (MIT.replace(b"\n", b"\r\n"), "MIT"),
        (MIT.partition(b"The above")[0], None),
        (b"  Apache License\n    Version 2.0, January 2004", "Apache-2.0"),
        (BSD2, "BSD-2-Clause"),
        (BSD2 + b" Neither the name of the holder", "BSD-3-Clause"),
        (BSD2 + b" All advertising materials mentioning features", None),
        (b"GNU GENERAL PUBLIC LICENSE\nVersion 2, June 1991", "GPL-2.0"),
        (b"# GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007 ... GNU Affero General Public License", "GPL-3.0"),
        (b"GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3, 19 November 2007", "AGPL-3.0"),
        (b"GNU LESSER GENERAL PUBLIC LICENSE\nVersion 3 of the GNU General Public License", None),
        (b"Mozilla Public License Version 2.0", "MPL-2.0"),
        (b"CC0 1.0 Universal", "CC0-1.0"),
        (b"Attribution 4.0 International", "CC-BY-4.0"),
        (b"Attribution-ShareAlike 4.0 International", "CC-BY-SA-4.0"),
        (b"Attribution-NonCommercial 4.0 International", None),
        (b"This is free and unencumbered software released into the public domain.", "Unlicense"),
        (ISC, "ISC"),
        (ISC.partition(b", provided")[0], None),
        (MIT + b"\nAttribution 4.0 International", None),
        (b"All rights reserved.", None),
        (b"", None),
        (b"\xff\xfe", None),
    ],
)
def test_a_licence_is_known_by_its_text(text: bytes, licence: str | None) -> None:
    assert guess([text]) == licence


def test_the_first_text_that_is_known_counts() -> None:
    assert guess([b"see the others", MIT, BSD2]) == "MIT"


@pytest.mark.parametrize("name", [b"LICENSE", b"licence.md", b"COPYING", b"LICENSE-MIT", b"License.txt"])
def test_these_are_licence_files(name: bytes) -> None:
    assert LICENCE_FILE.fullmatch(name)


@pytest.mark.parametrize("name", [b"docs/LICENSE", b"LICENSES", b"licensed.md", b"unlicense"])
def test_these_are_none(name: bytes) -> None:
    assert not LICENCE_FILE.fullmatch(name)
