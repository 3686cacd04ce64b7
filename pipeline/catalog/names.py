"""Names, slugs and descriptions of entries."""

from __future__ import annotations

import re

from pipeline.taps.profile import RULE_NAMES, SKILL_FILE

BODY_DESCRIPTION_LENGTH = 160
"""Characters (code points) kept of a description that is taken from the body."""

_PLAIN_SLUG = re.compile(r"[A-Za-z0-9._-]+")
_NOT_IN_SLUG = re.compile(r"(?:[^\w-]|_)+")


def slug(name: str) -> str:
    """Return the form of ``name`` that is compared: itself where it is plain, else lower-cased with hyphens.

    Plain is ``[A-Za-z0-9._-]+`` but ``.`` and ``..``. Otherwise each run of what is neither a letter or digit of any
    script nor ``-`` becomes one ``-``, hyphens at the ends go, and ``skill`` stands where nothing is left. A slug of a
    slug is itself.
    """
    if _PLAIN_SLUG.fullmatch(name) and name not in (".", ".."):
        return name
    return _NOT_IN_SLUG.sub("-", name.lower()).strip("-") or "skill"


def readable(path: bytes) -> str:
    r"""Return ``path`` as text; bytes that are no UTF-8 show as ``\xff``."""
    return path.decode("utf-8", "backslashreplace")


def name_from_path(tap: str, path: bytes) -> str:
    """Return the name of an entry whose front matter gives none.

    A skill is named by its folder, a dotfile rule by the folder it lies in (``owner__repo`` of the tap at the root of
    the repository, for both), anything else by its file name without the last extension.
    """
    folder, _, file = path.rpartition(b"/")
    stem = file.rpartition(b".")[0]
    if file == SKILL_FILE or file in RULE_NAMES or not stem:
        return readable(folder.rpartition(b"/")[2]) or tap.replace("/", "__")
    return readable(stem)


def collapsed(text: str) -> str:
    """Return ``text`` with each run of white space as one space, and none at the ends."""
    return " ".join(text.split())


def description_from_body(body: str) -> str | None:
    """Return the first line of ``body`` that is neither blank nor starts with ``#``, trimmed and cut; None without."""
    for line in body.split("\n"):
        if line.startswith("#"):
            continue
        text = line.strip()
        if text:
            return text[:BODY_DESCRIPTION_LENGTH]
    return None
