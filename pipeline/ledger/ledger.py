"""Opening a ledger, adding to it, and reading it as of a position.

A transaction takes the next position under a lock that lasts until it ends. So positions have no gap, and whoever read
up to a position never sees another row there later.
"""

from __future__ import annotations

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
from pipeline.ledger import RESULTS, sqlite_file
from pipeline.ledger.tables import APPLICATION, COMMITS, TABLES, VERSION, VERSION_TABLE

Row = Mapping[str, JsonValue]

BUSY_SECONDS = 60
"""How long a writer waits for its turn."""
_LOCK = 0x4153534159
"""Key of the lock in PostgreSQL under which positions are taken."""
_MIGRATIONS = Path(__file__).parent / "migrations"
_WRITES = "ledger_writes"


class Addition:
    """A transaction that adds rows at one position. What it reads, it reads as of now, with no other writer beside."""

    def __init__(self, connection: sa.Connection, position: int, at: datetime) -> None:
        self._connection = connection
        self._at = at
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
            self._connection.execute(table.insert(), listed)

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

    def results_position(self) -> int:
        """Return the position of the last row that can change a result; 0 where there is none.

        Raises:
            Outage: the database is out of reach.
        """
        with self._told(), self._engine.connect() as connection:
            highest = {name: sa.select(sa.func.max(TABLES[name].c.position)) for name in RESULTS}
            highest["qrels"] = highest["qrels"].where(TABLES["qrels"].c.source != "provenance")
            return max(connection.execute(wanted).scalar_one() or 0 for wanted in highest.values())

    @contextmanager
    def adding(self, what: str, at: datetime) -> Iterator[Addition]:
        """Add rows in one transaction: all of them, or none where the block raises or the process dies.

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
            addition = Addition(connection, position, at)
            addition.add(COMMITS, [{"id": addition.new_id(), "created_at": addition.created_at, "what": what}])
            yield addition

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
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise BadInput([Fault("ledger", "is no URL of a database", "see docs/ledger.md")]) from None
    shown = parsed.render_as_string(hide_password=True)
    with _told(shown):
        file = sqlite_file(url)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        owner = _engine(parsed)
        try:
            version = _version(owner)
            if version != VERSION:
                _migrate(owner, shown)
        finally:
            owner.dispose()
        return Ledger(_engine(parsed, role=APPLICATION), shown)


def milliseconds(at: datetime) -> str:
    """Return a time in UTC as text, with milliseconds and ``Z``."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _engine(url: sa.URL, role: str | None = None) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS})
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
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


def _set_up_sqlite(connection: sqlite3.Connection, record: object) -> None:
    # The library begins transactions late, and ends them before it makes tables; here SQLAlchemy alone begins them.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA recursive_triggers = ON")
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: sa.Connection) -> None:
    # Whoever will write takes the lock before he reads, so that what he read still holds when he writes.
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _version(engine: sa.Engine) -> str | None:
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table(VERSION_TABLE):
            return None
        return connection.execute(sa.select(sa.column("version_num")).select_from(sa.table(VERSION_TABLE))).scalar()


def _migrate(engine: sa.Engine, shown: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            # Not inside a transaction; the file keeps it. Readers and the one writer do not wait for each other.
            connection.exec_driver_sql("ROLLBACK")
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            connection.exec_driver_sql("BEGIN")
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    try:
        with engine.execution_options(**{_WRITES: True}).begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            config.attributes.update(connection=connection, version_table=VERSION_TABLE)
            command.upgrade(config, VERSION)
    except CommandError as error:
        todo = "use the release of Assay that wrote it, or a later one"
        raise BadInput([Fault(shown, f"its version is not known here ({error})", todo)]) from None


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
    except sa.exc.OperationalError as error:
        told = one_line(str(error.orig).strip())
        raise Outage(f"the ledger {shown}: {told}; see that the database can be reached, and run again") from None
    except sa.exc.ProgrammingError as error:
        if getattr(error.orig, "pgcode", None) != "42501":  # insufficient_privilege
            raise
        told = one_line(str(error.orig).strip())
        todo = f"have its owner open it once, and GRANT {APPLICATION} to this user"
        raise BadInput([Fault(f"the ledger {shown}", told, todo)]) from None
