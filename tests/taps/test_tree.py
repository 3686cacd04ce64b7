from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.taps.tree import LINK_MODE, MOST_HOPS, LinkFault, Tree, TreeItem

FILE = "100644"


def tree_of(files: list[bytes], links: dict[bytes, bytes], submodules: tuple[bytes, ...] = ()) -> Tree:
    return Tree.of(
        [
            *(TreeItem(path, FILE, path.decode()) for path in files),
            *(TreeItem(path, LINK_MODE, target.hex()) for path, target in links.items()),
            *(TreeItem(path, "160000", "1" * 40) for path in submodules),
        ]
    )


def end_of(tree: Tree, path: bytes, unknown: tuple[bytes, ...] = ()) -> bytes | LinkFault:
    texts = {item.oid: bytes.fromhex(item.oid) for item in tree.items.values() if item.mode == LINK_MODE}
    for target in unknown:
        del texts[target.hex()]
    end = tree.resolve(tree.items[path], texts)
    return end.path if isinstance(end, TreeItem) else end


@pytest.mark.parametrize(
    ("target", "end"),
    [
        (b"f.md", b"d/f.md"),
        (b"./f.md", b"d/f.md"),
        (b".//f.md", b"d/f.md"),
        (b"../d/f.md", b"d/f.md"),
        (b"../top.md", b"top.md"),
        (b"e/../f.md", b"d/f.md"),
        (b"again", b"top.md"),
        (b"folder-link/f.md", b"d/f.md"),
        (b"folder-link/../top.md", b"top.md"),
        (b"nowhere.md", "broken_link"),
        (b"f.md\n", "broken_link"),
        (b"F.md", "broken_link"),
        (b"f.md/", b"d/f.md/"),
        (b"f.md/x", "broken_link"),
        (b"nowhere/../f.md", "broken_link"),
        (b"", "broken_link"),
        (b"sub/f.md", "broken_link"),
        (b"sub", "broken_link"),
        (b".", "link_to_directory"),
        (b"e", "link_to_directory"),
        (b"folder-link", "link_to_directory"),
        (b"..", "link_to_directory"),
        (b"/etc/passwd", "link_outside"),
        (b"/d/f.md", "link_outside"),
        (b"../../d/f.md", "link_outside"),
        (b"../..", "link_outside"),
        (b"outside-link/f.md", "link_outside"),
        (b"me", "link_loop"),
        (b"ping", "link_loop"),
    ],
)
def test_a_link_leads_where_the_tree_says(target: bytes, end: bytes | LinkFault) -> None:
    links = {
        b"d/me": target,
        b"d/again": b"../top.md",
        b"d/folder-link": b"../d",
        b"d/outside-link": b"../..",
        b"d/ping": b"pong",
        b"d/pong": b"ping",
    }
    tree = tree_of([b"d/f.md", b"d/e/g.md", b"top.md"], links, (b"d/sub",))
    if end == b"d/f.md/":
        end = "broken_link"  # a file is no folder, as to an operating system
    assert end_of(tree, b"d/me") == end


@pytest.mark.parametrize(("hops", "end"), [(MOST_HOPS, b"f"), (MOST_HOPS + 1, "link_loop")])
def test_a_chain_may_have_so_many_links_and_no_more(hops: int, end: bytes | LinkFault) -> None:
    links = {b"l%d" % number: b"l%d" % (number + 1) for number in range(hops - 1)} | {b"l%d" % (hops - 1): b"f"}
    assert end_of(tree_of([b"f"], links), b"l0") == end


def test_a_link_whose_blob_is_lacking_says_so() -> None:
    tree = tree_of([b"f"], {b"a": b"b", b"b": b"f"})
    assert end_of(tree, b"a", unknown=(b"f",)) == "missing_link"


PARTS = st.sampled_from([b"a", b"b", b"c", b"..", b".", b"", b"f"])
TARGETS = st.lists(PARTS, min_size=1, max_size=4).map(b"/".join)
PATHS = st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=3).map(b"/".join)


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(PATHS, TARGETS, max_size=6), st.sets(PATHS, max_size=4))
def test_links_end_where_an_operating_system_would_end(
    tmp_path_factory: pytest.TempPathFactory, links: dict[bytes, bytes], folders: set[bytes]
) -> None:
    """Whatever we resolve, the kernel resolves to the same file; what we call broken, it cannot open."""
    files = [folder + b"/f" for folder in folders]
    taken = {path for path in links if not _is_above(path, [*links, *files])}
    links = {path: target for path, target in links.items() if path in taken}
    root = tmp_path_factory.mktemp("tree") / "x" / "y"
    tree = tree_of(files, links)
    for path in files:
        _place(root, path).write_bytes(path)
    for path, target in links.items():
        place = _place(root, path)  # the folder is there, though no disk can hold a link to nothing
        if target:
            os.symlink(target, place)
    for path, target in links.items():
        end = end_of(tree, path)
        here = Path(os.fsdecode(os.fsencode(root) + b"/" + path))
        if isinstance(end, bytes):
            assert here.read_bytes() == end
        elif end == "broken_link" and target:
            assert not here.exists()
        elif end == "link_to_directory":
            assert here.is_dir()


def _is_above(path: bytes, others: list[bytes]) -> bool:
    return any(other.startswith(path + b"/") for other in others)


def _place(root: Path, path: bytes) -> Path:
    place = Path(os.fsdecode(os.fsencode(root) + b"/" + path))
    place.parent.mkdir(parents=True, exist_ok=True)
    return place
