"""Listings of others: text rows, and the plugins of a marketplace in the form that Claude Code reads."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import BadInput
from pipeline.taps.taplist import read_tap_list
from tests.conftest import Ended

Assay = Callable[..., Ended]

SHA, OTHER = "0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef"


def github(repo: object, **more: object) -> dict[str, object]:
    return {"source": "github", "repo": repo, **more}


def url(url: object, kind: str = "url", **more: object) -> dict[str, object]:
    return {"source": kind, "url": url, **more}


def marketplace(folder: Path, *sources: object) -> Path:
    """Write a marketplace with one plugin a source: `one`, `two` and so on."""
    path = folder / "marketplace.json"
    names = ("one", "two", "three", "four", "five", "six", "seven", "eight")
    plugins = [{"name": name, "source": source} for name, source in zip(names, sources, strict=False)]
    document = {"name": "market", "owner": {"name": "Somebody"}, "plugins": plugins}
    path.write_text(json.dumps(document))
    return path


def imported(assay: Assay, listing: Path, *more: object) -> dict[str, Any]:
    output = listing.parent / "taps.toml"
    ended = assay("taps", "import", listing, "--output", output, "--json", *more)
    assert ended.exit_code == 0, ended.err
    document: dict[str, Any] = ended.json
    return document


def refused(assay: Assay, listing: Path) -> list[str]:
    ended = assay("taps", "import", listing, "--output", listing.parent / "taps.toml")
    assert ended.exit_code == 2
    assert not (listing.parent / "taps.toml").exists()
    return [line.removeprefix(f"assay: {listing} ") for line in ended.err.splitlines()]


def test_every_kind_of_source_is_a_tap_or_is_passed_over_with_a_reason(assay: Assay, tmp_path: Path) -> None:
    listing = marketplace(
        tmp_path,
        github("acme/tools", ref="v1.0", sha=SHA.upper()),
        url("https://gitlab.example/group/skills.git", sha=OTHER),
        url("https://github.com/Corp/mono.git", "git-subdir", path="plugins/x", ref="main", sha="a" * 40),
        url("corp/short", "git-subdir", path="plugins/x", sha="b" * 40),
        "./plugins/local",
        github("acme/moving", ref="main"),
        {"source": "npm", "package": "@acme/plugin"},
        url("git@git.example:team/repo.git", sha="c" * 64),
    )
    told = imported(assay, listing)
    taps = read_tap_list(tmp_path / "taps.toml").taps
    assert [(tap.name, tap.url, tap.pin) for tap in taps] == [
        ("acme/tools", "https://github.com/acme/tools", SHA),
        ("group/skills", "https://gitlab.example/group/skills.git", OTHER),
        ("Corp/mono", "https://github.com/Corp/mono", "a" * 40),
        ("corp/short", "https://github.com/corp/short", "b" * 40),
        ("team/repo", "git@git.example:team/repo.git", "c" * 64),
    ]
    assert [(each["plugin"], each["reason"]) for each in told["passed_over"]] == [
        ("five", "it lies in the marketplace's own repository (./plugins/local)"),
        ("six", "it has no sha, so that nothing pins it"),
        ("seven", "it comes from npm, which is no git repository"),
    ]
    assert len(told["taps"]) == 5


def test_the_plugins_of_one_repository_at_one_commit_are_one_tap_that_names_them(assay: Assay, tmp_path: Path) -> None:
    imported(
        assay,
        marketplace(
            tmp_path,
            github("acme/tools", sha=SHA),
            url("https://github.com/Acme/Tools.git", "git-subdir", path="plugins/two", sha=SHA),
        ),
    )
    assert len(read_tap_list(tmp_path / "taps.toml").taps) == 1
    assert "# plugins: one, two (plugins/two)\n[[tap]]" in (tmp_path / "taps.toml").read_text()


def test_every_fault_is_named_at_once_with_its_plugin(assay: Assay, tmp_path: Path) -> None:
    found = refused(
        assay,
        marketplace(
            tmp_path,
            github("acme/tools", sha=SHA),
            url("https://github.com/ACME/tools/", sha=OTHER),
            github("acme/other", sha="v1.2.3"),
            github("no-owner", sha="a" * 40),
            url("http://git.example/a/b", sha="b" * 40),
            url("https://git.example/acme/tools", sha="d" * 40),
            {"repo": "acme/x"},
            7,
        ),
    )
    assert [line.split(": ")[0] for line in found] == [
        "plugin 2 (two) sha",
        "plugin 3 (three) sha",
        "plugin 4 (four) repo",
        "plugin 5 (five) url",
        "plugin 7 (seven) source",
        "plugin 8 (eight) source",
        "plugin 6 (six) url",
    ]
    assert f"pins acme/tools at {OTHER}, and plugin 1 (one) at {SHA}" in found[0]
    assert "would both be called acme/tools" in found[-1]


def test_one_commit_in_two_repositories_is_found_when_the_list_is_read_back(assay: Assay, tmp_path: Path) -> None:
    (fault,) = refused(assay, marketplace(tmp_path, github("a/b", sha=SHA), github("c/d", sha=SHA)))
    assert "the repository of row 1 (a/b): the same commit id" in fault


def test_a_marketplace_of_which_nothing_is_left_says_why(assay: Assay, tmp_path: Path) -> None:
    found = refused(assay, marketplace(tmp_path, "./a", github("a/b")))
    assert ["plugin 1 (one): passed over" in found[0], "plugin 2 (two): passed over" in found[1]] == [True, True]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "no list of plugins"),
        ('{"plugins": {}}', "no list of plugins"),
        ('{"plugins": []}', "lists no plugin"),
        ('{"plugins": [3]}', "3 is no object"),
        ('{"plugins": [{"source": "./x"}]}', "None is no name"),
        ('{"plugins": [{"name": "x"}]}', "None is no source"),
        ('{"plugins": [{"name": "x", "name": "y", "source": "./x"}]}', "'name' occurs twice"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_marketplace_is_refused(assay: Assay, tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "marketplace.json"
    path.write_text(text)
    assert words in assay("taps", "import", path, "--output", tmp_path / "taps.toml").err


def test_hostile_words_neither_end_the_comment_nor_reach_the_terminal(assay: Assay, tmp_path: Path) -> None:
    source = url("https://git.example/a/b", "git-subdir", path="x\n[[tap]]\nname='evil/tap'\x1b[31m", sha=SHA)
    listing = marketplace(tmp_path, source, "./\x1b]0;owned\x07")
    ended = assay("taps", "import", listing, "--output", tmp_path / "taps.toml")
    assert ended.exit_code == 0
    assert "\x1b" not in ended.out + (tmp_path / "taps.toml").read_text()
    assert [tap.name for tap in read_tap_list(tmp_path / "taps.toml").taps] == ["a/b"]


def test_text_rows_become_toml_and_keep_what_they_say(assay: Assay, tmp_path: Path) -> None:
    listing = tmp_path / "taps.txt"
    listing.write_text(f"# counted by hand\na/b {SHA} 12 9  # distinct by another rule\n\nc/d\n")
    imported(assay, listing)
    rows = tomllib.loads((tmp_path / "taps.toml").read_text())["tap"]
    assert rows == [{"name": "a/b", "pin": SHA, "entries": 12}, {"name": "c/d"}]


def test_wrong_text_rows_are_all_named_with_their_line(assay: Assay, tmp_path: Path) -> None:
    listing = tmp_path / "taps.txt"
    listing.write_text("a/b main\nc\n")
    assert [line.split(":")[0] for line in refused(assay, listing)] == ["row 1 pin", "row 2 name"]


def test_a_file_that_is_there_is_replaced_only_with_force(assay: Assay, tmp_path: Path) -> None:
    listing = marketplace(tmp_path, github("a/b", sha=SHA))
    output = tmp_path / "taps.toml"
    output.write_text("mine")
    ended = assay("taps", "import", listing, "--output", output)
    assert (ended.exit_code, output.read_text()) == (2, "mine")
    assert "--force" in ended.err
    imported(assay, listing, "--force")
    assert len(read_tap_list(output).taps) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["marketplace.json", "taps.toml"]


def test_a_list_that_is_toml_already_is_not_imported(tmp_path: Path) -> None:
    from pipeline.importing import import_taps

    with pytest.raises(BadInput, match="is a tap list already"):
        (tmp_path / "a.toml").write_text("")
        import_taps(tmp_path / "a.toml", tmp_path / "b.toml")
    with pytest.raises(BadInput, match=r"ends in \.toml"):
        import_taps(marketplace(tmp_path, github("a/b", sha=SHA)), tmp_path / "taps.txt")
