"""The exact digests that entries are compared on, all SHA-256 in hex. A catalogue keeps them, so they are made once."""

from __future__ import annotations

import hashlib


def normalised(body: str) -> str:
    """Return ``body`` with each run of white space as one space, and none at the ends.

    White space is what ``str.isspace`` takes: the Unicode space separators, and the characters whose bidirectional
    class is white space, segment or paragraph separator. Doing it twice changes nothing.
    """
    return " ".join(body.split())


def raw_sha256(content: bytes) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.sha256(content).hexdigest()


def body_sha256(normalised_body: bytes) -> str:
    """Return the digest of a normalised body in UTF-8."""
    return hashlib.sha256(normalised_body).hexdigest()


def entry_sha256(slug: str, description: str | None, normalised_body: bytes) -> str:
    """Return the digest of slug, LF, description (nothing where it is absent), LF, normalised body, all in UTF-8."""
    head = hashlib.sha256(f"{slug}\n{description or ''}\n".encode())
    head.update(normalised_body)
    return head.hexdigest()
