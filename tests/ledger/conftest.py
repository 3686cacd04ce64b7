"""A new ledger for each test: a file, and a database of the PostgreSQL server that is found, if one is."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from pipeline.ledger.ledger import Ledger, open_ledger

NAMED = os.environ.get("POSTGRESQL_URL")
SERVER = NAMED or "postgresql+psycopg2://postgres@127.0.0.1:5432/postgres"


@pytest.fixture(scope="session")
def server() -> Iterator[sa.Engine]:
    """A PostgreSQL server on which databases may be made."""
    engine = sa.create_engine(SERVER, isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 5})
    try:
        engine.connect().close()
    except sa.exc.OperationalError as error:
        if NAMED:
            pytest.fail(f"POSTGRESQL_URL names no server that answers: {error.orig}")
        pytest.skip("no PostgreSQL server on 127.0.0.1:5432; name another with POSTGRESQL_URL")
    yield engine
    engine.dispose()


@pytest.fixture
def postgresql(server: sa.Engine) -> Iterator[str]:
    """The URL of an empty database, removed after the test."""
    name = f"assay_test_{uuid.uuid4().hex}"
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield sa.make_url(SERVER).set(database=name).render_as_string(hide_password=False)
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a ledger that is not there yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'new' / 'ledger.sqlite'}"
    found: str = request.getfixturevalue("postgresql")
    return found


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    """An empty ledger."""
    opened = open_ledger(url)
    yield opened
    opened.close()
