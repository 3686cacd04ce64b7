"""How the machine loops of all kernels are typed and compiled: one place, so that all are cached and run alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit, types

F = TypeVar("F", bound=Callable[..., object])


def input_of(kind: types.Type, dimensions: int = 1) -> types.Array:
    """Return the type of an array that is read, and may be a read-only view of a file."""
    return types.Array(kind, dimensions, "C", readonly=True)


def output_of(kind: types.Type, dimensions: int = 1) -> types.Array:
    """Return the type of an array that is written."""
    return types.Array(kind, dimensions, "C")


def results_of(*kinds: types.Type) -> types.BaseTuple:
    """Return the type of several results."""
    return types.Tuple(kinds)  # type: ignore[no-untyped-call]


def several_of(kind: types.Type, number: int) -> types.BaseTuple:
    """Return the type of a tuple of so many values of one type."""
    return types.UniTuple(kind, number)  # type: ignore[no-untyped-call]


def compiled(signature: object = None) -> Callable[[F], F]:
    """Compile a loop once, for a signature that is written out or at first use; others may run beside it."""
    return cast("Callable[[F], F]", njit(signature, cache=True, nogil=True))
