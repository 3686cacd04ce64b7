"""Errors that a user can act on. Each carries the exit code of the command and the way that a task ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Fault(NamedTuple):
    """One thing that is wrong with what somebody gave us."""

    where: str
    """File, line or row, and field, such as ``config/taps.toml row 3 pin``."""
    what: str
    """What is wrong, with the offending value."""
    todo: str
    """What to do about it."""

    def __str__(self) -> str:
        return one_line(f"{self.where}: {self.what}; {self.todo}")


class AssayError(Exception):
    """The root of all errors that are ours. Its text is one or more single lines, ready to be shown."""

    exit_code = 1


class BadInput(AssayError):
    """Something that a person wrote is wrong. All faults are named at once."""

    exit_code = 2

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class MissingArtifact(AssayError):
    """A step was asked for before the step that it reads from."""

    exit_code = 2


class Unsound(AssayError):
    """The world is not what the configuration says: drift, a missing pin, a tap that is gone or invalid."""

    exit_code = 1


class CheckFailed(AssayError):
    """Another program makes something else of the same text than we do: one of both is wrong."""

    exit_code = 1

    def __init__(self, failures: Iterable[str]) -> None:
        super().__init__("\n".join(failures))


class Outage(AssayError):
    """Something was out of reach, and may be back later."""

    exit_code = 75


def one_line(text: str) -> str:
    """Return ``text`` with every control character escaped, so that it prints as one line and moves no cursor.

    Text from registries can hold terminal escapes and line ends; it is shown, never obeyed.
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as ``1 tap`` or ``1,234 entries``; of several words the last is declined."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        plural = f"{noun[:-1]}ies"
    else:
        plural = f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"
