from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput, Fault
from pipeline.taps.taplist import (
    Pinned,
    Tap,
    TapList,
    corpus_digest,
    location,
    read_tap_list,
    relocked,
    repinned,
    written_text,
)

PIN = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40


def read(folder: Path, text: str, name: str = "taps.toml", *, need_pins: bool = True) -> TapList:
    (folder / name).write_text(text, encoding="utf-8")
    return read_tap_list(folder / name, need_pins=need_pins)


def faults(folder: Path, text: str, name: str = "taps.toml") -> tuple[Fault, ...]:
    with pytest.raises(BadInput) as caught:
        read(folder, text, name)
    return caught.value.faults


def row(**values: object) -> str:
    written = {"name": "owner/repo", "pin": PIN} | values
    return "[[tap]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in written.items() if value is not None)


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def test_a_row_needs_no_more_than_a_name_and_a_pin(tmp_path: Path) -> None:
    (tap,) = read(tmp_path, row()).taps
    assert tap == Tap(name="owner/repo", url="https://github.com/owner/repo", pin=PIN, row=1)
    assert (tap.entries, tap.classes, tap.role) == (None, None, "scale")


def test_every_key_is_read(tmp_path: Path) -> None:
    (tap,) = read(tmp_path, row(url="./x.git", entries=3, classes=2, role="target")).taps
    assert (tap.url, tap.entries, tap.classes, tap.role) == ("./x.git", 3, 2, "target")


def test_text_rows_are_read(tmp_path: Path) -> None:
    text = f"# comment\nc/d\n\na/b {PIN}\r\ne/f {OTHER} 12 # more\ng/h {PIN[::-1]} 12 9\n"
    taps = read(tmp_path, text, "taps.txt", need_pins=False).taps
    assert [(tap.name, tap.pin, tap.entries, tap.classes, tap.row) for tap in taps] == [
        ("c/d", None, None, None, 2),
        ("a/b", PIN, None, None, 4),
        ("e/f", OTHER, 12, None, 5),
        ("g/h", PIN[::-1], 12, None, 6),
    ]


def test_a_pin_of_a_sha256_repository_is_read_and_case_is_no_difference(tmp_path: Path) -> None:
    assert read(tmp_path, row(pin="AB" * 32)).taps[0].pin == "ab" * 32


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"nmae": "x"}, "nmae"),
        ({"name": None}, "name"),
        ({"name": "repo"}, "name"),
        ({"name": "a/b/c"}, "name"),
        ({"name": "a/.."}, "name"),
        ({"name": "a/b\\n"}, "name"),
        ({"name": " a/b"}, "name"),
        ({"name": 3}, "name"),
        ({"pin": None}, "pin"),
        ({"pin": "main"}, "pin"),
        ({"pin": "v1.2.3"}, "pin"),
        ({"pin": PIN[:12]}, "pin"),
        ({"pin": PIN + "0"}, "pin"),
        ({"pin": "g" * 40}, "pin"),
        ({"pin": "0" * 40}, "pin"),
        ({"pin": ""}, "pin"),
        ({"pin": 12}, "pin"),
        ({"entries": -1}, "entries"),
        ({"entries": True}, "entries"),
        ({"entries": 1.0}, "entries"),
        ({"entries": "3"}, "entries"),
        ({"classes": -2}, "classes"),
        ({"entries": 1, "classes": 2}, "classes"),
        ({"role": "targets"}, "role"),
        ({"url": ""}, "url"),
        ({"url": "--upload-pack=touch /tmp/x"}, "url"),
        ({"url": "ext::sh -c true"}, "url"),
        ({"url": "fd::17"}, "url"),
        ({"url": "http://example.org/a"}, "url"),
        ({"url": "ftp://example.org/a"}, "url"),
        ({"url": "ssh://-oProxyCommand=x/a"}, "url"),
        ({"url": "git@-oProxyCommand=x:a"}, "url"),
        ({"url": "https://[::1/a"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": 7}, "url"),
    ],
)
def test_a_fault_names_file_row_and_field(tmp_path: Path, values: dict[str, object], field: str) -> None:
    text = row(name="first/one", pin=OTHER) + row(**values)
    (fault,) = faults(tmp_path, text)
    assert fault.where == f"{tmp_path}/taps.toml row 2 {field}"
    assert fault.todo


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    text = row(pin="main", entries=-1) + row(name="x", colour="red")
    found = [fault.where.rpartition("toml ")[2] for fault in faults(tmp_path, text)]
    assert found == ["row 1 pin", "row 1 entries", "row 2 colour", "row 2 name"]


@pytest.mark.parametrize(
    ("first", "second", "field"),
    [
        ({}, {"name": "OWNER/Repo"}, "name"),
        ({"url": "https://example.org/a"}, {"url": "https://example.org/a.git"}, "url"),
        ({"url": "https://example.org/a"}, {"url": "https://EXAMPLE.org/a/"}, "url"),
        ({"url": "https://example.org/a"}, {"url": "https://me:secret@example.org:443/a"}, "url"),
        ({"url": "https://example.org/a"}, {"url": "git@example.org:a.git"}, "url"),
        ({}, {"url": "ssh://git@github.com/Owner/Repo.git"}, "url"),
        ({"url": "./x.git"}, {"url": "y/../x.git/"}, "url"),
        ({"pin": PIN}, {"pin": PIN.upper()}, "pin"),
    ],
)
def test_the_same_repository_twice_is_a_fault(
    tmp_path: Path, first: dict[str, object], second: dict[str, object], field: str
) -> None:
    second = {"name": "other/name", "pin": OTHER} | second
    (fault,) = faults(tmp_path, row(**first) + row(**second))
    assert fault.where.endswith(f"taps.toml row 2 {field}")
    assert "row 1" in fault.what


def test_a_local_path_and_its_file_url_are_the_same_repository(tmp_path: Path) -> None:
    text = row(url="x y.git") + row(name="c/d", pin=OTHER, url=f"file://{tmp_path}/x%20y.git")
    assert [fault.where.rpartition(" ")[2] for fault in faults(tmp_path, text)] == ["url"]


@pytest.mark.parametrize("second", ["git://127.0.0.1:9419/a", "git://127.0.0.1/b", "git://127.0.0.2/a"])
def test_other_places_are_other_repositories(tmp_path: Path, second: str) -> None:
    text = row(url="git://127.0.0.1/a") + row(name="c/d", pin=OTHER, url=second)
    assert len(read(tmp_path, text).taps) == 2


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[[tap]]\nname = 'a/b'\npin =\n", "taps.toml line 3"),
        ("[[tap]]\nname = 'a/b", "taps.toml line 2"),
        ("", "taps.toml"),
        ("[tap]\nname = 'a/b'", "taps.toml tap"),
        ("tap = [1]", "taps.toml tap"),
        (row() + "[other]\n", "taps.toml other"),
    ],
)
def test_a_file_that_is_no_tap_list_is_a_fault(tmp_path: Path, text: str, where: str) -> None:
    (fault,) = faults(tmp_path, text)
    assert fault.where == f"{tmp_path}/{where}"


def test_text_rows_have_the_same_faults(tmp_path: Path) -> None:
    text = f"a/b main\nc/d {PIN} 3 many\ne/f {OTHER} 1 2 3\nx {'e' * 40} -1\n"
    found = [fault.where.rpartition("txt ")[2] for fault in faults(tmp_path, text, "taps.txt")]
    assert sorted(found) == ["row 1 pin", "row 2 distinct", "row 3", "row 4 entries", "row 4 name"]


def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.toml", tmp_path):
        with pytest.raises(BadInput, match="cannot be read"):
            read_tap_list(path)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_tap_list(tmp_path / "latin.toml")


def test_a_fault_shows_no_password(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, row(url="http://me:secret@example.org/a"))
    assert "secret" not in str(fault)


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("https://example.org/a", "https://example.org/a"),
        ("git@example.org:a/b", "git@example.org:a/b"),
        ("../x y%.git", "file:///lists/x%20y%25.git"),
        ("./a:b.git", "file:///lists/of/a%3Ab.git"),
        ("/srv/x.git", "file:///srv/x.git"),
    ],
)
def test_git_is_given_a_url(url: str, where: str) -> None:
    assert location(Tap(name="a/b", url=url, row=1), Path("/lists/of")) == where


def test_the_digest_of_a_corpus_is_that_of_its_sorted_lines() -> None:
    taps = [Tap(name="b/b", url="u", pin=PIN, row=1), Tap(name="a/a", url="v", pin=OTHER, row=2)]
    expected = hashlib.sha256(f"a/a {OTHER}\nb/b {PIN}\n".encode()).hexdigest()
    assert corpus_digest(taps) == corpus_digest(taps[::-1]) == expected


def test_relocking_changes_the_counts_and_nothing_else() -> None:
    text = (
        f'# head\n[[tap]]\nname = "a/b"  # [[tap]]\npin = "{PIN}"\nentries = 1_0 # ten\nclasses=9\nrole = "target"\n'
        f'\n[[ "tap" ]] # second\r\nname = "c/d"\r\npin = "{OTHER}"\r\n# no counts yet\r\nrole = "scale"'
    )
    assert relocked(text, {"a/b": (12, 11), "c/d": (3, 2)}) == (
        text.replace("1_0 #", "12 #")
        .replace("=9", "=11")
        .replace(f'"{OTHER}"\r\n', f'"{OTHER}"\r\nentries = 3\r\nclasses = 2\r\n')
    )


def test_relocking_leaves_the_rows_of_other_taps() -> None:
    text = row(entries=5) + row(name="c/d", pin=OTHER, entries=6)
    assert relocked(text, {"c/d": (7, 7)}) == text.replace("entries = 6", "entries = 7").replace(
        f"pin = '{OTHER}'\n", f"pin = '{OTHER}'\nclasses = 7\n"
    )


@pytest.mark.parametrize(
    "text", ['tap = [{name = "a/b", entries = 1}]', '[[tap]]\nname = "a/b"\nnote = """\nentries = 1\n"""']
)
def test_a_list_that_cannot_be_changed_in_place_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="in place"):
        relocked(text, {"a/b": (2, 2)})


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.none() | st.integers(0, 99), st.booleans()), min_size=1, max_size=5), st.integers(0, 10**6)
)
def test_a_relocked_list_says_what_was_measured(rows: list[tuple[int | None, bool]], measured: int) -> None:
    text = "".join(row(name=f"a/r{number}", entries=count) for number, (count, _) in enumerate(rows))
    counts = {f"a/r{number}": (measured + number, measured) for number, (_, known) in enumerate(rows) if known}
    read_back = {tap["name"]: tap for tap in tomllib.loads(relocked(text, counts))["tap"]}
    for number, (count, _) in enumerate(rows):
        tap = read_back[f"a/r{number}"]
        assert (tap.get("entries"), tap.get("classes")) == counts.get(f"a/r{number}", (count, None))


def test_repinning_changes_pins_and_counts_and_not_one_byte_else(tmp_path: Path) -> None:
    path = tmp_path / "taps.toml"
    last = f'[[tap]]\r\nname = "e/f"\r\npin = "{OTHER}"'
    path.write_bytes(
        (
            f"\ufeff# our taps\r\n\r\n[[tap]]\r\nname = 'a/b'  # first\r\npin='{PIN}' # old\r\nentries = 1\r\n"
            f'[[tap]]\r\nname = "c/d"\r\nurl = "x"\r\n{last}'
        ).encode()
    )
    text = written_text(read_tap_list(path, need_pins=False))
    assert repinned(text, {"a/b": Pinned("ab" * 20, 12, 11), "c/d": Pinned("cd" * 20, 3, 2)}) == (
        f"\ufeff# our taps\r\n\r\n[[tap]]\r\nname = 'a/b'  # first\r\npin=\"{'ab' * 20}\" # old\r\nclasses = 11\r\n"
        f'entries = 12\r\n[[tap]]\r\nname = "c/d"\r\npin = "{"cd" * 20}"\r\nentries = 3\r\nclasses = 2\r\n'
        f'url = "x"\r\n{last}'
    )


def test_text_rows_are_not_changed_in_place(tmp_path: Path) -> None:
    path = tmp_path / "taps.txt"
    path.write_text(f"a/b {PIN}\n")
    with pytest.raises(BadInput, match="assay taps import"):
        written_text(read_tap_list(path))
