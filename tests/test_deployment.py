"""docker-compose.yml is accepted, and its Airflow talks to a real PostgreSQL."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT

SECRETS = {"AIRFLOW_DB_PASSWORD": "a", "AIRFLOW_JWT_SECRET": "b"}


def compose(**environment: str) -> subprocess.CompletedProcess[str]:
    import compose as package

    program = Path(str(package.__file__)).parent / "docker-compose"
    return subprocess.run(
        [str(program), "-f", str(PROJECT / "docker-compose.yml"), "config", "--format", "json"],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_compose_accepts_the_file() -> None:
    done = compose(**SECRETS)
    assert done.returncode == 0, done.stderr
    assert '"postgres"' in done.stdout and '"scheduler"' in done.stdout


@pytest.mark.parametrize("missing", SECRETS)
def test_compose_refuses_to_start_without_a_secret(missing: str) -> None:
    done = compose(**{name: value for name, value in SECRETS.items() if name != missing})
    assert done.returncode != 0
    assert missing in done.stderr


def test_nothing_is_published_beyond_this_machine() -> None:
    assert '"host_ip": "127.0.0.1"' in compose(**SECRETS).stdout
    assert compose(**SECRETS).stdout.count('"host_ip"') == compose(**SECRETS).stdout.count('"published"') == 1


@pytest.fixture
def database() -> Iterator[str]:
    """A new, empty PostgreSQL database, where a server answers on this machine."""
    psycopg2 = pytest.importorskip("psycopg2", reason="the extra `server` is not installed")
    try:
        admin = psycopg2.connect(host="127.0.0.1", user="postgres", dbname="postgres", connect_timeout=3)
    except psycopg2.OperationalError as error:
        pytest.skip(f"no PostgreSQL answers on 127.0.0.1: {error}")
    admin.autocommit = True
    name = f"assay_test_{secrets.token_hex(4)}"
    with admin.cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}"')
    yield f"postgresql+psycopg2://postgres@127.0.0.1:5432/{name}"
    with admin.cursor() as cursor:
        cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    admin.close()


@pytest.mark.airflow
@pytest.mark.slow
@pytest.mark.xdist_group("airflow")
def test_the_nightly_dag_runs_with_its_metadata_in_postgresql(database: str, examples: Path, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "ASSAY"))}
    environment = {
        **kept,
        "PYTHONPATH": str(PROJECT),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
        "ASSAY_STORE": str(tmp_path / "store"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.orchestration"],
        cwd=examples,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "recall@10" in done.stdout
    assert not (tmp_path / "airflow" / "airflow.db").exists()
