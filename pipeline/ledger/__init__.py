"""The ledger: what people and judges said, append-only, in SQLite by default and in PostgreSQL by URL.

``ledger`` opens it, adds to it in transactions and reads it as of a position; ``tables`` says what it holds;
``migrations`` make the tables, and the triggers and rights by which the database itself refuses to change a row. Here
stands what a night needs that uses no ledger, so that it loads no database library.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from pipeline.errors import BadInput, Fault
from pipeline.store import canonical_json

FILE = "ledger.sqlite"
"""Name of the default ledger, in the folder of the store."""
RESULTS = ("golden_items", "concepts", "decisions", "qrels")
"""The tables that scores depend on."""
_BUT_PROVENANCE = " WHERE source <> 'provenance'"
_SQLITE = "sqlite:///"
_POSTGRESQL = "postgresql+psycopg2://"
_TODO = f"give the path of a file, or {_POSTGRESQL}user@host/database"


def url_of(place: str, base: Path) -> str:
    """Return the URL of a ledger that is named by a path, relative to ``base``, or by a URL.

    Raises:
        BadInput: a URL of another kind; it is not repeated, because it may hold a password.
    """
    if "://" not in place:
        return _SQLITE + str((base / place).absolute())
    if place.startswith(_SQLITE):
        return _SQLITE + str((base / place.removeprefix(_SQLITE)).absolute())
    for scheme in ("postgresql://", "postgres://", _POSTGRESQL):
        if place.startswith(scheme):
            return _POSTGRESQL + place.removeprefix(scheme)
    raise BadInput([Fault("ledger", f"{place.partition('://')[0]!r} is no kind of ledger", _TODO)])


def sqlite_file(url: str) -> Path | None:
    """Return the file of a ledger in SQLite; None for another one."""
    return Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else None


def shown(url: str) -> str:
    """Return the URL of a ledger without the password that it may hold."""
    return re.sub(r"(://[^/@:]*):[^@/]*@", r"\1:***@", url)


def results_position(url: str) -> int:
    """Return the position of the last row that can change a result: 0 where there is none.

    Failures and what became of them change none, and the judgments of exemplars and citations follow from the golden
    sets: a night that notes them is the same night again. Nothing is made that is not there.
    """
    file = sqlite_file(url)
    if file is None:
        from pipeline.ledger.ledger import open_ledger

        with closing(open_ledger(url)) as ledger:
            return ledger.results_position()
    if not file.is_file():
        return 0
    try:
        with closing(sqlite3.connect(file, timeout=60)) as connection:
            highest = " UNION ALL ".join(
                f"SELECT max(position) AS position FROM {name}" + (_BUT_PROVENANCE if name == "qrels" else "")
                for name in RESULTS
            )
            (position,) = connection.execute(f"SELECT coalesce(max(position), 0) FROM ({highest})").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return 0
        raise BadInput([Fault(str(file), f"cannot be read as a ledger: {error}", _TODO)]) from None
    except sqlite3.DatabaseError as error:
        raise BadInput([Fault(str(file), f"is no ledger: {error}", _TODO)]) from None
    return int(position)


def kept_items(url: str, as_of: int) -> dict[str, list[str]]:
    """Return the items of the golden sets that a ledger keeps, as of a position: the lines of each set, by its name."""
    file = sqlite_file(url)
    if as_of == 0:
        return {}
    rows: Iterable[tuple[str, str]]
    if file is None:
        from pipeline.ledger.ledger import open_ledger
        from pipeline.ledger.tables import GOLDEN_ITEMS

        with closing(open_ledger(url)) as ledger:
            rows = [(row["golden_set"], canonical_json(row["item"])) for row in ledger.rows(GOLDEN_ITEMS, as_of)]
    else:
        wanted = "SELECT golden_set, item FROM golden_items WHERE position <= ? ORDER BY query_id, item_version"
        with closing(sqlite3.connect(file, timeout=60)) as connection:
            rows = connection.execute(wanted, [as_of]).fetchall()
    sets: dict[str, list[str]] = {}
    for name, line in sorted(rows):
        sets.setdefault(name, []).append(line)
    return sets
