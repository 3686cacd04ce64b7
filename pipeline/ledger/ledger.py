"""Opening a ledger, adding to it, and reading it as of a position.

A transaction takes the next position under a lock that lasts until it ends. So positions have no gap, and whoever read
up to a position never sees another row there later.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic import JsonValue
from ulid import ULID

from pipeline.errors import AssayError, BadInput, Fault, Outage, one_line
from pipeline.ledger import (
    BUSY_SECONDS,
    RESULTS,
    VERSION,
    VERSION_TABLE,
    check_version,
    sqlite_file,
    trouble_in,
)
from pipeline.ledger.tables import APPLICATION, COMMITS, TABLES

Row = Mapping[str, JsonValue]

_LOCK = 0x4153534159
"""Key of the lock in PostgreSQL under which positions are taken."""
_MIGRATIONS = Path(__file__).parent / "migrations"
_WRITES = "ledger_writes"
_PERMANENT = re.compile(
    r'(database|role|user) ".*" (does not exist|is not permitted)|authentication failed|pg_hba\.conf'
)
"""What PostgreSQL says at the door and goes on saying, however often one comes back."""
_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_TRANSACTIONS = {sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT}


class Addition:
    """A transaction that adds rows at one position. What it reads, it reads as of now, with no other writer beside."""

    def __init__(self, connection: sa.Connection, position: int, at: datetime, what: str) -> None:
        self._connection = connection
        self._at = at
        self._what = what
        self._is_noted = False
        self.position = position
        self.created_at = milliseconds(at)
        """Time of all its rows."""

    def new_id(self) -> str:
        """Return an id that no other row has. Those of one process and one moment rise."""
        return str(ULID.from_datetime(self._at))

    def add(self, table: sa.Table, rows: Iterable[Row]) -> None:
        """Add rows, all columns but the position."""
        listed = [{**row, "position": self.position} for row in rows]
        if listed:
            self.note()
            self._connection.execute(table.insert(), listed)

    def note(self) -> None:
        """Note the deed, which takes the position. Adding does it; a deed that adds nothing leaves no trace without."""
        if not self._is_noted:
            self._is_noted = True
            noted = {"id": self.new_id(), "created_at": self.created_at, "what": self._what}
            self._connection.execute(COMMITS.insert(), [{**noted, "position": self.position}])

    def rows(self, table: sa.Table, **equal: JsonValue) -> list[dict[str, Any]]:
        """Return the rows whose columns are ``equal``, those that it added itself too, in the order of adding."""
        return _rows(self._connection, table, None, equal)

    def last(self, column: sa.Column[Any], **equal: JsonValue) -> int:
        """Return the highest value of a column among the rows whose columns are ``equal``; 0 where there is none."""
        wanted = sa.select(sa.func.coalesce(sa.func.max(column), 0)).where(*_where(column.table, equal))
        return int(self._connection.execute(wanted).scalar_one())


class Ledger:
    """An open ledger. It may be shared by threads, but each process opens its own."""

    def __init__(self, engine: sa.Engine, shown: str) -> None:
        self._engine = engine
        self.shown = shown
        """Where it is, without a password."""

    def position(self) -> int:
        """Return the position of the last transaction; 0 where there was none.

        Raises:
            Outage: the database is out of reach.
        """
        with self._told(), self._engine.connect() as connection:
            return _last_position(connection)

    def results_position(self, as_of: int | None = None) -> int:
        """Return the position of the last row, up to ``as_of``, that can change a result; 0 where there is none.

        Raises:
            Outage: the database is out of reach.
        """
        with self._told(), self._engine.connect() as connection:
            highest = {name: sa.select(sa.func.max(TABLES[name].c.position)) for name in RESULTS}
            highest["qrels"] = highest["qrels"].where(TABLES["qrels"].c.source != "provenance")
            if as_of is not None:
                highest = {name: wanted.where(TABLES[name].c.position <= as_of) for name, wanted in highest.items()}
            return max(connection.execute(wanted).scalar_one() or 0 for wanted in highest.values())

    @contextmanager
    def adding(self, what: str, at: datetime) -> Iterator[Addition]:
        """Add rows in one transaction: all of them, or none where the block raises or the process dies.

        A transaction that adds nothing takes no position.

        Args:
            what: the deed, for whoever reads the log.
            at: the time; it stamps the rows, and orders nothing.

        Raises:
            Outage: the database is out of reach, or other writers did not end in time.
        """
        with self._told(), self._engine.execution_options(**{_WRITES: True}).begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            position = _last_position(connection) + 1
            with _at_position(connection, position):
                yield Addition(connection, position, at, what)

    def rows(self, table: sa.Table, as_of: int | None = None, **equal: JsonValue) -> list[dict[str, Any]]:
        """Return the rows up to the position ``as_of`` whose columns are ``equal``, in the order of adding.

        Raises:
            Outage: the database is out of reach.
        """
        with self._told(), self._engine.connect() as connection:
            return _rows(connection, table, as_of, equal)

    def close(self) -> None:
        """Let its connections go."""
        self._engine.dispose()

    @contextmanager
    def _told(self) -> Iterator[None]:
        with _told(self.shown):
            yield


def open_ledger(url: str) -> Ledger:
    """Open the ledger at ``url``, and make or migrate it where that is needed.

    Raises:
        BadInput: the URL is wrong, or the ledger is of a later release.
        Outage: the database is out of reach.
    """
    parsed, shown = _parsed(url)
    with _told(shown):
        file = sqlite_file(url)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        owner = _engine(parsed)
        try:
            if _version(owner, shown) != VERSION:
                _migrate(owner)
        finally:
            owner.dispose()
        return Ledger(_engine(parsed, role=APPLICATION), shown)


@contextmanager
def existing_ledger(url: str) -> Iterator[Ledger | None]:
    """Open the ledger at ``url`` to read it as it is; None where there is none yet. Nothing is made or migrated.

    Raises:
        BadInput: the URL is wrong, or what is there is no ledger, is damaged or of a later release.
        Outage: the database is out of reach.
    """
    parsed, shown = _parsed(url)
    file = sqlite_file(url)
    if file is not None and not file.exists():
        yield None
        return
    with _told(shown):
        owner = _engine(parsed)
        try:
            version = _version(owner, shown)
        finally:
            owner.dispose()
        ledger = None if version is None else Ledger(_engine(parsed, role=APPLICATION), shown)
    try:
        yield ledger
    finally:
        if ledger is not None:
            ledger.close()


def _parsed(url: str) -> tuple[sa.URL, str]:
    """Return a URL, and how it is shown."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise BadInput([Fault("ledger", "is no URL of a database", "see docs/ledger.md")]) from None
    return parsed, parsed.render_as_string(hide_password=True)


def milliseconds(at: datetime) -> str:
    """Return a time in UTC as text, with milliseconds and ``Z``."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Connection(sqlite3.Connection):
    """A connection to a ledger in SQLite, and the position at which its open transaction adds; None outside of one."""

    position: int | None = None


def _engine(url: sa.URL, role: str | None = None) -> sa.Engine:
    """Return an engine of the owner, who makes and migrates tables, or of a role, which reads and adds."""
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS, "factory": _Connection})
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        if role is not None:
            # After the first connection, in which SQLAlchemy asks for what an application has no need of.
            engine.connect().close()
            engine.dispose()
            sa.event.listen(engine, "connect", _allow_reading_and_adding)
        return engine
    # A later statement must see what was committed while its transaction waited for the lock.
    engine = sa.create_engine(url, isolation_level="READ COMMITTED", pool_pre_ping=True)
    if role is not None:

        @sa.event.listens_for(engine, "connect")
        def _take_role(connection: Any, record: object) -> None:
            with connection.cursor() as cursor:
                cursor.execute(f"SET ROLE {role}")
            connection.commit()

    return engine


def _set_up_sqlite(connection: _Connection, record: object) -> None:
    # The library begins transactions late, and ends them before it makes tables; here SQLAlchemy alone begins them.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA recursive_triggers = ON")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA trusted_schema = ON")
    # The triggers ask it at which position they may let rows in. Other programs have no such function, and add nothing.
    connection.create_function("ledger_position", 0, lambda: connection.position)


def _allow_reading_and_adding(connection: _Connection, record: object) -> None:
    """Refuse everything else before it runs: SQLite knows no roles, and a trigger can be dropped by whoever writes."""

    def allowed(action: int, first: str | None, second: str | None, database: str | None, inside: str | None) -> int:
        if action in _READS or action in _TRANSACTIONS:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_INSERT and first in TABLES and database == "main":
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    connection.set_authorizer(allowed)


@contextmanager
def _at_position(connection: sa.Connection, position: int) -> Iterator[None]:
    """Let this transaction add rows at a position, and no other after it. PostgreSQL knows by itself who took it."""
    there = connection.connection.dbapi_connection
    if not isinstance(there, _Connection):
        yield
        return
    there.position = position
    try:
        yield
    finally:
        there.position = None


def _begin_sqlite(connection: sa.Connection) -> None:
    # Whoever will write takes the lock before he reads, so that what he read still holds when he writes.
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _version(engine: sa.Engine, shown: str) -> str | None:
    with engine.connect() as connection:
        tables = set(sa.inspect(connection).get_table_names())
        if connection.dialect.name == "postgresql":
            tables &= {*TABLES, VERSION_TABLE}  # it may be shared with other programs
        versions = []
        if VERSION_TABLE in tables:
            asked: sa.Select[Any] = sa.select(sa.column("version_num")).select_from(sa.table(VERSION_TABLE))
            versions = list(connection.execute(asked).scalars())
        check_version(shown, tables, versions)
        return versions[0] if versions else None


def _migrate(engine: sa.Engine) -> None:
    from alembic import command
    from alembic.config import Config

    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            # Not inside a transaction; the file keeps it. Readers and the one writer do not wait for each other.
            connection.exec_driver_sql("ROLLBACK")
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            connection.exec_driver_sql("BEGIN")
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    with engine.execution_options(**{_WRITES: True}).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        config.attributes.update(connection=connection, version_table=VERSION_TABLE)
        command.upgrade(config, VERSION)


def _last_position(connection: sa.Connection) -> int:
    return int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(COMMITS.c.position), 0))).scalar_one())


def _rows(
    connection: sa.Connection, table: sa.Table, as_of: int | None, equal: Mapping[str, JsonValue]
) -> list[dict[str, Any]]:
    wanted = sa.select(table).where(*_where(table, equal))
    if as_of is not None:
        wanted = wanted.where(table.c.position <= as_of)
    key = [table.c[name] for name in ("id", "golden_set", "query_id", "item_version", "version") if name in table.c]
    found = connection.execute(wanted).mappings()
    # Sorted here: databases order text by different rules.
    return sorted(
        (dict(row) for row in found), key=lambda row: [row["position"], *(row[column.name] for column in key)]
    )


def _where(table: Any, equal: Mapping[str, JsonValue]) -> list[sa.ColumnElement[bool]]:
    return [table.c[name] == value for name, value in equal.items()]


@contextmanager
def _told(shown: str) -> Iterator[None]:
    """Say of trouble with the database where it is, but not with which password."""
    try:
        yield
    except AssayError:
        raise
    except sa.exc.DBAPIError as error:
        raise _trouble(shown, error) from None


def _trouble(shown: str, error: sa.exc.DBAPIError) -> Exception:
    if isinstance(error.orig, sqlite3.IntegrityError):
        return error  # a rule of a table or a trigger: a fault of ours
    if isinstance(error.orig, sqlite3.Error):
        return trouble_in(shown, error.orig)
    told = one_line(str(error.orig).strip())
    if getattr(error.orig, "pgcode", None) == "42501":  # insufficient_privilege
        todo = f"have its owner open it once, and GRANT {APPLICATION} to this user"
        return BadInput([Fault(f"the ledger {shown}", told, todo)])
    if not isinstance(error, sa.exc.OperationalError):
        return error
    if _PERMANENT.search(told):
        return BadInput([Fault(f"the ledger {shown}", told, "see docs/ledger.md")])
    return Outage(f"the ledger {shown}: {told}; see that the database can be reached, and run again")
