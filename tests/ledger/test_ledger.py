from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from pipeline.errors import BadInput, Outage
from pipeline.ledger import VERSION, VERSION_TABLE, Kept, has_commit, kept_rows, results_position, url_of
from pipeline.ledger import ledger as ledger_module
from pipeline.ledger.ledger import Ledger, existing_ledger, open_ledger
from pipeline.ledger.tables import COMMITS, CONCEPTS, FEEDBACK, METADATA, TABLES

AT = datetime(2026, 7, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    opened = open_ledger(ledger_url)
    yield opened
    opened.close()


def add(ledger: Ledger, *names: str) -> int:
    with ledger.adding("test", AT) as addition:
        addition.add(CONCEPTS, [{"concept_id": name, "version": 1, "concept": {"name": name}} for name in names])
    return addition.position


def names(ledger: Ledger, as_of: int | None = None) -> list[str]:
    return [row["concept_id"] for row in ledger.rows(CONCEPTS, as_of)]


def owner(url: str) -> sa.Engine:
    return sa.create_engine(url)


def test_a_transaction_has_the_next_position_and_its_rows_have_it_too(ledger: Ledger) -> None:
    assert [add(ledger, "a", "b"), add(ledger, "c")] == [1, 2]
    assert ledger.position() == 2
    rows = ledger.rows(CONCEPTS)
    assert [(row["concept_id"], row["position"], row["concept"]["name"]) for row in rows] == [
        ("a", 1, "a"),
        ("b", 1, "b"),
        ("c", 2, "c"),
    ]


def test_a_position_shows_what_was_known_then(ledger: Ledger) -> None:
    add(ledger, "a")
    then = ledger.position()
    add(ledger, "b")
    assert names(ledger, then) == ["a"]
    assert names(ledger, 0) == []


def test_a_transaction_that_fails_leaves_no_row_and_no_gap(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="cut off"), ledger.adding("test", AT) as addition:
        addition.add(CONCEPTS, [{"concept_id": "half", "version": 1, "concept": {}}])
        raise ValueError("cut off")
    assert (names(ledger), ledger.position(), ledger.rows(COMMITS)) == ([], 0, [])
    assert add(ledger, "whole") == 1


def test_times_have_milliseconds_and_ids_rise(ledger: Ledger) -> None:
    with ledger.adding("test", AT) as addition:
        ids = [addition.new_id() for _ in range(50)]
    assert addition.created_at == "2026-07-01T12:00:00.123Z"
    assert ids == sorted(ids)
    assert {len(each) for each in ids} == {26}


def test_the_migrations_make_what_the_code_reads(ledger: Ledger, ledger_url: str) -> None:
    made = sa.MetaData()
    made.reflect(owner(ledger_url))
    assert {name: set(table.columns.keys()) for name, table in made.tables.items() if name != VERSION_TABLE} == {
        name: set(table.columns.keys()) for name, table in METADATA.tables.items()
    }


def test_the_last_migration_is_the_one_that_the_code_needs() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(ledger_module.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == VERSION


REFUSED = (sa.exc.IntegrityError, sa.exc.InternalError, sa.exc.ProgrammingError, sa.exc.DatabaseError)


def _row_in_each(ledger: Ledger) -> None:
    with ledger.adding("test", AT) as addition:
        key: dict[str, Any] = {"golden_set": "s", "query_id": "q"}
        by: dict[str, Any] = {"id": addition.new_id(), "created_at": addition.created_at}
        judged = {"grade": 3, "source": "provenance", "judge": "", "judged_sha256": "0" * 64, "seq": 1}
        empty = dict.fromkeys(("judge_model", "prompt_version", "verdict_id", "annotator", "rationale", "doc_id"))
        failed: dict[str, Any] = {
            "key": "k",
            "source": "user",
            "run_id": None,
            "engine": None,
            "failure_class": "x",
            "evidence": {},
        }
        rows: dict[str, dict[str, Any]] = {
            "golden_items": key | {"item_version": 1, "item": {}},
            "concepts": {"concept_id": "c", "version": 1, "concept": {}},
            "decisions": key | by | {"decision": {}},
            "qrels": by | judged | empty | {"query_id": "q", "chunk_id": "class:0"},
            "feedback": key | by | failed,
            "feedback_events": by
            | {"feedback_id": by["id"], "seq": 1, "event": "triaged", "by_whom": "p", "detail": {}},
        }
        for name, row in rows.items():
            addition.add(TABLES[name], [row])


def test_no_connection_changes_or_removes_a_row(ledger: Ledger, ledger_url: str) -> None:
    _row_in_each(ledger)
    before = {name: ledger.rows(table) for name, table in TABLES.items()}
    assert {len(rows) for rows in before.values()} == {1}
    with owner(ledger_url).connect() as as_owner, ledger._engine.connect() as as_application:
        for name in TABLES:
            statements = [f"UPDATE {name} SET position = position", f"DELETE FROM {name}"]
            if ledger_url.startswith("postgresql"):
                statements.append(f"TRUNCATE {name} CASCADE")
            else:
                columns = ", ".join(TABLES[name].columns.keys())
                statements.append(f"INSERT OR REPLACE INTO {name} ({columns}) SELECT {columns} FROM {name}")
            for connection in (as_owner, as_application):
                for statement in statements:
                    with pytest.raises(REFUSED):
                        connection.exec_driver_sql(statement)
                    connection.rollback()
    assert {name: ledger.rows(table) for name, table in TABLES.items()} == before


def test_the_application_has_no_right_to_change_a_row_whatever_the_triggers_say(postgresql: str) -> None:
    ledger = open_ledger(postgresql)
    with ledger._engine.connect() as application:
        assert application.exec_driver_sql("SELECT current_user").scalar() == "assay_application"
        asked = sa.text("SELECT has_table_privilege(:name, :right)")
        rights = [
            (name, right)
            for name in [*TABLES, VERSION_TABLE]
            for right in ("UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
            if application.execute(asked, {"name": name, "right": right}).scalar()
        ]
    ledger.close()
    assert rights == []


def test_nothing_is_added_to_the_past(ledger: Ledger, ledger_url: str) -> None:
    add(ledger, "a")
    add(ledger, "b")
    for position in (1, 3):
        with pytest.raises(REFUSED), owner(ledger_url).begin() as connection:
            connection.execute(
                CONCEPTS.insert(), {"position": position, "concept_id": "late", "version": 1, "concept": {}}
            )
    assert names(ledger) == ["a", "b"]


def test_a_later_transaction_adds_nothing_at_a_position_that_was_read(ledger: Ledger) -> None:
    add(ledger, "a")
    late = {"concept_id": "late", "version": 1, "concept": {}}
    for before in ("SELECT 1", "CREATE TEMP TABLE commits (position BIGINT)"):
        with pytest.raises(REFUSED), ledger._engine.begin() as connection:
            connection.exec_driver_sql(before)
            if before != "SELECT 1":
                connection.exec_driver_sql("INSERT INTO commits VALUES (1)")
            connection.execute(CONCEPTS.insert(), {"position": 1, **late})
    assert names(ledger) == ["a"]


def test_the_application_cannot_take_the_triggers_away(ledger: Ledger, ledger_url: str) -> None:
    _row_in_each(ledger)
    ways = ["DROP TABLE qrels", "ALTER TABLE qrels RENAME TO other", "CREATE TABLE other (x TEXT)"]
    if ledger_url.startswith("postgresql"):
        ways += ["DROP TRIGGER qrels_no_change ON qrels", "ALTER TABLE qrels DISABLE TRIGGER ALL"]
        ways += ["DROP FUNCTION ledger_refuse() CASCADE", "SET session_replication_role = replica"]
    else:
        ways += ["DROP TRIGGER qrels_no_delete", "PRAGMA writable_schema = ON", "PRAGMA recursive_triggers = OFF"]
        ways += ["DELETE FROM sqlite_schema", "UPDATE sqlite_schema SET sql = ''", "ATTACH ':memory:' AS other"]
        ways += ["INSERT INTO qrels SELECT * FROM qrels WHERE true ON CONFLICT DO UPDATE SET grade = 0"]
    for way in ways:
        with ledger._engine.connect() as connection, pytest.raises(REFUSED):
            connection.exec_driver_sql(way)
    with pytest.raises(REFUSED), ledger._engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM qrels")
    assert len(ledger.rows(TABLES["qrels"])) == 1


def test_a_row_that_breaks_a_rule_of_its_table_is_refused(ledger: Ledger) -> None:
    _row_in_each(ledger)
    qrel = ledger.rows(TABLES["qrels"])[0]
    for wrong in ({"grade": 4}, {"source": "llm"}, {"chunk_id": None}, {"annotator": "a"}):
        with pytest.raises(REFUSED), ledger.adding("test", AT) as addition:
            addition.add(TABLES["qrels"], [{**qrel, "id": addition.new_id(), "seq": 2, **wrong}])


def test_threads_that_add_at_once_get_positions_without_a_gap(ledger_url: str) -> None:
    positions: list[int] = []

    def write(name: int) -> None:
        ledger = open_ledger(ledger_url)  # the first to come makes it, the others wait
        positions.extend(add(ledger, f"{name}-{number}") for number in range(5))
        ledger.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(positions) == list(range(1, 31))


def test_a_night_learns_the_position_without_loading_a_database_library(tmp_path: Path) -> None:
    url = url_of("ledger.sqlite", tmp_path)
    assert results_position(url) == 0
    assert not (tmp_path / "ledger.sqlite").exists()
    add(open_ledger(url), "a")
    code = f"import sys, pipeline.ledger as at; print(at.results_position({url!r}), 'sqlalchemy' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["1", "False"]


def test_what_is_kept_in_place_of_files_is_read_alike_from_both_databases(ledger: Ledger, ledger_url: str) -> None:
    assert kept_rows(ledger_url, 0) == Kept()
    _row_in_each(ledger)
    add(ledger, "later")
    kept = kept_rows(ledger_url, 2)
    assert [(row["concept_id"], row["concept"]) for row in kept.concepts] == [("c", {}), ("later", {"name": "later"})]
    assert [(row["query_id"], row["item"], row["position"]) for row in kept.golden_items] == [("q", {}, 1)]
    assert [row["decision"] for row in kept.decisions] == [{}]
    assert [row["concept_id"] for row in kept_rows(ledger_url, 1).concepts] == ["c"]


def test_failures_change_no_result_so_they_move_no_run(ledger: Ledger, ledger_url: str) -> None:
    _row_in_each(ledger)
    with ledger.adding("test", AT) as addition:
        row = ledger.rows(FEEDBACK)[0]
        addition.add(FEEDBACK, [{**row, "id": addition.new_id(), "key": "another"}])
        qrel = ledger.rows(TABLES["qrels"])[0]
        addition.add(TABLES["qrels"], [{**qrel, "id": addition.new_id(), "seq": 2}])
    assert (ledger.position(), ledger.results_position(), results_position(ledger_url)) == (2, 1, 1)


def _write_text(file: Path) -> None:
    file.write_bytes(b"no database, but long enough to be looked at" * 30)


def _cut_off(file: Path) -> None:
    add(_made(file), "a")
    _settle(file)
    file.write_bytes(file.read_bytes()[:5000])


def _overwrite(file: Path) -> None:
    add(_made(file), "a")
    _settle(file)
    data = bytearray(file.read_bytes())
    data[100:] = b"x" * (len(data) - 100)
    file.write_bytes(data)


def _of_another_program(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
        connection.execute("CREATE TABLE qrels (query TEXT)")
        connection.commit()


def _without_version(file: Path) -> None:
    _made(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"DELETE FROM {VERSION_TABLE}")
        connection.commit()


def _of_a_later_release(file: Path) -> None:
    _made(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
        connection.commit()


def _made(file: Path) -> Ledger:
    return open_ledger(url_of(str(file), file.parent))


def _settle(file: Path) -> None:
    """Bring what lies in the log into the file."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for beside in ("-wal", "-shm"):
        Path(f"{file}{beside}").unlink(missing_ok=True)


@pytest.mark.parametrize(
    "spoil",
    [_write_text, _cut_off, _overwrite, _of_another_program, _without_version, _of_a_later_release, Path.mkdir],
)
def test_what_is_no_ledger_is_bad_input_for_whoever_reads_or_writes_and_stays_as_it_is(
    spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    file = tmp_path / "x.sqlite"
    spoil(file)
    before = None if file.is_dir() else file.read_bytes()
    url = url_of("x.sqlite", tmp_path)
    uses: list[Callable[[], object]] = [
        lambda: results_position(url),
        lambda: kept_rows(url, 1),
        lambda: has_commit(url, "night"),
        lambda: add(open_ledger(url), "b"),
    ]
    for use in uses:
        with pytest.raises(BadInput, match=r"x\.sqlite"):
            use()
    assert before is None or file.read_bytes() == before


def test_a_database_that_others_use_too_may_hold_the_ledger_unless_names_collide(postgresql: str) -> None:
    with owner(postgresql).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE customers (name TEXT)")
    opened = open_ledger(postgresql)
    assert add(opened, "a") == 1
    opened.close()
    with owner(postgresql).begin() as connection:
        connection.exec_driver_sql(f"DELETE FROM {VERSION_TABLE}")
    with pytest.raises(BadInput, match="is damaged"):
        open_ledger(postgresql)


def test_a_database_or_user_that_is_not_there_is_bad_input_and_no_outage(postgresql_server: sa.Engine) -> None:
    there = postgresql_server.url
    for wrong in (there.set(database="assay_no_such_database"), there.set(username="assay_no_such_user")):
        url = wrong.render_as_string(hide_password=False)
        with pytest.raises(BadInput, match="does not exist"):
            open_ledger(url)


def test_a_ledger_of_the_first_version_is_read_as_it_is_and_migrated_by_who_adds(
    ledger_url: str, tmp_path: Path
) -> None:
    (tmp_path / "new").mkdir()
    made = owner(ledger_url)
    config = Config()
    config.set_main_option("script_location", str(Path(ledger_module.__file__).parent / "migrations"))
    with made.begin() as connection:
        config.attributes.update(connection=connection, version_table=VERSION_TABLE)
        command.upgrade(config, "0001")
    with made.begin() as connection:
        connection.execute(COMMITS.insert(), {"position": 1, "id": "old", "created_at": "then", "what": "night"})
        connection.execute(CONCEPTS.insert(), {"position": 1, "concept_id": "a", "version": 1, "concept": {}})
    assert (results_position(ledger_url), has_commit(ledger_url, "night")) == (1, True)
    with existing_ledger(ledger_url) as as_it_is:
        assert as_it_is is not None
        assert names(as_it_is) == ["a"]
    with made.connect() as connection:
        assert connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar() == "0001"
    opened = open_ledger(ledger_url)
    assert add(opened, "b") == 2
    assert names(opened) == ["a", "b"]
    opened.close()


def test_nothing_is_made_by_whoever_only_reads(ledger_url: str, tmp_path: Path) -> None:
    assert (results_position(ledger_url), kept_rows(ledger_url, 1), has_commit(ledger_url, "x")) == (0, Kept(), False)
    with existing_ledger(ledger_url) as ledger:
        assert ledger is None
    if ledger_url.startswith("postgresql"):
        assert sa.inspect(owner(ledger_url)).get_table_names() == []
    assert list(tmp_path.iterdir()) == []


def test_a_position_that_the_ledger_does_not_have_yet_is_bad_input(ledger: Ledger, ledger_url: str) -> None:
    with pytest.raises(BadInput, match="ends at 0"):
        results_position(ledger_url, 1)
    add(ledger, "a")
    with ledger.adding("of no result", AT) as addition:
        addition.note()
    with ledger.adding("nothing", AT):
        pass
    assert [results_position(ledger_url, as_of) for as_of in (0, 1, 2)] == [0, 1, 1]
    with pytest.raises(BadInput, match="is 3, and the ledger ends at 2"):
        results_position(ledger_url, 3)


def test_a_position_asked_of_a_ledger_that_is_not_there_makes_none(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="ends at 0"):
        results_position(url_of("ledger.sqlite", tmp_path), 500)
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_never_shown() -> None:
    with pytest.raises(Outage) as caught:
        open_ledger("postgresql+psycopg2://someone:secret-word@127.0.0.1:1/none")
    assert "secret-word" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)
    with pytest.raises(BadInput) as wrong:
        url_of("mysql://someone:secret-word@host/db", Path())
    assert "secret-word" not in str(wrong.value)
    with pytest.raises(BadInput) as several:
        url_of("postgresql://someone:s/ecret@word@host/db", Path())
    assert not any(part in str(several.value) for part in ("ecret", "word@"))


def test_a_ledger_of_a_later_release_is_refused(ledger: Ledger, ledger_url: str) -> None:
    with owner(ledger_url).begin() as connection:
        connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(BadInput, match="9999"):
        open_ledger(ledger_url)


def test_a_user_who_may_only_add_works_and_cannot_migrate(postgresql_server: sa.Engine, postgresql: str) -> None:
    opened = open_ledger(postgresql)
    name = sa.make_url(postgresql).database
    with postgresql_server.connect() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {name} LOGIN PASSWORD 'p'")
        connection.exec_driver_sql(f"GRANT assay_application TO {name}")
    try:
        login = sa.make_url(postgresql).set(username=name, password="p").render_as_string(hide_password=False)
        plain = open_ledger(login)
        assert add(plain, "a") == 1
        with pytest.raises(sa.exc.ProgrammingError), plain._engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE qrels DISABLE TRIGGER ALL")
        assert plain.rows(FEEDBACK) == []
        plain.close()
    finally:
        opened.close()
        with postgresql_server.connect() as connection:
            connection.exec_driver_sql(f"DROP ROLE {name}")
