"""Front matter: where it opens and closes, what of it is YAML, and what happens to what is not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.catalog.frontmatter import MAX_ALIASES, MAX_BYTES, MAX_DEPTH, parse, split

YAMLISH = st.text(alphabet="ab:-#*&!|>[]{}'\"`@% \n\t,?<~=.\\0\x00\x85\ufeff中🙂", max_size=80)


# --- where it opens and closes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "front", "body"),
    [
        ("---\nname: a\n---\nBody\n", "name: a\n", "Body\n"),
        ("---\nname: a\n...\nBody\n", "name: a\n", "Body\n"),
        ("---\nname: a\n  ---  \nBody\n", "name: a\n", "Body\n"),
        ("---  \nname: a\n---", "name: a\n", ""),
        ("---\n---\nBody\n", "", "Body\n"),
        ("---\na: |\n  ----\n---\n---\n", "a: |\n  ----\n", "---\n"),
    ],
)
def test_front_matter_opens_at_the_first_line_and_closes_at_a_trimmed_one(text: str, front: str, body: str) -> None:
    assert split(text) == (front, body)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---",
        "---\nname: a\n",
        "----\nname: a\n---\n",
        "--- x\nname: a\n---\n",
        " ---\nname: a\n---\n",
        "\n---\nname: a\n---\n",
        "# Title\n---\nname: a\n---\n",
        "\ufeff---\nname: a\n---\n",
    ],
)
def test_what_does_not_open_at_once_or_never_closes_is_all_body(text: str) -> None:
    assert split(text) == (None, text)


@given(st.text(alphabet="-. \nab:", max_size=40))
@settings(deadline=None)
def test_splitting_loses_no_text(text: str) -> None:
    front, body = split(text)
    assert text.endswith(body)
    assert front is None or front in text[: len(text) - len(body)]


@pytest.mark.parametrize("front", ["", "\n", "  \n\t\n"])
def test_an_empty_front_matter_counts_as_none(front: str) -> None:
    assert parse(front) == ("none", {})


# --- valid YAML ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    ["yes", "NO", "on", "1.10", "0x1F", "1_000", "2024-01-01", "2024-13-99", ".inf", "12:30:45", "=", "1e3", "010"],
)
def test_a_scalar_that_is_not_text_gives_its_source_text(source: str) -> None:
    assert parse(f"name: {source}\n") == ("ok", {"name": source})


@pytest.mark.parametrize("source", ["'yes'", '"null"', "'~'", '""'])
def test_a_quoted_scalar_is_text(source: str) -> None:
    assert parse(f"name: {source}\n") == ("ok", {"name": source[1:-1]})


@pytest.mark.parametrize("source", ["", "~", "null", "Null", "NULL", "!!null x", "[a, b]", "{a: b}", "\n  - a"])
def test_lists_mappings_and_null_have_no_text_but_keep_their_key(source: str) -> None:
    assert parse(f"name: {source}\n") == ("ok", {"name": None})


def test_block_scalars_keep_their_meaning() -> None:
    assert parse("a: >-\n  one\n  two\nb: |\n  one\n  two\n").fields == {"a": "one two", "b": "one\ntwo\n"}


def test_nested_keys_never_reach_the_top_level() -> None:
    assert parse("name: outer\nsteps:\n  - name: inner\n  - name: other\n").fields["name"] == "outer"


def test_an_alias_gives_what_its_anchor_names() -> None:
    assert parse("name: &n deploy\ndescription: *n\n").fields == {"name": "deploy", "description": "deploy"}


def test_a_merge_key_adds_what_is_not_there() -> None:
    front = "base: &b {name: old, model: m}\n<<: *b\nname: new\n"
    assert parse(front) == ("ok", {"base": None, "name": "new", "model": "m"})


def test_of_merged_mappings_the_first_wins() -> None:
    front = "x: &x {a: one}\ny: &y {a: two, b: two}\n<<: [*x, *y]\n"
    assert parse(front).fields == {"x": None, "y": None, "a": "one", "b": "two"}


def test_a_quoted_merge_key_is_a_key_like_any_other() -> None:
    assert parse("'<<': a\n").fields == {"<<": "a"}


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "front",
    [
        "name: a\nname: b\n",
        "name: a\n'name': b\n",
        "name: a\nmeta: {x: 1, x: 2}\n",
        "name: a\n<<: {b: c}\n<<: {d: e}\n",
        "name: a\n<<: text\n",
        "name: a\nx: {{slot}}\n",
        "name: a\n? [k]\n: v\n",
        "name: a\nx: !!python/object/apply:os.system [id]\n",
        "name: a\nx: !secret b\n",
        "name: a\nx: [*nowhere]\n",
        "name: a\n\tx: b\n",
        "name: a\nx: \x07\n",
        "name: a\nx: \x00\n",
        "name: a\n--- b\n",
        "name: a\nx: 'unclosed\n",
        "name: a\n%x\n",
    ],
)
def test_what_yaml_or_safety_refuses_is_read_line_by_line_and_not_lost(front: str) -> None:
    parsed = parse(front)
    assert parsed.status == "lenient"
    assert parsed.fields["name"] == "a"


@pytest.mark.parametrize("front", ["- a\n- b\n", "just words\n", "# a comment\n", "a\n...\n"])
def test_what_is_no_mapping_is_lenient_and_empty(front: str) -> None:
    assert parse(front) == ("lenient", {})


def test_depth_is_bounded() -> None:
    def nested(depth: int) -> str:
        return f"name: a\nx: {'[' * (depth - 1)}{']' * (depth - 1)}\n"

    assert parse(nested(MAX_DEPTH)).status == "ok"
    assert parse(nested(MAX_DEPTH + 1)).status == "lenient"


def test_size_is_bounded_in_bytes() -> None:
    def sized(count: int) -> str:
        return "name: a\nx: " + "é" * count + "\n"

    most = (MAX_BYTES - len(sized(0))) // 2
    assert parse(sized(most)).status == "ok"
    assert parse(sized(most + 1)).status == "lenient"


def test_aliases_are_bounded() -> None:
    def aliased(count: int) -> str:
        return "name: &n a\nx: [" + ", ".join(["*n"] * count) + "]\n"

    assert parse(aliased(MAX_ALIASES)).status == "ok"
    assert parse(aliased(MAX_ALIASES + 1)).status == "lenient"


@pytest.mark.parametrize(
    "front",
    [
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 28)),
        "a: &a [*a]\n",
        "a: &a\n  <<: *a\n",
        "x: " + "[" * 60_000,
        "x: " + "{a: " * 15_000,
        "- " * 30_000,
        "? " * 30_000,
        "a:" * 30_000,
        "k: v" + " " * 1_000_000 + "\n",
        "k" + " \t" * 500_000 + "\n",
        "\n".join(f"k{n}: a: b" for n in range(60_000)),
        "".join(f"k{n}: &k{n} {{<<: *k{n - 1}, x{n}: y}}\n" if n else "k0: &k0 {a: b}\n" for n in range(250)),
    ],
    ids=[
        "alias bomb", "itself", "merged into itself", "deep list", "deep mapping", "deep sequence", "deep key",
        "colons", "blanks at the end", "blanks in the key", "many broken lines", "chain of merges",
    ],
)  # fmt: skip
def test_a_hostile_front_matter_costs_little(front: str) -> None:
    start = time.process_time()
    parse(front)
    assert time.process_time() - start < 2.0


# --- recovery --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Use when: it's late", "Use when: it's late"),
        ("Ends in a colon:", "Ends in a colon:"),
        ("**/*.py", "**/*.py"),
        ("*", "*"),
        ("@angular and more", "@angular and more"),
        ("`code` first", "`code` first"),
        ("%percent", "%percent"),
    ],
)
def test_an_unquoted_value_that_yaml_trips_over_is_recovered(value: str, text: str) -> None:
    assert parse(f"description: {value}\nname: a\n") == ("recovered", {"description": text, "name": "a"})


def test_recovery_leaves_alone_what_is_quoted_block_or_flow() -> None:
    front = "description: Use when: late\nq: 'a: b'\nl: [x, 'y: z']\nb: |\n  c: d\nf: >\n  e: f\n"
    assert parse(front) == (
        "recovered",
        {"description": "Use when: late", "q": "a: b", "l": None, "b": "c: d\n", "f": "e: f\n"},
    )


def test_a_value_that_starts_with_a_bracket_is_not_quoted() -> None:
    parsed = parse("name: a\nargument-hint: [file] | --all: x\n")
    assert parsed == ("lenient", {"name": "a", "argument-hint": "[file] | --all: x"})


def test_only_top_level_values_are_quoted() -> None:
    assert parse("name: a\nmeta:\n  x: b: c\n") == ("lenient", {"name": "a", "meta": None})


def test_line_by_line_the_first_value_of_a_key_counts_and_outer_quotes_go() -> None:
    lines = ["name:", 'name: "first"', "name: second", "  indented: no", "# comment: no", "- item: no", "url: http://x"]
    front = "\n".join([*lines, "\tq: [", "z: 'it"])
    assert parse(front) == ("lenient", {"name": "first", "url": "http://x", "z": "'it"})


# --- total -----------------------------------------------------------------------------------------------------------


@given(YAMLISH)
@settings(deadline=None, max_examples=600)
def test_parsing_never_fails(front: str) -> None:
    parsed = parse(front)
    assert parsed.status in ("ok", "recovered", "lenient", "none")
    assert (parsed.status == "none") == (not front.strip())


@given(st.from_regex(r"[a-z][a-z0-9 -]{0,20}[a-z0-9]", fullmatch=True).filter(lambda name: name != "null"))
@settings(deadline=None)
def test_a_plain_name_comes_back_as_written(name: str) -> None:
    assert parse(f"name: {name}\n") == ("ok", {"name": name})


@given(st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=30))
@settings(deadline=None)
def test_a_quoted_value_comes_back_whatever_it_holds(value: str) -> None:
    assert parse("name: '" + value.replace("'", "''") + "'\n") == ("ok", {"name": value})
