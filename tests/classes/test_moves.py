from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.classes.moves import Move, Moves, Seen, moves


def at(**entries: str) -> dict[bytes, Seen]:
    """Entries by path; a class `X`, or a class and a name `X name`."""
    seen = {}
    for path, written in entries.items():
        class_id, _, slug = written.partition(" ")
        seen[path.encode()] = Seen(class_id, slug or "same")
    return seen


def test_each_kind_of_change_is_told_from_the_others() -> None:
    found = moves(at(a="A", b="B", c="C", d="D"), at(a="A", b="X", new="C", e="E"))
    assert found == Moves(born=(b"e",), gone=(b"d",), edited=(b"b",), moved=(Move(b"c", b"new"),))


def test_a_copy_is_born_and_a_lost_copy_is_gone() -> None:
    assert moves(at(a="A"), at(a="A", b="A")) == Moves((b"b",), (), (), ())
    assert moves(at(a="A", b="A"), at(a="A")) == Moves((), (b"b",), (), ())


def test_of_two_copies_one_moves_and_one_is_gone() -> None:
    assert moves(at(a="A", b="A"), at(c="A")) == Moves((), (b"b",), (), (Move(b"a", b"c"),))


def test_among_copies_the_one_of_the_same_name_is_the_one_that_moved() -> None:
    found = moves(at(a="A one", b="A two"), at(x="A two", y="A one"))
    assert found.moved == (Move(b"a", b"y"), Move(b"b", b"x"))


def test_a_move_that_renames_is_a_move() -> None:
    assert moves(at(a="A old"), at(b="A new")).moved == (Move(b"a", b"b"),)


def test_two_paths_that_change_places_are_both_edited() -> None:
    assert moves(at(a="A", b="B"), at(a="B", b="A")) == Moves((), (), (b"a", b"b"), ())


trees = st.dictionaries(
    st.sampled_from([bytes([97 + number]) for number in range(8)]),
    st.builds(Seen, st.sampled_from("ABC"), st.sampled_from(["one", "two"])),
)


@given(trees, trees)
def test_the_changes_account_for_every_entry(before: dict[bytes, Seen], after: dict[bytes, Seen]) -> None:
    found = moves(before, after)
    assert len(before) + len(found.born) - len(found.gone) == len(after)
    listed = [*found.born, *found.gone, *found.edited, *(path for move in found.moved for path in move)]
    assert len(listed) == len(set(listed))
    unchanged = {path for path in before if before[path].class_id == after.get(path, Seen("", "")).class_id}
    assert set(listed) == (before.keys() | after.keys()) - unchanged
    assert all(before[move.before].class_id == after[move.after].class_id for move in found.moved)
    # Whatever vanished and is not matched has no content in common with what is born.
    assert not {before[path].class_id for path in found.gone} & {after[path].class_id for path in found.born}
