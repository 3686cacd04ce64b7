"""Runs contenders in turn: A B A B, each time in a new process, on one core and one thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contests import Contender

CONTENDERS = Path(__file__).parent / "contenders"
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
)
SLOWED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Variables that some machines set for old builds of OpenBLAS, and that slow a new one. All contenders run without."""
SECONDS = 1800
"""The longest that a contender may take."""

Figures = Mapping[str, Any]


def interpreter(program: Path, uv: str) -> str:
    """Return the Python of a contender: of the environment that its first lines describe, which is made where needed.

    A program that describes none runs in the environment of the project.
    """
    if not program.read_text(encoding="utf-8").startswith("# /// script"):
        return sys.executable
    subprocess.run([uv, "sync", "--quiet", "--script", str(program)], check=True)
    found = subprocess.run([uv, "python", "find", "--script", str(program)], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def in_turn(
    contenders: Sequence[Contender], source: Path, repeats: int, uv: str, work: Path
) -> Iterator[tuple[Contender, Figures]]:
    """Run every contender, then every one again, ``repeats`` times or its own limit; yield the figures of each run.

    Figures of a run that failed hold its last words under ``failed``, and it is not run again.
    """
    pythons = {each.program: interpreter(CONTENDERS / each.program, uv) for each in contenders}
    failed: set[Contender] = set()
    for repeat in range(repeats):
        for contender in contenders:
            if contender in failed or (contender.runs is not None and repeat >= contender.runs):
                continue
            figures = _run(contender, pythons[contender.program], source, work)
            if "failed" in figures:
                failed.add(contender)
            yield contender, figures


def _run(contender: Contender, python: str, source: Path, work: Path) -> Figures:
    output = work / "figures.json"
    output.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if name not in SLOWED}
    environment |= {**ONE_THREAD, "NUMBA_CACHE_DIR": str(work / "numba")}
    if python == sys.executable:
        environment["PYTHONPATH"] = str(CONTENDERS.parent.parent)
    else:
        environment.pop("PYTHONPATH", None)
    command = [python, str(CONTENDERS / contender.program), contender.task, str(source), str(output)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"failed": f"took longer than {SECONDS} s"}
    if done.returncode or not output.exists():
        return {"failed": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]}
    return json.loads(output.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
