"""Write a published run as TREC files: rankings, what answers the questions, and how they were made."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pipeline.errors import BadInput, Fault
from pipeline.reports.feed import find_run, read_run
from pipeline.reports.trec import TABLES, Exported, TrecFile
from pipeline.workspace import Workspace


class Export(NamedTuple):
    """What was written."""

    run_id: str
    files: list[TrecFile]


def export(workspace: Workspace, folder: Path, run: str | None = None, header: bool = False) -> Export:
    """Write the files of a run into ``folder``, each in one step. The same run gives the same bytes.

    Args:
        workspace: where the feed lies.
        folder: where the files go; other files in it are left alone.
        run: the run, by the first digits of its id; the one published last unless given.
        header: whether run files begin with their metadata, in comment lines that not every tool skips.

    Raises:
        BadInput: there is no such run, or ``folder`` is a file.
        MissingArtifact: nothing was published yet.
    """
    if folder.exists() and not folder.is_dir():
        raise BadInput([Fault(str(folder), "is a file", "name a folder")])
    run_id = find_run(workspace.store, run)
    files = Exported(read_run(workspace.store, run_id, TABLES)).files(header)
    for file in files:
        workspace.store.replace(folder / file.name, file.text.encode("ascii"))
    return Export(run_id, files)
