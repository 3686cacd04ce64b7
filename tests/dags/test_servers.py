"""`make up`: Airflow's servers come up, run the nightly DAG, and die with the command, however it dies."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import PROJECT, feed_bytes


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def project(examples: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    shutil.copytree(examples / "config", folder / "config")
    shutil.copytree(PROJECT / "dags", folder / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "build").symlink_to(examples / "build")
    return folder


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(project: Path) -> Iterator[Start]:
    started = []

    def run(port: int, **more: str) -> subprocess.Popen[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "ASSAY"))}
        environment = {**kept, "PYTHONPATH": str(PROJECT), "AIRFLOW_HOME": str(project / ".airflow"), **more}
        command = [sys.executable, "-m", "pipeline.servers", "--port", str(port)]
        started.append(
            subprocess.Popen(
                command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()
    for leftover in running(project):
        leftover.kill()


def running(project: Path) -> list[psutil.Process]:
    """The processes in this project's folder: Airflow renames its processes, but leaves them where they are."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd() == str(project) and alive(process):
                found.append(process)
    return found


def alive(process: psutil.Process) -> bool:
    """Whether it still runs; what waits to be reaped by the system's first process does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if done():
            return True
        time.sleep(0.3)
    return done()


class Api:
    """Airflow's REST API, with the token of the user whose password was printed."""

    def __init__(self, port: int, password: str) -> None:
        self._base = f"http://127.0.0.1:{port}"
        self._token = ""
        self._token = self("POST", "/auth/token", {"username": "admin", "password": password})["access_token"]

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            self._base + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
        )
        with urllib.request.urlopen(request, timeout=180) as answer:
            return json.load(answer)


def first_lines(process: subprocess.Popen[str]) -> str:
    """What the command prints until it is up."""
    assert process.stdout is not None
    lines = ""
    for line in process.stdout:
        lines += line
        if line.startswith("The nightly schedule is on"):
            return lines
    assert process.stderr is not None
    raise AssertionError(lines + process.stderr.read())


@pytest.mark.airflow
@pytest.mark.slow
@pytest.mark.xdist_group("airflow")
def test_the_servers_run_a_night_and_die_with_a_command_that_is_killed(
    start: Start, project: Path, finished: Path
) -> None:
    port = free_port()
    process = start(port)
    told = first_lines(process)
    assert f"http://127.0.0.1:{port}" in told
    (password,) = re.findall(r"password (\S+)", told)
    api = Api(port, password)

    assert wait_until(
        lambda: any(dag["dag_id"] == "nightly_evaluation" for dag in api("GET", "/api/v2/dags")["dags"]), 60
    )
    # The scheduler runs the night that was missed at the same time; this one waits for it.
    run = api("POST", "/api/v2/dags/nightly_evaluation/dagRuns", {"logical_date": None})
    path = f"/api/v2/dags/nightly_evaluation/dagRuns/{run['dag_run_id']}"
    wait_until(lambda: api("GET", path)["state"] in ("success", "failed"), 480)
    assert api("GET", path)["state"] == "success"
    # The scheduler may have run the weekly study besides.
    of_runs = {name: digest for name, digest in feed_bytes(project / ".assay").items() if not name.startswith("study=")}
    assert of_runs == feed_bytes(finished)

    below = psutil.Process(process.pid).children(recursive=True)
    assert len(below) > 5 and len(running(project)) > 5
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert wait_until(lambda: not running(project), 40), [one.cmdline() for one in running(project)]
    assert [one for one in below if alive(one)] == []


@pytest.mark.airflow
@pytest.mark.slow
@pytest.mark.xdist_group("airflow")
@pytest.mark.parametrize("victim", ["the command, by Ctrl-C", "the guard"])
def test_nothing_is_left_whichever_process_ends_first(start: Start, project: Path, victim: str) -> None:
    process = start(free_port())
    told = first_lines(process)
    assert "password" in told
    (guard,) = psutil.Process(process.pid).children()
    if victim == "the guard":
        guard.kill()
        assert process.wait(60) == 1
        assert process.stderr is not None and "ended by itself" in process.stderr.read()
    else:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert running(project) == []


def test_a_port_that_is_taken_is_refused_before_anything_starts(start: Start, project: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = start(taken.getsockname()[1])
        _, told = process.communicate(timeout=60)
    assert process.returncode == 2
    assert len(told.splitlines()) == 1 and "make up PORT=" in told
    assert not (project / ".airflow").exists()
