from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.taps.profile import Kind, classify, in_skill, kind_of_file, skill_folders

NAMES = st.sampled_from(
    [
        b"SKILL.md",
        b"skill.md",
        b"README.md",
        b"a.md",
        b"B.MD",
        b"x.mdc",
        b".cursorrules",
        b"agents",
        b"docs",
        b".git",
        b"z",
    ]
)
PATHS = st.lists(NAMES, min_size=1, max_size=5).map(b"/".join)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (b"skills/pdf/SKILL.md", "skill"),
        (b"SKILL.md", "skill"),
        (b"skills/pdf/SKILL.MD", "maybe_workflow"),
        (b"skills/pdf/skill.md", "maybe_workflow"),
        (b"rules/go.mdc", "rule"),
        (b"rules/GO.MDC", "rule"),
        (b"agents/readme.mdc", "rule"),
        (b"a/.cursorrules", "rule"),
        (b".windsurfrules", "rule"),
        (b".clinerules", "rule"),
        (b".CursorRules", None),
        (b"a/.cursorrules.txt", None),
        (b"agents/go.md", "workflow"),
        (b"x/SubAgents/y/go.MD", "workflow"),
        (b"Commands/go.md", "workflow"),
        (b"workflows/go.txt", None),
        (b"agents.md", "maybe_workflow"),
        (b"agents/README.md", None),
        (b"agents/Code_Of_Conduct.md", None),
        (b"agents/_index.md", None),
        (b"agents/readme.zh.md", "workflow"),
        (b"docs/go.md", "maybe_workflow"),
        (b"docs/notice.MD", None),
        (b".git/agents/go.md", None),
        (b"agents/__pycache__/go.md", None),
        (b"src/go.py", None),
        (b'agents/odd \xff\n" name .md', "workflow"),
        (b"-agents/ -x.md", "maybe_workflow"),
    ],
)
def test_a_path_outside_skills_is_what_the_rules_say(path: bytes, kind: Kind | None) -> None:
    assert classify(path, frozenset()) == kind


def test_all_below_a_skill_belongs_to_it_except_further_skills() -> None:
    skills = skill_folders([b"a/SKILL.md", b"a/b/c/SKILL.md"])
    assert skills == {b"a", b"a/b/c"}
    assert classify(b"a/commands/x.md", skills) is None
    assert classify(b"a/b/x.mdc", skills) is None
    assert classify(b"a/b/c/SKILL.md", skills) == "skill"
    assert classify(b"ab/x.mdc", skills) == "rule"


def test_a_skill_at_the_root_owns_the_whole_tree() -> None:
    skills = skill_folders([b"SKILL.md", b"agents/x.md"])
    assert classify(b"agents/x.md", skills) is None


def test_a_skill_below_a_skipped_folder_is_none() -> None:
    assert skill_folders([b"a/__pycache__/SKILL.md", b".git/SKILL.md"]) == frozenset()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (b"src/a.PY", ".py"),
        (b"Makefile", "no extension"),
        (b".gitignore", "no extension"),
        (b"a.tar.gz", ".gz"),
        (b"a.", "other extension"),
        (b"a.\xff", "other extension"),
        (b"a.an-extension-too-long", "other extension"),
        (b"x/README.md", ".md"),
        (b"skill/notes.md", "part of a skill"),
        (b"skill/.git/config", "skipped"),
    ],
)
def test_a_file_that_is_no_entry_has_a_kind(path: bytes, kind: str) -> None:
    assert kind_of_file(path, {b"skill"}) == kind


@settings(deadline=None)
@given(st.permutations([b"a/SKILL.md", b"a/b/SKILL.md", b"SKILL.MD", b"c/x.md", b"c/SKILL.md/y.md"]))
def test_the_order_of_paths_never_matters(paths: list[bytes]) -> None:
    assert skill_folders(paths) == {b"a", b"a/b"}


@settings(deadline=None)
@given(st.sets(PATHS, max_size=12))
def test_inside_a_skill_only_skills_are_entries(paths: set[bytes]) -> None:
    skills = skill_folders(paths)
    kinds = {classify(path, skills) for path in paths if in_skill(path, skills)}
    assert kinds <= {"skill", None}
