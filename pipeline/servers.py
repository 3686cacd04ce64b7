"""Airflow's web interface, scheduler and DAG processor on this machine, for as long as the command runs.

The command starts a guard, and the guard starts the servers, all in one process group. A pipe from the command to the
guard tells when the command has ended, however it ended: then the guard ends all that it started and whatever those
started, processes that made a group of their own included. Where the guard itself is killed, the command does the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config import DEFAULT_FILE, Overrides, load
from pipeline.errors import AssayError, BadInput, Fault, Unsound
from pipeline.orchestration import prepare_airflow

if TYPE_CHECKING:
    import psutil

HOST = "127.0.0.1"
USER = "admin"
SERVERS: Mapping[str, tuple[str, ...]] = {
    "api-server": ("api-server", "--host", HOST, "--workers", "1", "--port"),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
}
"""Each server by name, in the order in which they start, and its words; the port follows the last word of the first."""
START_SECONDS = 180.0
"""Time in which the servers must be healthy."""
END_SECONDS = 15.0
"""Time that processes have to end by themselves."""
_SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of Linux: orphans below this process become its children."""


def main(port: int = 8080) -> None:
    """Start the servers, say where they are, and stay until Ctrl-C, SIGTERM, or one of them ends."""
    try:
        sys.exit(up(port))
    except AssayError as error:
        print(f"assay: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def up(port: int) -> int:
    """Run the servers until they are told to end; return the exit code.

    Raises:
        BadInput: the configuration is wrong, or the port is taken.
        Unsound: a server ended, or they were not healthy in time.
    """
    load(Overrides(config=Path(os.environ.get("ASSAY_CONFIG") or DEFAULT_FILE).absolute()))
    _refuse_a_taken_port(port)
    home = Path(os.environ.get("AIRFLOW_HOME") or ".airflow").absolute()
    prepare_airflow(home)
    password = _prepare_servers(home, port)
    logs = home / "servers"
    logs.mkdir(exist_ok=True)
    print(f"Airflow starts: half a minute, a little more the first time. Logs: {logs}", flush=True)
    _migrate(logs / "migrate.log")
    with _Stop() as stop:
        guard, lifeline = _start_guard(port, logs)
        try:
            _wait_until_healthy(port, guard, stop, logs)
            if not stop.told:
                _say_where(port, password, home)
            while not stop.told and _runs(guard):
                time.sleep(0.2)
            if not stop.told:
                raise Unsound(f"a server of Airflow ended by itself; see {logs}")
        finally:
            os.close(lifeline)
            _outlive(guard)
    print("Airflow has ended.")
    return 0


class _Stop:
    """Notes SIGINT, SIGTERM and SIGHUP instead of ending at once."""

    def __init__(self) -> None:
        self.told = False

    def __enter__(self) -> _Stop:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def _note(self, number: int, frame: object) -> None:
        self.told = True


def _refuse_a_taken_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            raise BadInput(
                [Fault(f"port {port}", f"cannot be used ({error})", "name another: make up PORT=8081")]
            ) from None


def _prepare_servers(home: Path, port: int) -> str | None:
    """Set what the servers read, beside what every run of Airflow does; return the password if it was made just now."""
    passwords = home / "passwords.json"
    made = None if passwords.exists() else secrets.token_urlsafe(12)
    if made is not None:
        passwords.touch(mode=0o600)
        passwords.write_text(json.dumps({USER: made}), encoding="ascii")
    address = f"http://{HOST}:{port}"
    for name, value in {
        "AIRFLOW__API__BASE_URL": address,
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/",
        # A machine that is busy starting three servers answers late; the default of five seconds fails the first task.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
    }.items():
        os.environ.setdefault(name, value)
    return made


def _migrate(log: Path) -> None:
    """Migrate Airflow's database where its version changed, in a process that gives its memory back."""
    code = "from pipeline.orchestration import migrate; migrate()"
    with log.open("ab") as file:
        done = subprocess.run([sys.executable, "-c", code], stdout=file, stderr=file, check=False)
    if done.returncode != 0:
        raise Unsound(f"Airflow's database cannot be made ready; see {log}")


def _outlive(guard: psutil.Process) -> None:
    """Wait until the guard has ended all; then end what it left, which is nothing unless it was killed."""
    deadline = time.monotonic() + 2 * END_SECONDS
    while _runs(guard) and time.monotonic() < deadline:
        time.sleep(0.05)
    _end_all_below(os.getpid())


# --- the guard --------------------------------------------------------------------------------------------------------


def _start_guard(port: int, logs: Path) -> tuple[psutil.Process, int]:
    """Start the guard; return it and the end of the pipe that must stay open for as long as it shall go on."""
    import psutil

    _adopt_orphans()
    watched, lifeline = os.pipe()
    guard = os.fork()
    if guard == 0:
        os.close(lifeline)
        os._exit(_guard(port, logs, watched))
    os.close(watched)
    return psutil.Process(guard), lifeline


def _guard(port: int, logs: Path, watched: int) -> int:
    """Start the servers and end them once the command has ended, or one of them has. Returns the exit code."""
    os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _adopt_orphans()
    waiting = list(SERVERS.items())
    started: list[subprocess.Popen[bytes]] = []
    while running := all(server.poll() is None for server in started):
        # Tasks report to the web server: until it answers, none may be started.
        if waiting and (not started or _answers(port)):
            started.append(_start(*waiting.pop(0), port, logs))
        told, _, _ = select.select([watched], [], [], 0.2)
        if told:
            break
    _end_all_below(os.getpid())
    return 0 if running else 1


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False


def _start(name: str, words: tuple[str, ...], port: int, logs: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "airflow", *words, *([str(port)] if words[-1] == "--port" else [])]
    with (logs / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=_heed_signals,
        )


def _heed_signals() -> None:
    """Undo in a server what the guard ignores: an ignored signal stays ignored in what is started."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def _end_all_below(root: int) -> None:
    """End every process below ``root`` that still runs: first by asking, then by force."""
    import psutil

    asked: set[psutil.Process] = set()
    deadline = time.monotonic() + END_SECONDS
    while below := {one for one in psutil.Process(root).children(recursive=True) if _runs(one)}:
        late = time.monotonic() > deadline
        for process in below if late else below - asked:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill() if late else process.terminate()
        asked |= below
        time.sleep(0.05)


def _runs(process: psutil.Process) -> bool:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


# --- what the command shows -------------------------------------------------------------------------------------------


def _wait_until_healthy(port: int, guard: psutil.Process, stop: _Stop, logs: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not stop.told and not _healthy(port):
        if not _runs(guard):
            raise Unsound(f"a server of Airflow ended while it started; see {logs}")
        if time.monotonic() > deadline:
            raise Unsound(f"Airflow is not healthy after {START_SECONDS:.0f} s; see {logs}")
        time.sleep(0.3)


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/api/v2/monitor/health", timeout=5) as answer:
            states = json.load(answer)
    except (OSError, ValueError):
        return False
    return all(states[name]["status"] == "healthy" for name in ("metadatabase", "scheduler", "dag_processor"))


def _say_where(port: int, password: str | None, home: Path) -> None:
    shown = f"password {password}" if password else f"the password stands in {home / 'passwords.json'}"
    print(f"Airflow is up: http://{HOST}:{port}  user {USER}, {shown}")
    print(
        "The nightly schedule is on while it is up, and a night that was missed runs at once. Ctrl-C ends it.",
        flush=True,
    )


if __name__ == "__main__":
    from cyclopts import run

    run(main)
