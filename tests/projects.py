"""A small project of one git tap, over which a night takes seconds: for tests of what people write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.taps.gitforge import Files, Repository

TAP = "acme/skills"
SKILLS: Mapping[str, str] = {
    "git": "Rebase a branch, squash commits, stash changes aside.",
    "pdf": "Read the text of a pdf page by page.",
    "csv": "Sum the columns of a csv table.",
    "sql": "Write a query over a database table.",
}


class Project(NamedTuple):
    """A folder with a configuration, golden sets and concepts over one tap."""

    folder: Path
    pin: str

    @property
    def options(self) -> list[str]:
        """The words that every command needs."""
        return ["--config", str(self.folder / "assay.toml")]

    @property
    def ledger(self) -> Path:
        """The default ledger."""
        return self.folder / "store" / "ledger.sqlite"

    def write(self, name: str, *rows: Mapping[str, object] | str) -> Path:
        """Write a file of JSON Lines; a text stands there as it is."""
        path = self.folder / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path


def small_project(folder: Path, **options: object) -> Project:
    """Make a project whose only golden set, `first`, is right."""
    files: Files = {
        f"{name}/SKILL.md": f"---\nname: {name}\ndescription: A skill.\n---\n{body}\n".encode()
        for name, body in SKILLS.items()
    }
    pin = Repository(folder / "skills.git").commit(files)
    made = Project(folder, pin)
    (folder / "taps.toml").write_text(f'[[tap]]\nname = "{TAP}"\nurl = "skills.git"\npin = "{pin}"\nrole = "target"\n')
    given = {"store": "store", "taps": "taps.toml", "golden": ["golden"], "concepts": "concepts.jsonl", "orders": 0}
    lines = [f"{key} = {json.dumps(value)}" for key, value in {**given, **options}.items()]
    (folder / "assay.toml").write_text("\n".join(lines) + "\n")
    made.write("concepts", {"conceptId": "rebase", "name": "rebase"})
    made.write("golden/first", {"queryId": "g", "question": "squash commits", "exemplar": f"{TAP}::git/SKILL.md"})
    return made
