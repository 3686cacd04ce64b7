"""Engines of others: packages name them by entry points of the group ``assay.engines``. They only add to the list."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar, NamedTuple, cast

from pydantic import Field, JsonValue

from pipeline.engines import ENGINES, CannotLoad, Engine, EngineClass, Plugins
from pipeline.errors import BadInput, Fault, one_line
from pipeline.records import Record

GROUP = "assay.engines"

_WANTED = ("VERSION", "Options", "why_not", "fingerprint_inputs")
_ONE_OF = (("index_inputs", "index_tap", "retriever"), ("sources", "answer"))


class EntryPointEngine(NamedTuple):
    """An entry point that names the class of an engine."""

    point: EntryPoint

    @property
    def distribution(self) -> str:
        """The package that brings it, and its version."""
        return f"{self.point.dist.name} {self.point.dist.version}" if self.point.dist else self.point.value

    def load(self) -> EngineClass:
        """Import the class.

        Raises:
            CannotLoad: it cannot be imported, or is no engine.
        """
        try:
            found: object = self.point.load()
        except Exception as error:
            raise CannotLoad(one_line(f"its plug-in cannot be imported: {type(error).__name__}: {error}")) from error
        missing = [name for name in _WANTED if not hasattr(found, name)]
        if not any(all(hasattr(found, name) for name in names) for names in _ONE_OF):
            missing.append(" or ".join(f"({', '.join(names)})" for names in _ONE_OF))
        if missing:
            raise CannotLoad(f"its plug-in {self.point.value} is no engine: it lacks {', '.join(missing)}")
        if getattr(found, "name", None) != self.point.name:
            raise CannotLoad(f"its plug-in {self.point.value} does not call itself {self.point.name}")
        return cast(EngineClass, found)


def plugins() -> Plugins:
    """Return the engines that installed packages bring, by name, none of them loaded.

    Raises:
        BadInput: one has the name of another engine.
    """
    found: dict[str, EntryPointEngine] = {}
    faults = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        engine = EntryPointEngine(point)
        if point.name in ENGINES:
            other = "Assay itself"
        elif point.name in found:
            other = found[point.name].distribution
        else:
            found[point.name] = engine
            continue
        what = f"brings an engine {point.name!r}, which {other} has too"
        faults.append(Fault(f"the package {engine.distribution}", what, "uninstall one of them"))
    if faults:
        raise BadInput(faults)
    return found


class GivenOptions(Record):
    """Options that nobody could read, because the engine is not there."""

    given: dict[str, JsonValue] = Field(description="As they were given.")


def absent(kind: str, given: dict[str, JsonValue], reason: str) -> Engine:
    """Return what stands for an engine that cannot be loaded, so that it is reported as not run."""

    class Absent:
        name: ClassVar[str] = kind
        VERSION: ClassVar[int] = 0
        Options: ClassVar[type[Record]] = GivenOptions

        @property
        def options(self) -> Record:
            return GivenOptions(given=given)

        def why_not(self) -> str:
            return reason

        def fingerprint_inputs(self) -> dict[str, JsonValue]:
            return {}  # it has no scores

    return Absent()
