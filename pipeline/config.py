"""Configuration: one file that people write, each option also in the environment and on the command line.

Precedence: command line, then ``ASSAY_<OPTION>`` in the environment, then the file, then the default. Relative paths in
the file are relative to the file; elsewhere to the current folder.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, JsonValue, ValidationError

from pipeline.classes.decisions import NO_DECISIONS, ClusterDecisions, read_cluster_decisions
from pipeline.engines import ENGINES, Borrower, CannotLoad, CheckedEngine, Engine, Plugins, engine_class
from pipeline.engines.plugins import absent, plugins
from pipeline.errors import BadInput, Fault
from pipeline.golden.concepts import NO_CONCEPTS, Concepts, read_concepts
from pipeline.golden.items import is_set_name, read_golden_set
from pipeline.judgments.resolution import PinnedJudge
from pipeline.ledger import FILE, sqlite_file, url_of
from pipeline.records import Record
from pipeline.scoring import DECIDING, Signal
from pipeline.store import Store
from pipeline.taps.taplist import TapList, read_tap_list

DEFAULT_FILE = Path("config/assay.toml")

ClassRule = Literal["body", "entry", "raw", "blob"]
Similarity = Annotated[float, Field(ge=0.5, le=1, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(gt=0)]
Floor = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, strict=True)]


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
    judge_model: str = Field(
        default="",
        description="Model of the judge whose judgments count after those of people. Empty: those of no model do.",
    )
    judge_prompt_version: str = Field(
        default="", description="Version of that judge's prompt, as its judgments name it; given with `judge_model`."
    )
    near_threshold: Similarity = Field(
        default=0.8, description="Jaccard similarity of word 5-grams from which two bodies are near-duplicates."
    )
    orders: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=20, description="Falloff: orders that are drawn in which taps join the targets; 0 draws no curve."
    )
    sizes: Annotated[int, Field(ge=2, le=1000)] = Field(
        default=12, description="Falloff: sizes at which a curve is measured, from the targets to the whole corpus."
    )
    abstain_by: Signal = Field(
        default=DECIDING,
        description="Signal by which an item counts as answered: `top_score`, `reached` (the top score as a share of "
        "the most that the query could reach), or `gap` (to the second class, as a share of the top score).",
    )
    max_file_bytes: PositiveInt = Field(default=1024 * 1024, description="Larger files are passed over, and counted.")
    engines: dict[str, dict[str, JsonValue]] = Field(
        default={"bm25": {}},
        description="Engines to evaluate, each with its options. `kind` says which engine it is, where its name does "
        "not: so one engine can stand there several times. `path`, of those that read a file, is relative to this one.",
    )
    floors: dict[str, dict[str, Floor]] = Field(
        default={},
        description="Values that measures of an engine should not fall below, by engine and measure: the falloff curve "
        "tells at what size each is crossed. A floor counts for the engine that it names, and for no other.",
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

    config: Path | str | None = None
    """Configuration file [default: config/assay.toml]."""
    store: Path | str | None = None
    """Folder that keeps everything derived, and the feed."""
    taps: Path | str | None = None
    """The tap list."""
    golden: tuple[Path | str, ...] | None = None
    """A golden set, or a folder of them; may be given several times."""
    class_rule: ClassRule | None = None
    """What makes two entries the same content."""
    cluster_decisions: Path | str | None = None
    """What people decided about near-duplicates: a file of JSON Lines."""
    concepts: Path | str | None = None
    """What concepts there are: a file of JSON Lines."""
    as_of: int | None = None
    """Position of the ledger as of which it is read."""
    judge_model: str | None = None
    """Model of the judge whose judgments count."""
    judge_prompt_version: str | None = None
    """Version of its prompt."""
    near_threshold: float | None = None
    """Jaccard similarity from which two bodies are near-duplicates."""
    orders: int | None = None
    """Orders that are drawn of a falloff curve; 0 draws none."""
    sizes: int | None = None
    """Sizes at which a falloff curve is measured."""
    abstain_by: Signal | None = None
    """Signal by which an item counts as answered."""
    max_file_bytes: int | None = None
    """Larger files are passed over, and counted."""
    engines: dict[str, dict[str, str]] | None = None
    """One option of one engine, such as --engines.bm25.tokenizer ascii."""
    floors: dict[str, dict[str, float]] | None = None
    """A floor of one measure of one engine, such as --floors.bm25.recall@10 0.3."""
    ledger: str | None = None
    """Where judgments are kept: a file, or the URL of a database."""
    threads: int | None = None
    """Taps that are read at the same time."""
    fetch_seconds: int | None = None
    """Time limit of one fetch, in seconds."""


class Absent(NamedTuple):
    """The engines that cannot run."""

    reasons: Mapping[str, str]
    """Why, by name, in words that are the same on every machine."""
    told: Mapping[str, str]
    """The same with the path at which something is missing; for the terminal alone."""
    engines: int
    """How many engines are configured, those that run among them."""


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
    other_taps: TapList | None = None
    """Taps that stand in place of those of the file: of a study that leaves some out, or a forecast with one more."""

    @property
    def judge(self) -> PinnedJudge | None:
        """The judge whose judgments count; None where those of no judge do."""
        config = self.config
        return PinnedJudge(config.judge_model, config.judge_prompt_version) if config.judge_model else None

    @property
    def absent(self) -> Absent:
        """The engines that cannot run, as whoever sits at this machine is told of them."""
        told = {}
        for name, reason in self.not_run.items():
            path = getattr(self.engines[name].options, "path", None)
            told[name] = f"{reason} ({path})" if path else reason
        return Absent(self.not_run, told, len(self.engines))

    @property
    def awaited_ledger(self) -> Path | None:
        """The file of a ledger that is named, is read, and is not there; None for any other ledger."""
        file = sqlite_file(self.ledger_url) if self.config.ledger and self.config.as_of != 0 else None
        return None if file is None or file.exists() else file

    @property
    def running(self) -> list[str]:
        """The names of the engines that can run, in order."""
        return sorted(self.engines.keys() - self.not_run.keys())

    @property
    def engines_that_run(self) -> dict[str, Engine]:
        """The engines that can run, by name."""
        return {name: self.engines[name] for name in self.running}

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
        return self.other_taps or read_tap_list(self.tap_file)

    def engine_faults(self, asked: Container[str] | None, proven: Container[str] = ()) -> list[Fault]:
        """Return what is wrong with the run files and models of the engines that run, of what can be seen before work.

        Args:
            asked: the ids of all questions; None where they cannot be read.
            proven: engines, by name, that need not be looked at again.
        """
        faults: list[Fault] = []
        for name, engine in self.engines_that_run.items():
            if isinstance(engine, CheckedEngine) and name not in proven:
                faults += engine.input_faults(asked)
        return faults


LOOKED_UP_LATER = Fault(
    "golden sets and run files",
    "the entries that they name are looked up once the taps are read",
    "mend what is told here, and run again",
)
"""Is told with the faults of such files, since mending those may bring others to light."""


def load(
    overrides: Overrides | None = None, environ: Mapping[str, str] | None = None, *, with_files: bool = False
) -> Settings:
    """Read the configuration file and lay the environment and the command line over it.

    Args:
        overrides: what the command line gives.
        environ: the environment; that of this process unless given.
        with_files: where the configuration is wrong, tell what is wrong with the files that it names as well.

    Raises:
        BadInput: the file, a variable or an option is wrong; all faults are named, each by where it was given.
    """
    overrides = overrides or Overrides()
    environ = os.environ if environ is None else environ
    file = _file(overrides, environ)
    given = _Given(file, _from_file(file), Path.cwd())
    _take_environment(given, environ, overrides)
    _take_command_line(given, overrides)
    config = _validated(given)
    engines, packages = _engines(config.engines, given)
    given.faults += _floor_faults(config, given)
    golden_files = () if "golden" in given.refused else _golden_files(file.parent, config.golden, given)
    store = plain(file.parent / config.store)
    try:
        ledger_url = url_of(config.ledger or str(file.parent / config.store / FILE), file.parent)
    except BadInput as error:
        given.fault(("ledger",), error.faults[0].what, error.faults[0].todo)
        ledger_url = ""
    ledger_file = sqlite_file(ledger_url) if config.ledger and "ledger" not in given.refused else None
    # The store is made where it is not there yet; another folder is not, for a slip would make an empty ledger.
    if ledger_file is not None and not (ledger_file.parent.exists() or plain(ledger_file.parent) == store):
        given.fault(("ledger",), f"no such folder: {ledger_file.parent}", "mend the path, or make the folder")
    settings = Settings(
        config=config,
        file=file,
        store=Store(store),
        tap_file=plain(file.parent / config.taps),
        golden_files=golden_files,
        concept_file=plain(file.parent / config.concepts) if config.concepts else None,
        decision_file=None if config.cluster_decisions is None else plain(file.parent / config.cluster_decisions),
        engines=engines,
        packages=packages,
        ledger_url=ledger_url,
        not_run=_not_run(engines),
    )
    if given.faults:
        raise BadInput([*given.faults, *(_file_faults(settings, given.refused) if with_files else [])])
    return settings


def _file_faults(settings: Settings, refused: Container[str]) -> list[Fault]:
    """Return what is wrong with the files of a configuration, but for the options that are ``refused``."""
    golden = [partial(read_golden_set, path) for path in settings.golden_files if "\0" not in str(path)]
    faults = [] if "taps" in refused else faults_in(settings.tap_list)
    of_entries = [fault for read in golden for fault in faults_in(read)] + settings.engine_faults(None)
    faults += [*of_entries, *([LOOKED_UP_LATER] if of_entries else [])]
    faults += [] if "concepts" in refused else faults_in(settings.concepts)
    return faults + ([] if "cluster_decisions" in refused else faults_in(settings.cluster_decisions))


def faults_in(read: Callable[[], object]) -> list[Fault]:
    """Read something that people wrote, and return what is wrong with it."""
    try:
        read()
    except BadInput as error:
        return list(error.faults)
    return []


PATHS = ("store", "taps", "golden", "cluster_decisions")
"""Options that are paths."""
PLACES = (*PATHS, "concepts", "ledger")
"""Options that are paths, may be empty, or name a place by a URL."""


class _Given:
    """What was given for each option, and where: the last place that gave it counts."""

    def __init__(self, file: Path, written: dict[str, Any], here: Path) -> None:
        self.file = file
        self.here = here
        self.values = dict(written)
        self.faults: list[Fault] = []
        self.refused: set[str] = set()
        """Options that say nothing which could be used."""
        self._places: dict[tuple[str, ...], str] = {}
        self.engines = written.get("engines", Config.model_fields["engines"].default)
        self._in_file = frozenset(written["engines"]) if isinstance(written.get("engines"), dict) else frozenset()
        if isinstance(self.engines, dict) and all(isinstance(options, dict) for options in self.engines.values()):
            self.engines = {name: dict(options) for name, options in self.engines.items()}
            self.values["engines"] = self.engines

    def take(self, option: str, value: object, place: str) -> None:
        """Take the value of an option, in place of what was given before."""
        self.values[option] = value
        self._places[option,] = place

    def take_engine_option(self, engine: str, option: str, text: str, place: str) -> None:
        """Take one option of one engine."""
        if not isinstance(self.engines, dict) or not isinstance(self.engines.setdefault(engine, {}), dict):
            return  # the file is refused with its place by the validation
        self._places["engines", engine, option] = place
        if option == "path" and not text:
            self.fault(("engines", engine, option), "is empty", "name a file")
        self.engines[engine][option] = _option(option, text, self.here)

    def place(self, *option: str) -> str:
        """Return where an option was given: on the command line, in the environment, or in the file."""
        for length in range(len(option), 0, -1):
            if option[:length] in self._places:
                return " ".join([self._places[option[:length]], *option[length:]])
        if option[0] == "engines" and len(option) == 2:
            # An engine as a whole: what the command line and the environment say of it counts beside the file.
            own = [place for given, place in self._places.items() if given[:2] == option]
            in_file = [f"{self.file} engines.{option[1]}"] if option[1] in self._in_file or not own else []
            return ", ".join([*in_file, *own])
        if option[0] == "engines" and len(option) > 2:
            return " ".join([f"{self.file} engines.{option[1]}", *option[2:]])
        return f"{self.file} {'.'.join(option)}"

    def take_floor(self, engine: str, measure: str, value: object, place: str) -> None:
        """Take the floor of one measure of one engine."""
        floors = self.values.setdefault("floors", {})
        if isinstance(floors, dict) and isinstance(floors.setdefault(engine, {}), dict):
            floors[engine] = {**floors[engine], measure: value}
            self._places["floors", engine, measure] = place

    def fault(self, option: tuple[str, ...], what: str, todo: str) -> None:
        """Note what is wrong with an option."""
        self.faults.append(Fault(self.place(*option), what, todo))


def _file(overrides: Overrides, environ: Mapping[str, str]) -> Path:
    if overrides.config is not None:
        place, named = "--config", str(overrides.config)
    elif "ASSAY_CONFIG" in environ:
        place, named = "ASSAY_CONFIG", environ["ASSAY_CONFIG"]
    else:
        place, named = "", str(DEFAULT_FILE)
    if not named:
        raise BadInput([Fault(place, "is empty", "name a configuration file")])
    return plain(Path(named).absolute())


def plain(path: Path) -> Path:
    """Return a path without `..` where that names the same place, so that it reads well; behind a link it may not."""
    if ".." not in path.parts or "\0" in str(path):
        return path
    short = os.path.normpath(path)
    return Path(short) if os.path.realpath(short) == os.path.realpath(path) else path


def _from_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput([Fault(str(file), "no such configuration file", "name one with --config")]) from None
    except IsADirectoryError:
        raise BadInput([Fault(str(file), "is a folder", "name the file in it")]) from None
    except (ValueError, RecursionError, OSError) as error:
        raise BadInput([Fault(str(file), f"cannot be read as TOML ({error})", "mend the file")]) from None


_PREFIX = "ASSAY_"
_ENGINE_PREFIX = "ASSAY_ENGINES_"


def variable_of(option: str) -> str:
    """Return the name of an option in the environment."""
    return _PREFIX + option.upper()


def option_of(option: str) -> str:
    """Return the name of an option on the command line."""
    return f"--{option.replace('_', '-')}"


def _take_environment(given: _Given, environ: Mapping[str, str], overrides: Overrides) -> None:
    """Take what the environment gives; a variable that is no option is a fault: nobody sets one to have no effect."""
    options = {variable_of(name): name for name in Config.model_fields if name != "engines"}
    configured = given.engines if isinstance(given.engines, dict) else {}
    names = (*ENGINES, *configured, *(overrides.engines or {}))
    prefixes = {_ENGINE_PREFIX + name.upper().replace("-", "_") + "_": name for name in names}
    for variable, text in sorted(environ.items()):
        if not variable.startswith(_PREFIX) or variable == "ASSAY_CONFIG":
            continue
        # The longest name that fits: ASSAY_ENGINES_BM25_OKAPI_K1 is no option of bm25.
        fits = max((prefix for prefix in prefixes if variable.startswith(prefix)), key=len, default=None)
        if variable in options:
            _take_variable(given, options[variable], variable, text)
        elif fits is not None:
            given.take_engine_option(prefixes[fits], variable.removeprefix(fits).lower(), text, variable)
        else:
            known = ["ASSAY_CONFIG", *options, *(f"{prefix}<OPTION>" for prefix in prefixes)]
            longer = [name for name in known if name.startswith(f"{variable}_")][:3]
            near = longer or difflib.get_close_matches(variable, known, n=3) or sorted(options)
            given.faults.append(Fault(variable, "no option has this name", f"unset it, or use: {', '.join(near)}"))


def _take_variable(given: _Given, option: str, variable: str, text: str) -> None:
    kind = Config.model_fields[option].annotation
    if kind in (int, float):
        what = "whole number" if kind is int else "number"
        try:
            given.take(option, int(text) if kind is int else float(text), variable)
        except ValueError:
            given.faults.append(Fault(variable, f"{text!r} is not a {what}", f"give a {what}"))
    elif option == "floors":
        _take_floors(given, text, variable)
    elif option == "golden":
        given.take(option, [_path(part, given.here) for part in text.split(os.pathsep)], variable)
    elif option in PLACES:
        given.take(option, _path(text, given.here), variable)
    else:
        given.take(option, text, variable)


def _take_floors(given: _Given, text: str, variable: str) -> None:
    """Take floors that are written as the value of the option would be in the file."""
    try:
        (floors,) = tomllib.loads(f"floors = {text}").values()
        for engine, measures in floors.items():
            for measure, value in measures.items():
                given.take_floor(engine, measure, value, f"{variable} {engine}.{measure}")
    except (ValueError, RecursionError, AttributeError):
        todo = """give a TOML table, such as { bm25 = { "recall@10" = 0.3 } }"""
        given.faults.append(Fault(variable, f"{text!r} is no table of floors by engine", todo))


def _take_command_line(given: _Given, overrides: Overrides) -> None:
    for each in fields(overrides):
        value = getattr(overrides, each.name)
        if value is not None and each.name not in ("config", "engines", "floors"):
            value = _as_given(value, given.here) if each.name in PLACES else value
            given.take(each.name, value, option_of(each.name))
    for engine, options in (overrides.engines or {}).items():
        for option, text in options.items():
            given.take_engine_option(engine, option, text, f"--engines.{engine}.{option}")
    for engine, measures in (overrides.floors or {}).items():
        for measure, value in measures.items():
            given.take_floor(engine, measure, value, f"--floors.{engine}.{measure}")


def _as_given(value: object, here: Path) -> object:
    return [_path(str(part), here) for part in value] if isinstance(value, tuple) else _path(str(value), here)


def _path(text: str, here: Path) -> str:
    # An empty path is left empty, to be refused: it would be the current folder.
    return text if not text or "://" in text else str(here / text)


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


def _validated(given: _Given) -> Config:
    """Return the configuration, less the options that are wrong: those are faults, and have their defaults."""
    try:
        config = Config.model_validate(given.values)
    except ValidationError as error:
        wrong = {str(found["loc"][0]) for found in error.errors()}
        given.refused |= wrong
        given.faults += faults_of(error, given.place)
        config = Config.model_validate({name: value for name, value in given.values.items() if name not in wrong})
    for option in PLACES:
        value = getattr(config, option)
        for path in value if isinstance(value, list) else [] if value is None else [value]:
            if ((not path and option in PATHS) or "\0" in path) and option != "golden":
                given.refused.add(option)  # of several golden sets the others count
            if not path and option in PATHS:
                given.fault((option,), "is empty", "name a file or folder")
            elif "\0" in path:
                given.fault((option,), f"holds a NUL character: {path!r}", "mend the path")
    if bool(config.judge_model) != bool(config.judge_prompt_version):
        lacking = "judge_prompt_version" if config.judge_model else "judge_model"
        given.fault((lacking,), "is empty where the other half of a judge is given", "pin a judge by both, or by none")
    return config


def faults_of(error: ValidationError, place: Callable[..., str]) -> list[Fault]:
    """Turn what pydantic found into faults that name the field and what to do.

    Args:
        error: what it found.
        place: says where the field was given whose path is its arguments.
    """
    faults = []
    for found in error.errors():
        where = place(*map(str, found["loc"]))
        if found["type"] == "extra_forbidden":
            faults.append(Fault(where, "unknown option", "remove it or mend its name"))
        elif found["type"] == "value_error":  # raised by a check of ours, which says it in full
            what, _, todo = str(found["ctx"]["error"]).partition("; ")
            faults.append(Fault(where, what, todo or "mend the value"))
        else:
            faults.append(Fault(where, f"{found['msg']} (given: {found['input']!r})", "mend the value"))
    return faults


def _golden_files(base: Path, golden: list[str], given: _Given) -> tuple[Path, ...]:
    found: list[Path] = []
    where = ("golden",)
    for name in golden:
        place = plain(base / name)
        if not name or "\0" in name:
            continue  # told already
        if place.is_dir():
            sets = sorted(place.glob("*.jsonl"))
            if not sets:
                given.fault(where, f"no .jsonl file in {place}", "put a golden set there")
            found += sets
        elif place.is_file():
            found.append(place)
        else:
            given.fault(where, f"no such file or folder: {place}", "mend the path")
    names: dict[str, Path] = {}
    for place in found:
        if not is_set_name(place.name):
            given.fault(
                where, f"the name of {place} is too long, not UTF-8, or holds control characters", "rename the file"
            )
        if place.stem in names and names[place.stem].resolve() != place.resolve():
            given.fault(where, f"two sets are called {place.stem}: {names[place.stem]}, {place}", "rename one")
        names[place.stem] = place
    if not golden:
        given.fault(where, "no golden set is named", "name at least one")
    return tuple(names[name] for name in sorted(names))


def _engines(engines: Mapping[str, Mapping[str, Any]], given: _Given) -> tuple[dict[str, Engine], dict[str, str]]:
    """Build every engine; return them, and the packages of those that are plug-ins."""
    known = plugins()
    built: dict[str, Engine] = {}
    packages: dict[str, str] = {}
    for name, options in sorted(engines.items()):
        kind = options.get("kind", name)
        try:
            built[name] = _engine(kind, name, {key: options[key] for key in options if key != "kind"}, given, known)
        except BadInput as error:
            given.faults += error.faults
        except ValidationError as error:
            given.faults += faults_of(error, partial(given.place, "engines", name))
        if isinstance(kind, str) and kind in known:
            packages[name] = known[kind].distribution
    if not engines:
        given.fault(("engines",), "no engine is named", f"name one of: {', '.join(sorted(ENGINES))}")
    # An engine that could not be built may be the one that another reads: that is told once.
    given.faults += [
        fault for source, fault in _unknown_sources(built, given) if source in built or source not in engines
    ]
    return built, packages


def _engine(kind: object, name: str, options: dict[str, Any], given: _Given, known: Plugins) -> Engine:
    if not isinstance(kind, str):
        raise BadInput([Fault(given.place("engines", name, "kind"), f"{kind!r} is no text", "name an engine")])
    if isinstance(options.get("path"), str):
        if "\0" in options["path"]:
            where = given.place("engines", name, "path")
            raise BadInput([Fault(where, f"holds a NUL character: {options['path']!r}", "mend the path")])
        options["path"] = str(given.file.parent / options["path"])
    try:
        of_kind = engine_class(kind, given.place("engines", name, *(["kind"] if kind != name else [])), known)
    except CannotLoad as error:
        return absent(kind, options, str(error))
    return of_kind(of_kind.Options.model_validate(options))


def sources_of(engine: Engine) -> tuple[str, ...]:
    """Return the names of the engines whose rankings an engine reads."""
    return engine.sources() if isinstance(engine, Borrower) else ()


def _unknown_sources(engines: Mapping[str, Engine], given: _Given) -> Iterator[tuple[str, Fault]]:
    plain = sorted(name for name, engine in engines.items() if not sources_of(engine))
    todo = f"name two of: {', '.join(plain)}"
    for name, engine in engines.items():
        for source in sources_of(engine):
            if source not in plain:
                what = f"it reads the rankings of {source!r}, which is no engine that it can read"
                yield source, Fault(given.place("engines", name), what, todo)


def _floor_faults(config: Config, given: _Given) -> Iterator[Fault]:
    """Yield what is wrong with floors beside their values: engines that are not configured, measures that are none."""
    written = given.values.get("floors")
    if not isinstance(written, dict) or not written:
        return
    from pipeline.scoring.outcomes import MEASURED

    for engine, floors in written.items():
        if engine not in config.engines and "engines" not in given.refused:
            todo = f"name one of: {', '.join(sorted(config.engines))}"
            where = given.place("floors", engine, *(list(floors)[:1] if isinstance(floors, dict) else ()))
            yield Fault(where, f"no engine is called {engine!r}", todo)
        for measure in floors if isinstance(floors, dict) else ():
            if measure not in MEASURED:
                near = difflib.get_close_matches(measure, MEASURED, n=5, cutoff=0.5) or ["recall@10", "ndcg@10"]
                todo = f"use a measure of the table metrics, such as: {', '.join(near)}"
                yield Fault(given.place("floors", engine, measure), f"no measure is called {measure!r}", todo)


def _not_run(engines: Mapping[str, Engine]) -> dict[str, str]:
    """Return why engines cannot run; one that reads the rankings of another cannot where the other cannot."""
    own = {name: engine.why_not() for name, engine in sorted(engines.items())}
    reasons: dict[str, str] = {}
    for name, engine in sorted(engines.items()):
        missing = [f"its source {source} is not run: {own[source]}" for source in sources_of(engine) if own.get(source)]
        reason = own[name] or "; ".join(missing)
        if reason:
            reasons[name] = reason
    return reasons
