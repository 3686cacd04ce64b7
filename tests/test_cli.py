"""The command line as a stranger meets it: help with examples, errors in one line, output for machines."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from pipeline.cli import app, concepts_app, feedback_app, golden_app, qrels_app, taps_app
from pipeline.config import Config
from pipeline.reports.reading import HEADLINE
from pipeline.stages import Headline
from pipeline.tables import schema_files
from pipeline.terminal import Breakable, show_headline
from tests.conftest import PROJECT, Ended
from tests.taps.gitforge import Repository

Assay = Callable[..., Ended]

COMMANDS = [
    *(
        "run",
        "snapshot",
        "catalog",
        "classes",
        "rank",
        "score",
        "explain",
        "export",
        "worksheet",
        "checks",
        "duplicates",
    ),
    *("study", "forecast"),
    *("taps check", "taps relock", "taps refresh", "taps import", "schemas"),
    *("golden freeze", "golden check", "golden export", "qrels export", "qrels conflicts"),
    # What they add makes another run of the next one, so they come last.
    *(
        "feedback add",
        "feedback fill",
        "feedback list",
        "qrels import",
        "golden import",
        "concepts import",
        "concepts export",
    ),
]
_OF_A_FAILURE = [f"feedback {name}" for name in ("triage", "correct", "reject", "promote")]
OF_THE_QUEUE = ["golden decide", "qrels add", *_OF_A_FAILURE]
"""Commands that name something that is found only in a run or a ledger; other tests give them."""


def test_the_list_of_commands_is_whole() -> None:
    groups = {
        "taps": taps_app,
        "golden": golden_app,
        "qrels": qrels_app,
        "feedback": feedback_app,
        "concepts": concepts_app,
    }
    below = {f"{group} {name}" for group in groups for name in groups[group] if not name.startswith("-")}
    above = {name for name in app if not name.startswith("-")} - groups.keys()
    assert {*COMMANDS, *OF_THE_QUEUE} == above | below


@pytest.mark.parametrize("command", [*COMMANDS, *OF_THE_QUEUE])
def test_the_help_of_every_command_shows_an_example(assay: Assay, command: str) -> None:
    shown = assay(*command.split(), "--help").out
    assert f"Example: assay {command}" in " ".join(shown.split())


@pytest.mark.parametrize("command", [*COMMANDS, *OF_THE_QUEUE])
def test_the_example_of_a_help_page_is_shown_whole_and_is_a_command(assay: Assay, command: str) -> None:
    parts = command.split()
    written = app[parts[0]] if len(parts) == 1 else app[parts[0]][parts[1]]
    example = " ".join(str(written.help).partition("Example: ")[2].split())
    shown = " ".join(assay(*parts, "--help").out.split())
    assert f"Example: {example} " in shown
    app.parse_args(shlex.split(example)[1:], exit_on_error=False, print_error=False)


@pytest.mark.parametrize("command", [*COMMANDS, *OF_THE_QUEUE])
def test_a_help_page_keeps_words_in_angle_brackets(assay: Assay, command: str) -> None:
    parts = command.split()
    written = app[parts[0]] if len(parts) == 1 else app[parts[0]][parts[1]]
    told = [str(written.help), *(str(each.parameter.help) for each in written.assemble_argument_collection())]
    shown = "".join(re.sub("[│╭╮╰╯─]", " ", assay(*parts, "--help").out).split())
    for word in re.findall(r"<[^<>]+>", " ".join(told)):
        assert "".join(word.split()) in shown


@pytest.mark.parametrize("option", Config.model_fields)
def test_the_help_of_an_option_shows_its_key_its_variable_and_its_default(assay: Assay, option: str) -> None:
    shown = " ".join(re.sub("[│╭╮╰╯─]", " ", assay("run", "--help").out).split())
    example = {"engines": ("engines.bm25.tokenizer", "ASSAY_ENGINES_BM25_TOKENIZER", "bm25 with its defaults")}
    default = {"store": "../.assay beside the file", "golden": "golden beside the file", "threads": "2"}
    key, variable, value = example.get(option, (option, f"ASSAY_{option.upper()}", default.get(option, "")))
    assert f"[key: {key}; env: {variable}; default: {value}" in shown


@pytest.mark.parametrize("option", ["--config", "--store", "--taps", "--golden"])
def test_an_empty_path_on_the_command_line_is_bad_input(assay: Assay, option: str, config: Path) -> None:
    given = [] if option == "--config" else ["--config", config]
    ended = assay("taps", "check", *given, option, "")
    assert (ended.exit_code, ended.err.splitlines()) == (2, [ended.err.strip()])
    assert ended.err.startswith(f"assay: {option}: is empty; name a ")


def test_the_help_names_the_exit_codes(assay: Assay) -> None:
    shown = " ".join(re.sub("[│╭╮╰╯─]", " ", assay("--help").out).split())
    (readme,) = re.findall(r"Exit codes: .*?Ctrl-C\.", " ".join((PROJECT / "README.md").read_text().split()))
    assert readme in shown


@pytest.mark.parametrize("words", [["run", "--colour", "red"], ["fly"], ["run", "--class-rule", "name"]])
def test_a_wrong_word_is_one_line_and_exit_code_2(assay: Assay, words: list[str]) -> None:
    ended = assay(*words)
    assert ended.exit_code == 2
    assert ended.out == ""
    assert len(ended.err.splitlines()) == 1 and ended.err.startswith("assay: ")


@pytest.mark.parametrize(
    "words",
    [["--engines", "x"], ["--engines"], ["--engines.bm25", "x"], ["--engines.bm25=x"], ["--engines.bm25.a.b", "1"]],
)
def test_an_option_of_no_engine_is_told_in_words_with_an_example(assay: Assay, words: list[str]) -> None:
    option = words[0].partition("=")[0]
    todo = "give one option of one engine, such as --engines.bm25.tokenizer ascii"
    ended = assay("run", *words)
    assert ended.err == f"assay: {option}: names no engine with one of its options; {todo}\n"
    assert ended.exit_code == 2


@pytest.mark.parametrize("words", [["--floors", "x"], ["--floors.bm25", "0.3"], ["--floors.bm25=0.3"]])
def test_a_floor_of_no_engine_is_told_in_words_with_an_example(assay: Assay, words: list[str]) -> None:
    option = words[0].partition("=")[0]
    todo = "give one floor of one engine, such as --floors.bm25.recall@10 0.3"
    ended = assay("run", *words)
    assert ended.err == f"assay: {option}: names no engine with one of its measures; {todo}\n"
    assert ended.exit_code == 2


@pytest.mark.parametrize("command", [["duplicates"], ["explain", "123456"], ["export"]])
@pytest.mark.parametrize(
    ("latest", "what"),
    [
        ("{", "names no run: it is damaged"),
        (None, "is not there"),
        ('{"folder":"run=0","run_id":"0"}', "names the run 0, which is not there"),
    ],
)
def test_where_the_last_run_cannot_be_told_it_is_said_what_to_do(
    assay: Assay, config: Path, stored: Path, tmp_path: Path, command: list[str], latest: str | None, what: str
) -> None:
    place = stored / "feed" / "latest.json"
    place.unlink()
    if latest is not None:
        place.write_text(latest)
    words = [*command, tmp_path / "trec"] if command == ["export"] else command
    ended = assay(*words, "--config", config, "--store", stored)
    assert ended.err == f"assay: {place}: {what}; run `assay run` again, or name a run with --run\n"
    assert ended.exit_code == 2


def test_a_missing_configuration_says_what_to_do(assay: Assay, tmp_path: Path) -> None:
    ended = assay("run", "--config", tmp_path / "none.toml")
    assert ended.exit_code == 2
    assert "no such configuration file; name one with --config" in ended.err


@pytest.fixture
def config(examples: Path) -> Path:
    return examples / "config" / "assay.toml"


def test_a_step_before_its_time_names_the_command_that_comes_first(assay: Assay, config: Path, tmp_path: Path) -> None:
    ended = assay("catalog", "--config", config, "--store", tmp_path)
    assert ended.exit_code == 2
    assert "run `assay snapshot driftwood/curiosities` first, with the same options" in ended.err


def test_the_steps_by_hand_make_what_a_run_makes(assay: Assay, config: Path, tmp_path: Path, finished: Path) -> None:
    for step in ("snapshot", "catalog", "classes", "rank", "score", "study", "checks", "feedback fill"):
        ended = assay(*step.split(), "--config", config, "--store", tmp_path, "--json")
        assert ended.exit_code == 0, ended.err
        json.loads(ended.out)
    kept = {path.relative_to(finished) for path in finished.glob("store/*/*")}
    assert {path.relative_to(tmp_path) for path in tmp_path.glob("store/*/*")} == kept


def test_one_tap_alone_can_be_taken(assay: Assay, config: Path, tmp_path: Path) -> None:
    ended = assay("snapshot", "solo-dev/dotfiles", "--config", config, "--store", tmp_path, "--json")
    assert [tap["name"] for tap in ended.json["taps"]] == ["solo-dev/dotfiles"]


def test_a_tap_or_an_engine_that_is_not_there_is_refused(assay: Assay, config: Path, stored: Path) -> None:
    assert assay("snapshot", "no/such", "--config", config, "--store", stored).exit_code == 2
    assert assay("rank", "--engine", "dense", "--config", config, "--store", stored).exit_code == 2


def test_every_command_prints_json(assay: Assay, config: Path, stored: Path, tmp_path: Path) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text(f"acme/skills {'1' * 40}\n")
    new = Repository(tmp_path / "new" / "texts.git")
    asked, judged, declared = (tmp_path / f"{name}.jsonl" for name in ("asked", "judged", "declared"))
    declared.write_text('{"conceptId": "moon", "name": "moon"}')
    asked.write_text('{"question": "what nobody answers", "answerable": false}')
    judged.write_text("")
    given: dict[str, list[object]] = {
        "explain": ["access-set"],
        "worksheet": ["default"],
        "export": [stored / "trec"],
        "taps relock": ["--dry-run"],
        "forecast": [f"{new.folder}@{new.commit({'a/SKILL.md': b'Nothing alike.'})}"],
        **{f"golden {name}": ["default"] for name in ("freeze", "check", "export")},
        "golden import": ["asked", asked],
        "concepts import": [declared],
        "qrels import": [judged],
        "feedback add": ["what nobody asked"],
    }
    usual = ["--config", config, "--store", stored]
    instead = {
        "schemas": ["--check", "--folder", PROJECT / "schemas"],
        "taps import": [listed, "--output", tmp_path / "new.toml"],
    }
    for command in COMMANDS:
        options = instead.get(command, [*given.get(command, []), *usual])
        ended = assay(*command.split(), *options, "--json")
        assert ended.exit_code == 0, ended.err
        json.loads(ended.out)


def test_relock_measures_the_counts_and_leaves_all_else_alone(assay: Assay, examples: Path, tmp_path: Path) -> None:
    text = (examples / "config" / "taps.toml").read_text().replace("../build", str(examples / "build"))
    wrong = text.replace("entries = 33", "entries = 99  # counted by hand", 1)
    taps = tmp_path / "taps.toml"
    taps.write_text(wrong)
    options = ["--taps", taps, "--config", examples / "config" / "assay.toml", "--store", tmp_path / "store", "--json"]
    assert assay("taps", "relock", "--dry-run", *options).json == [
        {"tap": "driftwood/curiosities", "field": "entries", "before": 99, "after": 33}
    ]
    assert taps.read_text() == wrong
    assay("taps", "relock", *options)
    assert taps.read_text() == wrong.replace("entries = 99", "entries = 33")
    assert assay("taps", "relock", *options).json == []


def test_the_schemas_in_the_project_are_those_of_the_code(assay: Assay) -> None:
    assert assay("schemas", "--check", "--folder", PROJECT / "schemas").exit_code == 0


def test_a_schema_that_differs_is_missing_or_is_of_nothing_is_named(assay: Assay, tmp_path: Path) -> None:
    assay("schemas", "--folder", tmp_path)
    names = sorted(schema_files())
    (tmp_path / names[0]).write_text("{}")
    (tmp_path / names[1]).unlink()
    (tmp_path / "extra.json").write_text("{}")
    ended = assay("schemas", "--check", "--folder", tmp_path)
    assert ended.exit_code == 2
    assert [name in line for name, line in zip([names[0], names[1], "extra.json"], ended.err.splitlines(), strict=True)]


def test_a_store_that_cannot_be_written_is_one_line_that_names_it(assay: Assay, config: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    ended = assay("run", "--config", config, "--store", tmp_path / "file")
    assert ended.exit_code == 2
    (line,) = [line for line in ended.err.splitlines() if line.startswith("assay: ")]
    assert "file" in line and "give a place that can be read and written" in line


def test_a_single_step_leaves_no_notes_of_a_night(assay: Assay, config: Path, stored: Path) -> None:
    assay("taps", "check", "--config", config, "--store", stored)
    assert list((stored / "nights").iterdir()) == []


def test_score_shows_its_measures(assay: Assay, config: Path, stored: Path) -> None:
    assert "recall@10" in assay("score", "--config", config, "--store", stored).out


HEAVY = "pandas,numba,datasketch,scipy,vl_convert,rank_bm25,airflow,numpy,onnxruntime,tokenizers,safetensors"


def test_an_unchanged_run_loads_nothing_heavy_but_what_writes_the_night(config: Path, stored: Path) -> None:
    code = (
        "import sys; from pipeline.cli import main\n"
        f"main(['run', '--config', {str(config)!r}, '--store', {str(stored)!r}, '--json'])\n"
        f"print([name for name in {HEAVY!r}.split(',') if name in sys.modules and name != 'numpy'], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_hostile_text_is_shown_escaped(assay: Assay, config: Path, tmp_path: Path) -> None:
    taps = tmp_path / "taps.toml"
    taps.write_text('[[tap]]\nname = "a/b\\u001b[31m"\npin = "[bold]"\n')
    ended = assay("run", "--config", config, "--taps", taps, "--store", tmp_path / "store")
    assert ended.exit_code == 2
    assert "\x1b" not in ended.err and "\\x1b[31m" in ended.err


def test_the_worksheet_lists_candidates_and_lookups_that_are_ready_for_the_file(
    assay: Assay, config: Path, stored: Path, tmp_path: Path
) -> None:
    options = ("--config", config, "--store", stored)
    sheet = assay("worksheet", "default", *options, "--json").json
    assert sheet["pinned"] + sheet["pinnable"] + sheet["to_judge"] + sheet["without_answer"] == 93
    assert len(sheet["rows"]) == sheet["to_judge"] > 0
    assert all(len(row["candidates"]) > 1 for row in sheet["rows"])
    assert assay("worksheet", "default", *options).out.startswith("# Worksheet: default\n")
    before = {path for path in (stored / "store").rglob("*")}
    pins = assay("worksheet", "default", "--pin-lookups", *options).out.splitlines()
    assert len(pins) == sheet["pinnable"] > 0
    assert {path for path in (stored / "store").rglob("*")} == before
    (tmp_path / "pinned.jsonl").write_text("\n".join(pins))
    ended = assay("rank", *options, "--golden", tmp_path / "pinned.jsonl")
    assert ended.exit_code == 0, ended.err


def test_a_worksheet_of_no_set_names_those_that_there_are(assay: Assay, config: Path, stored: Path) -> None:
    ended = assay("worksheet", "dfault", "--config", config, "--store", stored)
    assert ended.exit_code == 2
    assert "no golden set is called 'dfault'; name one of: default" in ended.err


@pytest.mark.parametrize("words", [["--json"], []], ids=["json", "tables"])
def test_a_reader_who_goes_away_ends_the_command_without_a_word(finished: Path, config: Path, words: list[str]) -> None:
    options = ["--config", str(config), "--store", str(finished), *words]
    command = [sys.executable, "-m", "pipeline.cli", "duplicates", *options]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (128 + 13, b"")


def test_means_over_different_questions_are_told_over_those_of_both_too(capsys: pytest.CaptureFixture[str]) -> None:
    def row(grading: str, items: int, value: float) -> Headline:
        about = {"golden_set": "home", "engine": "bm25", "grading": grading, "label": "insufficient items"}
        values = {"values": dict.fromkeys(HEADLINE, value), "over_both": dict.fromkeys(HEADLINE, 1.0)}
        return Headline.model_validate({**about, **values, "n_items": items, "n_both": 4})

    show_headline([row("row", 5, 0.8), row("name", 4, 1.0)])
    told = "home, bm25: over the 4 questions that have both, as pinned and by name: recall@10 1.0000 and 1.0000"
    assert told in capsys.readouterr().out


def test_a_number_is_not_parted_from_its_sign_nor_a_name_at_its_hyphen_where_it_fits() -> None:
    console = Console(width=12, file=StringIO())
    console.print(Breakable("-0.0643 to -0.0069"))
    console.print(Breakable("home-tests, bm25"))
    console.print(Breakable("home-regression"))
    told = str(console.file.getvalue()).split("\n")  # type: ignore[attr-defined]
    assert [line.rstrip() for line in told[:-1]] == [
        "-0.0643 to",
        "-0.0069",
        "home-tests,",
        "bm25",
        "home-",
        "regression",
    ]


@given(
    st.lists(st.text("abcXYZ09日", min_size=1, max_size=12), min_size=1, max_size=8),
    st.sampled_from(["-", "/", " ", "::", "_", ", "]),
    st.integers(min_value=13, max_value=60),
)
@settings(deadline=None)
def test_a_cell_breaks_no_word_that_has_room_and_loses_nothing(words: list[str], between: str, width: int) -> None:
    assume(all(cell_len(word + between) <= width for word in words))
    console = Console(width=width, file=StringIO())
    console.print(Breakable(between.join(words)))
    lines = [line.rstrip() for line in str(console.file.getvalue()).rstrip("\n").split("\n")]  # type: ignore[attr-defined]
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == between.join(words).replace(" ", "")
    assert re.findall("[abcXYZ09日]+", " ".join(lines)) == words
