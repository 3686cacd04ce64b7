"""What tests of several parts share: the real registries, where somebody named their folder."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipeline.cli import main

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real registries that CORPORA names."""
    named = os.environ.get("CORPORA")
    if not named:
        pytest.skip("CORPORA names no folder of real registries")
    folder = Path(named)
    if not (folder / "unpack.py").is_file():
        pytest.fail(f"CORPORA={named} holds no unpack.py")
    return folder


@pytest.fixture(scope="session")
def registries(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real registries, unpacked once; the folder holds taps.toml and the bare repositories."""
    folder = tmp_path_factory.mktemp("registries")
    subprocess.run([sys.executable, str(corpora / "unpack.py"), str(folder)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project folder whose embedded registries are built: config/ beside build/examples/."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "config").symlink_to(PROJECT / "config")
    (folder / "dags").symlink_to(PROJECT / "dags")
    subprocess.run(
        [sys.executable, str(PROJECT / "examples" / "build.py"), str(folder / "build" / "examples")],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(autouse=True)
def no_options_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A developer's own ASSAY_ variables must not steer a test."""
    for name in [name for name in os.environ if name.startswith("ASSAY_")]:
        monkeypatch.delenv(name)
    yield


class Ended(NamedTuple):
    """How a command ended."""

    exit_code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed for machines."""
        return json.loads(self.out)


@pytest.fixture
def assay(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """The command, run in this process."""

    def run(*words: object) -> Ended:
        capsys.readouterr()
        exit_code = 0
        try:
            main([str(word) for word in words])
        except SystemExit as ended:
            exit_code = int(ended.code or 0)
        return Ended(exit_code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def finished(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which one night over the embedded registries was finished. Not to be written to: copy it."""
    store = tmp_path_factory.mktemp("finished") / "store"
    main(["run", "--config", str(examples / "config" / "assay.toml"), "--store", str(store), "--json"])
    return store


@pytest.fixture
def stored(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished store, to do with as a test likes."""
    return Path(shutil.copytree(finished, tmp_path / "stored"))


POSTGRESQL_URL = os.environ.get("POSTGRESQL_URL")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Any]:
    """The engine of a PostgreSQL server on which databases may be made: the one that is named, or a local one."""
    import sqlalchemy as sa

    place = POSTGRESQL_URL or "postgresql+psycopg2://postgres@127.0.0.1:5432/postgres"
    engine = sa.create_engine(place, isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 5})
    try:
        engine.connect().close()
    except sa.exc.OperationalError as error:
        if POSTGRESQL_URL:
            pytest.fail(f"POSTGRESQL_URL names no server that answers: {error.orig}")
        pytest.skip("no PostgreSQL server on 127.0.0.1:5432; name another with POSTGRESQL_URL")
    yield engine
    engine.dispose()


@pytest.fixture
def postgresql(postgresql_server: Any) -> Iterator[str]:
    """The URL of an empty database, removed after the test."""
    name = f"assay_test_{uuid.uuid4().hex}"
    with postgresql_server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    yield postgresql_server.url.set(database=name).render_as_string(hide_password=False)
    with postgresql_server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a ledger that is not there yet, in each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'new' / 'ledger.sqlite'}"
    found: str = request.getfixturevalue("postgresql")
    return found


def feed_bytes(store: Path) -> dict[str, str]:
    """Return the digest of every file of the feed but for circumstances: nights, and what followed what."""
    feed = store / "feed"
    return {
        str(path.relative_to(feed)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(feed.rglob("*"))
        if path.is_file() and path.parent.name not in ("nights", "lineage")
    }
