"""The ledger: what people and judges said, append-only, in SQLite by default and in PostgreSQL by URL.

``ledger`` opens it, adds to it in transactions and reads it as of a position; ``tables`` says what it holds;
``migrations`` make the tables, and the triggers and rights by which the database itself refuses to change a row. Here
stands what a night needs that uses no ledger, so that it loads no database library.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import AssayError, BadInput, Fault, Outage, one_line

KeptRow = Mapping[str, Any]
"""A row of a table of the ledger, by column."""

FILE = "ledger.sqlite"
"""Name of the default ledger, in the folder of the store."""
VERSION = "0002"
"""The migration that the code needs; they are numbered in the order of time."""
VERSION_TABLE = "ledger_version"
"""Its own name, because a database may be shared with another program that uses Alembic."""
RESULTS = ("golden_items", "concepts", "decisions", "qrels")
"""The tables that scores depend on."""
_SQLITE = "sqlite:///"
_POSTGRESQL = "postgresql+psycopg2://"
BUSY_SECONDS = 60
"""How long a writer waits for its turn in SQLite."""
_PASSING = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_FULL", "SQLITE_CANTOPEN", "SQLITE_READONLY")
"""What may be over at the next try. All else that SQLite says of a file does not mend by itself."""
_TODO = f"give the path of a file, or {_POSTGRESQL}user@host/database"


def url_of(place: str, base: Path) -> str:
    """Return the URL of a ledger that is named by a path, relative to ``base``, or by a URL.

    Raises:
        BadInput: a URL of another kind, or none; it is not repeated, because it may hold a password.
    """
    if "://" not in place:
        return _SQLITE + str((base / place).absolute())
    if place.startswith(_SQLITE):
        return _SQLITE + str((base / place.removeprefix(_SQLITE)).absolute())
    for scheme in ("postgresql://", "postgres://", _POSTGRESQL):
        if place.startswith(scheme):
            if place.count("@") > 1:
                todo = "write `@` and `/` in a name or password as %40 and %2F"
                raise BadInput([Fault("ledger", "is no URL: it has several `@`", todo)])
            return _POSTGRESQL + place.removeprefix(scheme)
    raise BadInput([Fault("ledger", f"{place.partition('://')[0]!r} is no kind of ledger", _TODO)])


def sqlite_file(url: str) -> Path | None:
    """Return the file of a ledger in SQLite; None for another one."""
    return Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else None


def shown(url: str) -> str:
    """Return the URL of a ledger without the password that it may hold."""
    return re.sub(r"(://[^/@:]*):[^@/]*@", r"\1:***@", url)


def results_position(url: str, as_of: int | None = None) -> int:
    """Return the position of the last row, up to ``as_of``, that can change a result: 0 where there is none.

    Failures and what became of them change none, and the judgments of exemplars and citations follow from the golden
    sets: a night that notes them is the same night again. Nothing is made that is not there.

    Raises:
        BadInput: what is there is no ledger, is damaged or of a later release; or it ends before ``as_of``.
        Outage: it is out of reach.
    """
    if as_of == 0:
        return 0
    file = sqlite_file(url)
    if file is None:
        from pipeline.ledger.ledger import existing_ledger

        with existing_ledger(url) as ledger:
            last = 0 if ledger is None else ledger.position()
            found = 0 if ledger is None else ledger.results_position(as_of)
    else:
        upto = "" if as_of is None else f" WHERE position <= {int(as_of)}"
        but = " AND " if upto else " WHERE "
        highest = " UNION ALL ".join(
            f"SELECT max(position) AS position FROM {name}{upto}"
            + (f"{but}source <> 'provenance'" if name == "qrels" else "")
            for name in RESULTS
        )
        last = found = 0
        with _reading(file) as connection:
            if connection is not None:
                (last,) = connection.execute("SELECT coalesce(max(position), 0) FROM commits").fetchone()
                (found,) = connection.execute(f"SELECT coalesce(max(position), 0) FROM ({highest})").fetchone()
    if as_of is not None and as_of > last:
        raise BadInput([Fault("as_of", f"is {as_of}, and the ledger ends at {last}", "give a position that it has")])
    return int(found)


class Kept(NamedTuple):
    """What a ledger keeps in place of files, as of a position: rows of its tables, in the order of adding."""

    golden_items: Sequence[KeptRow] = ()
    concepts: Sequence[KeptRow] = ()
    decisions: Sequence[KeptRow] = ()


_KEPT_JSON = {"golden_items": "item", "concepts": "concept", "decisions": "decision"}
"""The column of each of these tables that holds JSON."""
_IN_A_TRANSACTION = ("id", "golden_set", "query_id", "item_version", "concept_id", "version")


def kept_rows(url: str, as_of: int) -> Kept:
    """Return what a ledger keeps in place of files, as of a position.

    Raises:
        BadInput: what is there is no ledger, is damaged or of a later release.
        Outage: it is out of reach.
    """
    if as_of == 0:
        return Kept()
    file = sqlite_file(url)
    if file is None:
        from pipeline.ledger.ledger import existing_ledger
        from pipeline.ledger.tables import TABLES

        with existing_ledger(url) as ledger:
            if ledger is None:
                return Kept()
            return Kept(**{name: ledger.rows(TABLES[name], as_of) for name in _KEPT_JSON})
    with _reading(file) as connection:
        if connection is None:
            return Kept()
        connection.row_factory = sqlite3.Row
        return Kept(**{name: _kept_in_file(connection, name, column, as_of) for name, column in _KEPT_JSON.items()})


def _kept_in_file(connection: sqlite3.Connection, table: str, column: str, as_of: int) -> list[KeptRow]:
    found = connection.execute(f"SELECT * FROM {table} WHERE position <= ?", [as_of])
    rows: list[KeptRow] = [{**row, column: json.loads(row[column])} for row in found]
    return sorted(rows, key=lambda row: [row["position"], *(row[name] for name in _IN_A_TRANSACTION if name in row)])


def has_commit(url: str, what: str) -> bool:
    """Return whether a transaction that did ``what`` stands in the ledger.

    Raises:
        BadInput: what is there is no ledger, is damaged or of a later release.
        Outage: it is out of reach.
    """
    file = sqlite_file(url)
    if file is None:
        from pipeline.ledger.ledger import existing_ledger
        from pipeline.ledger.tables import COMMITS

        with existing_ledger(url) as ledger:
            return ledger is not None and bool(ledger.rows(COMMITS, what=what))
    with _reading(file) as connection:
        if connection is None:
            return False
        return connection.execute("SELECT 1 FROM commits WHERE what = ? LIMIT 1", [what]).fetchone() is not None


@contextmanager
def _reading(file: Path) -> Iterator[sqlite3.Connection | None]:
    """Read a ledger in SQLite with what Python brings; None where there is none yet. Nothing is made or migrated."""
    if not file.exists():
        yield None
        return
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            versions = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}") if VERSION_TABLE in names else ()
            check_version(str(file), names, [version for (version,) in versions])
            yield connection if names else None
    except sqlite3.Error as error:
        raise trouble_in(str(file), error) from None


def check_version(shown: str, tables: set[str], versions: list[str]) -> None:
    """Refuse a database that has other tables than those of a ledger, or a ledger that this release cannot read.

    Args:
        shown: where the database is, without a password.
        tables: those of the database that must be a ledger's, if there are any.
        versions: the rows of the table of versions.

    Raises:
        BadInput: it is no ledger, lost its version, or is of a later release.
    """
    if tables and VERSION_TABLE not in tables:
        todo = "name another place for the ledger"
        raise BadInput([Fault(shown, f"is no ledger: it has a table {min(tables)!r} and no {VERSION_TABLE!r}", todo)])
    if tables and len(versions) != 1:
        todo = "put a copy of it back"
        raise BadInput([Fault(shown, f"is damaged: {VERSION_TABLE!r} has {len(versions)} rows and not 1", todo)])
    if versions and versions[0] > VERSION:
        todo = "use the release of Assay that wrote it, or a later one"
        raise BadInput([Fault(shown, f"its version {versions[0]!r} is not known here", todo)])


def trouble_in(shown: str, error: sqlite3.Error) -> AssayError:
    """Return what SQLite says of the ledger at ``shown`` as an error of ours: an outage, or input that stays bad."""
    told = one_line(str(error).strip())
    # Errors that Python's own module raises have no name.
    name = getattr(error, "sqlite_errorname", None) or ""
    if name.startswith(_PASSING) and not Path(shown.removeprefix(_SQLITE)).is_dir():
        return Outage(f"the ledger {shown}: {told}; see that it can be reached, and run again")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return BadInput(
            [Fault(shown, f"is no ledger, or is damaged: {told}", "put a copy of it back, or name another")]
        )
    return BadInput([Fault(shown, f"cannot be read as a ledger: {told}", _TODO)])
