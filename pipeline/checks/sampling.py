"""Samples that follow from what is sampled, and from no order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def drawn(names: Iterable[bytes], salt: str, size: int) -> list[int]:
    """Return the places of at most ``size`` of ``names``, ascending: those whose digests with ``salt`` are smallest.

    Where names come or go, the others stay, but for as many; another salt draws others.
    """
    digests = [hashlib.sha256(salt.encode("utf-8") + b"\0" + name).digest() for name in names]
    return sorted(sorted(range(len(digests)), key=digests.__getitem__)[:size])
