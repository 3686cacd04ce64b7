"""Configuration: one file that people write, each option also in the environment and on the command line.

Precedence: command line, then ``ASSAY_<OPTION>`` in the environment, then the file, then the default. Relative paths in
the file are relative to the file; elsewhere to the current folder.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, ValidationError

from pipeline.classes.decisions import NO_DECISIONS, ClusterDecisions, read_cluster_decisions
from pipeline.engines import ENGINES, Borrower, CannotLoad, Engine, Plugins, engine_class
from pipeline.engines.plugins import absent, plugins
from pipeline.errors import BadInput, Fault
from pipeline.golden.concepts import NO_CONCEPTS, Concepts, read_concepts
from pipeline.ledger import FILE, url_of
from pipeline.records import Record
from pipeline.store import Store
from pipeline.taps.taplist import TapList, read_tap_list

DEFAULT_FILE = Path("config/assay.toml")

ClassRule = Literal["body", "entry", "raw", "blob"]
Similarity = Annotated[float, Field(ge=0.5, le=1, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(gt=0)]


class Config(Record):
    """All options of a night. Those that begin with «Execution» steer how it runs and can change no result."""

    store: str = Field(default="../.assay", description="Folder that keeps everything derived, and the feed.")
    taps: str = Field(default="taps.toml", description="The tap list.")
    golden: list[str] = Field(
        default=["golden"], description="Golden sets: files of JSON Lines, or folders of which every .jsonl is read."
    )
    class_rule: ClassRule = Field(default="body", description="What makes two entries the same content.")
    cluster_decisions: str | None = Field(
        default=None,
        description="What people decided about near-duplicates: a file of JSON Lines. Without it none is confirmed.",
    )
    concepts: str = Field(
        default="", description="What concepts there are: a file of JSON Lines. Empty: none is looked for."
    )
    as_of: int = Field(
        default=-1,
        ge=-1,
        description="Position of the ledger as of which it is read; -1: the last one when the night starts.",
    )
    near_threshold: Similarity = Field(
        default=0.8, description="Jaccard similarity of word 5-grams from which two bodies are near-duplicates."
    )
    max_file_bytes: PositiveInt = Field(default=1024 * 1024, description="Larger files are passed over, and counted.")
    engines: dict[str, dict[str, JsonValue]] = Field(
        default={"bm25": {}},
        description="Engines to evaluate, each with its options. `kind` says which engine it is, where its name does "
        "not: so one engine can stand there several times. `path`, of those that read a file, is relative to this one.",
    )
    ledger: str = Field(
        default="",
        description="Where judgments, promoted items and feedback are kept: a file, or the URL of a PostgreSQL "
        "database. Empty: `ledger.sqlite` in the store. What it is called changes no result; what it holds does.",
    )
    threads: PositiveInt = Field(default=2, description="Execution: taps that are read at the same time.")
    fetch_seconds: PositiveInt = Field(default=600, description="Execution: time limit of one fetch, in seconds.")


@dataclass(frozen=True)
class Overrides:
    """Options given on the command line; None where the environment or the file decides."""

    config: Path | None = None
    """Configuration file [default: config/assay.toml]."""
    store: Path | None = None
    """Folder that keeps everything derived, and the feed."""
    taps: Path | None = None
    """The tap list."""
    golden: tuple[Path, ...] | None = None
    """A golden set, or a folder of them; may be given several times."""
    class_rule: ClassRule | None = None
    """What makes two entries the same content."""
    cluster_decisions: Path | None = None
    """What people decided about near-duplicates: a file of JSON Lines."""
    concepts: Path | None = None
    """What concepts there are: a file of JSON Lines."""
    as_of: int | None = None
    """Position of the ledger as of which it is read."""
    near_threshold: float | None = None
    """Jaccard similarity from which two bodies are near-duplicates."""
    max_file_bytes: int | None = None
    """Larger files are passed over, and counted."""
    engines: dict[str, dict[str, str]] | None = None
    """One option of one engine, such as --engines.bm25.tokenizer ascii."""
    ledger: str | None = None
    """Where judgments are kept: a file, or the URL of a database."""
    threads: int | None = None
    """Taps that are read at the same time."""
    fetch_seconds: int | None = None
    """Time limit of one fetch, in seconds."""


@dataclass(frozen=True)
class Settings:
    """A configuration whose paths and engines are resolved."""

    config: Config
    file: Path
    store: Store
    tap_file: Path
    golden_files: tuple[Path, ...]
    concept_file: Path | None
    """Where concepts are declared."""
    decision_file: Path | None
    """Where the decisions about near-duplicates stand."""
    engines: Mapping[str, Engine]
    """Each engine by name, built from its options."""
    packages: Mapping[str, str]
    """The package, and its version, of each engine that is a plug-in."""
    ledger_url: str = field(repr=False)
    """Where the ledger is; it may hold a password."""
    not_run: Mapping[str, str]
    """Why an engine cannot run, by name. It is reported so, and never replaced by another."""

    @property
    def running(self) -> list[str]:
        """The names of the engines that can run, in order."""
        return sorted(self.engines.keys() - self.not_run.keys())

    def cluster_decisions(self) -> ClusterDecisions:
        """Read what people decided about near-duplicates.

        Raises:
            BadInput: the file has faults; all are named.
        """
        return NO_DECISIONS if self.decision_file is None else read_cluster_decisions(self.decision_file)

    def concepts(self) -> Concepts:
        """Read what concepts there are.

        Raises:
            BadInput: the file has faults; all are named.
        """
        return NO_CONCEPTS if self.concept_file is None else read_concepts(self.concept_file)

    def tap_list(self) -> TapList:
        """Read the tap list; each row must have a pin.

        Raises:
            BadInput: the list has faults; all are named.
        """
        return read_tap_list(self.tap_file)


def load(overrides: Overrides | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the configuration file and lay the environment and the command line over it.

    Raises:
        BadInput: the file, a variable or an option is wrong; all faults are named.
    """
    overrides = overrides or Overrides()
    environ = os.environ if environ is None else environ
    file = (overrides.config or Path(environ.get("ASSAY_CONFIG") or DEFAULT_FILE)).absolute()
    here = Path.cwd()
    written = _from_file(file)
    values = {**written, **_from_environment(environ, here)}
    for option in fields(overrides):
        given = getattr(overrides, option.name)
        if option.name != "config" and given is not None:
            values[option.name] = _as_given(given, here)
    if overrides.ledger is not None:
        values["ledger"] = _ledger_place(overrides.ledger, here)
    values["engines"] = _merged_engines(written, overrides, environ, here)
    config = _validated(values, file)
    engines, packages = _engines(config.engines, file)
    return Settings(
        config=config,
        file=file,
        store=Store(file.parent / config.store),
        tap_file=file.parent / config.taps,
        decision_file=None if config.cluster_decisions is None else file.parent / config.cluster_decisions,
        concept_file=file.parent / config.concepts if config.concepts else None,
        golden_files=_golden_files(file.parent, config.golden, file),
        engines=engines,
        packages=packages,
        ledger_url=url_of(config.ledger or str(file.parent / config.store / FILE), file.parent),
        not_run=_not_run(engines),
    )


def _from_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput([Fault(str(file), "no such configuration file", "name one with --config")]) from None
    except (ValueError, RecursionError, OSError) as error:
        raise BadInput([Fault(str(file), f"cannot be read as TOML ({error})", "mend the file")]) from None


def _from_environment(environ: Mapping[str, str], here: Path) -> dict[str, Any]:
    values: dict[str, Any] = {}
    faults = []
    for name, described in Config.model_fields.items():
        text = environ.get(f"ASSAY_{name.upper()}")
        if text is None or name == "engines":
            continue
        if described.annotation is float:
            try:
                values[name] = float(text)
            except ValueError:
                faults.append(Fault(f"ASSAY_{name.upper()}", f"{text!r} is no number", "give a number from 0.5 to 1"))
        elif described.annotation is int:
            try:
                values[name] = int(text)
            except ValueError:
                faults.append(Fault(f"ASSAY_{name.upper()}", f"{text!r} is not a whole number", "give a whole number"))
        elif name == "golden":
            values[name] = [str(here / part) for part in text.split(os.pathsep) if part]
        elif name in ("store", "taps", "cluster_decisions", "concepts"):
            values[name] = str(here / text)
        elif name == "ledger":
            values[name] = _ledger_place(text, here)
        else:
            values[name] = text
    if faults:
        raise BadInput(faults)
    return values


_ENGINE_PREFIX = "ASSAY_ENGINES_"


def _as_given(value: object, here: Path) -> object:
    if isinstance(value, Path):
        return str(here / value)
    if isinstance(value, tuple):
        return [_as_given(part, here) for part in value]
    return value


def _ledger_place(text: str, here: Path) -> str:
    return text if not text or "://" in text else str(here / text)


def _merged_engines(file: Mapping[str, Any], overrides: Overrides, environ: Mapping[str, str], here: Path) -> Any:
    """Lay single engine options over those of the file: `--engines.bm25.k1 1.5`, `ASSAY_ENGINES_BM25_K1=1.5`."""
    engines = file.get("engines", Config.model_fields["engines"].default)
    if not isinstance(engines, dict) or not all(isinstance(options, dict) for options in engines.values()):
        return engines  # refused with its place by the validation
    merged: dict[str, dict[str, Any]] = {name: dict(options) for name, options in engines.items()}
    prefixes = {_ENGINE_PREFIX + name.upper().replace("-", "_") + "_": name for name in (*ENGINES, *engines)}
    for variable, text in sorted(environ.items()):
        # The longest name that fits: ASSAY_ENGINES_BM25_OKAPI_K1 is no option of bm25.
        fits = max((prefix for prefix in prefixes if variable.startswith(prefix)), key=len, default=None)
        if fits is not None:
            option = variable.removeprefix(fits).lower()
            merged.setdefault(prefixes[fits], {})[option] = _option(option, text, here)
    for name, options in (overrides.engines or {}).items():
        merged.setdefault(name, {}).update({option: _option(option, text, here) for option, text in options.items()})
    return merged


def _option(option: str, text: str, here: Path) -> str | bool | int | float:
    return str(here / text) if option == "path" else _scalar(text)


def _scalar(text: str) -> str | bool | int | float:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _validated(values: Mapping[str, Any], file: Path) -> Config:
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise BadInput(faults_of(error, str(file))) from None


def faults_of(error: ValidationError, where: str) -> list[Fault]:
    """Turn what pydantic found into faults that name the field and what to do."""
    faults = []
    for found in error.errors():
        field = ".".join(str(part) for part in found["loc"])
        if found["type"] == "extra_forbidden":
            faults.append(Fault(f"{where} {field}", "unknown option", "remove it or mend its name"))
        else:
            faults.append(Fault(f"{where} {field}", f"{found['msg']} (given: {found['input']!r})", "mend the value"))
    return faults


def _golden_files(base: Path, golden: list[str], file: Path) -> tuple[Path, ...]:
    found: list[Path] = []
    faults = []
    for name in golden:
        place = base / name
        if place.is_dir():
            sets = sorted(place.glob("*.jsonl"))
            if not sets:
                faults.append(Fault(f"{file} golden", f"no .jsonl file in {place}", "put a golden set there"))
            found += sets
        elif place.is_file():
            found.append(place)
        else:
            faults.append(Fault(f"{file} golden", f"no such file or folder: {place}", "mend the path"))
    names: dict[str, Path] = {}
    for place in found:
        if place.stem in names and names[place.stem].resolve() != place.resolve():
            faults.append(
                Fault(f"{file} golden", f"two sets are called {place.stem}: {names[place.stem]}, {place}", "rename one")
            )
        names[place.stem] = place
    if not golden:
        faults.append(Fault(f"{file} golden", "no golden set is named", "name at least one"))
    if faults:
        raise BadInput(faults)
    return tuple(names[name] for name in sorted(names))


def _engines(engines: Mapping[str, Mapping[str, Any]], file: Path) -> tuple[dict[str, Engine], dict[str, str]]:
    """Build every engine; return them, and the packages of those that are plug-ins."""
    known = plugins()
    built: dict[str, Engine] = {}
    packages: dict[str, str] = {}
    faults: list[Fault] = []
    for name, given in sorted(engines.items()):
        where = f"{file} engines.{name}"
        kind = given.get("kind", name)
        try:
            built[name] = _engine(kind, {key: given[key] for key in given if key != "kind"}, where, file.parent, known)
        except BadInput as error:
            faults += error.faults
        except ValidationError as error:
            faults += faults_of(error, where)
        if kind in known:
            packages[name] = known[kind].distribution
    if not engines:
        faults.append(Fault(f"{file} engines", "no engine is named", f"name one of: {', '.join(sorted(ENGINES))}"))
    faults += _unknown_sources(built, file)
    if faults:
        raise BadInput(faults)
    return built, packages


def _engine(kind: object, options: dict[str, Any], where: str, folder: Path, known: Plugins) -> Engine:
    if not isinstance(kind, str):
        raise BadInput([Fault(f"{where} kind", f"{kind!r} is no text", "name an engine")])
    if isinstance(options.get("path"), str):
        options["path"] = str(folder / options["path"])
    try:
        of_kind = engine_class(kind, where, known)
    except CannotLoad as error:
        return absent(kind, options, str(error))
    return of_kind(of_kind.Options.model_validate(options))


def sources_of(engine: Engine) -> tuple[str, ...]:
    """Return the names of the engines whose rankings an engine reads."""
    return engine.sources() if isinstance(engine, Borrower) else ()


def _unknown_sources(engines: Mapping[str, Engine], file: Path) -> list[Fault]:
    plain = sorted(name for name, engine in engines.items() if not sources_of(engine))
    todo = f"name two of: {', '.join(plain)}"
    return [
        Fault(
            f"{file} engines.{name}", f"it reads the rankings of {source!r}, which is no engine that it can read", todo
        )
        for name, engine in engines.items()
        for source in sources_of(engine)
        if source not in plain
    ]


def _not_run(engines: Mapping[str, Engine]) -> dict[str, str]:
    """Return why engines cannot run; one that reads the rankings of another cannot where the other cannot."""
    own = {name: engine.why_not() for name, engine in sorted(engines.items())}
    reasons: dict[str, str] = {}
    for name, engine in sorted(engines.items()):
        missing = [f"its source {source} is not run: {own[source]}" for source in sources_of(engine) if own[source]]
        reason = own[name] or "; ".join(missing)
        if reason:
            reasons[name] = reason
    return reasons
