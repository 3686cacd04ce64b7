"""Profile ``skills``: which paths of a tree may be entries. Pure rules over paths, which are bytes.

Paths are relative to the root of the repository, with ``/`` between their parts. What the rules say needs no content,
but for Markdown outside the four folders of workflows: there the front matter decides later.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Literal

Kind = Literal["skill", "rule", "workflow", "maybe_workflow"]
"""What a path may be. ``maybe_workflow``: a workflow only if its front matter says so."""

SKILL_FILE = b"SKILL.md"
RULE_NAMES = frozenset({b".cursorrules", b".windsurfrules", b".clinerules"})
WORKFLOW_FOLDERS = frozenset({b"commands", b"agents", b"subagents", b"workflows"})
NEVER_WORKFLOWS = frozenset(
    b"readme contributing license changelog security code_of_conduct index _index authors notice".split()
)
SKIPPED_FOLDERS = frozenset({b".git", b"__pycache__"})

_PLAIN_EXTENSION = re.compile(rb"[a-z0-9_+-]{1,12}")


def is_skipped(path: bytes) -> bool:
    """Say whether ``path`` is, or lies below, something called ``.git`` or ``__pycache__``."""
    return not SKIPPED_FOLDERS.isdisjoint(path.split(b"/"))


def skill_folders(paths: Iterable[bytes]) -> frozenset[bytes]:
    """Return the folders that hold ``SKILL.md`` in exactly this case; the root is ``b""``.

    Args:
        paths: all files and links of a tree. A link counts wherever it points: the folder was meant as a skill, and
            whether its files are entries of their own must not depend on what else the tree holds.
    """
    return frozenset(
        folder for folder, name in map(_split, paths) if name == SKILL_FILE and not is_skipped(folder + b"/" + name)
    )


def classify(path: bytes, skills: Collection[bytes]) -> Kind | None:
    """Return what ``path`` may be, or None where it can be no entry.

    Args:
        path: a file or link of the tree.
        skills: what ``skill_folders`` returns for the tree.
    """
    folder, name = _split(path)
    if is_skipped(path):
        return None
    if name == SKILL_FILE:
        return "skill"
    if in_skill(path, skills):
        return None
    lowered = name.lower()
    if lowered.endswith(b".mdc") or name in RULE_NAMES:
        return "rule"
    if not lowered.endswith(b".md") or lowered[: -len(b".md")] in NEVER_WORKFLOWS:
        return None
    return "maybe_workflow" if WORKFLOW_FOLDERS.isdisjoint(folder.lower().split(b"/")) else "workflow"


def in_skill(path: bytes, skills: Collection[bytes]) -> bool:
    """Say whether ``path`` lies in a skill's folder or anywhere below it."""
    return any(folder in skills for folder in _folders_above(path))


def kind_of_file(path: bytes, skills: Collection[bytes]) -> str:
    """Name the kind of a file that is no entry, for counting.

    Returns:
        ``skipped`` (below ``.git`` or ``__pycache__``), ``part of a skill``, or the lower-cased extension with its dot;
        ``no extension``, and ``other extension`` where it is long or not plain ASCII.
    """
    if is_skipped(path):
        return "skipped"
    if in_skill(path, skills):
        return "part of a skill"
    stem, dot, extension = _split(path)[1].lower().rpartition(b".")
    if not stem or not dot:
        return "no extension"
    return f".{extension.decode('ascii')}" if _PLAIN_EXTENSION.fullmatch(extension) else "other extension"


def _split(path: bytes) -> tuple[bytes, bytes]:
    folder, _, name = path.rpartition(b"/")
    return folder, name


def _folders_above(path: bytes) -> Iterator[bytes]:
    while path:
        path = path.rpartition(b"/")[0]
        yield path
