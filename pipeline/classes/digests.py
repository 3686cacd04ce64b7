"""Class rules: which digest decides that two entries are the same content, and the id of a class under it."""

from __future__ import annotations

import hashlib
from typing import Literal

ClassRule = Literal["body", "entry", "raw", "blob"]

CLASS_RULES: dict[ClassRule, str] = {
    "body": "body_sha256",
    "entry": "entry_sha256",
    "raw": "raw_sha256",
    "blob": "blob",
}
"""The column of the catalogue that each class rule compares."""

CLASS_RULE_VERSION = 1
"""Part of every class id. Rises whenever a rule would join or part other entries than before."""


def class_id(rule: ClassRule, content: str) -> str:
    """Return the id of the class of all entries whose digest under ``rule`` is ``content``."""
    return hashlib.sha256(f"{rule}\n{CLASS_RULE_VERSION}\n{content}".encode()).hexdigest()


def empty_class_id(tap: str, path: bytes) -> str:
    """Return the id of the class of one entry with an empty body, which never joins another under any rule."""
    return hashlib.sha256(tap.encode("utf-8") + b"\n" + path).hexdigest()
