"""Options come from the command line, the environment and the file, in this order; faults are told all at once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.config import Config, Overrides, load
from pipeline.engines import ENGINES
from pipeline.errors import BadInput


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a configuration and a golden set."""
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden" / "one.jsonl").write_text("")
    write(tmp_path, 'class_rule = "entry"\n[engines.bm25]\nk1 = 0.9\n')
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "assay.toml"
    path.write_text(text)
    return path


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(project: Path) -> None:
    file = project / "assay.toml"
    environ = {"ASSAY_CLASS_RULE": "raw"}
    assert load(Overrides(config=file), {}).config.class_rule == "entry"
    assert load(Overrides(config=file), environ).config.class_rule == "raw"
    assert load(Overrides(config=file, class_rule="blob"), environ).config.class_rule == "blob"


def test_paths_read_without_dots_where_that_names_the_same_place(project: Path) -> None:
    (project / "config").mkdir()
    file = write(project / "config", 'store = "../kept"\ngolden = ["../golden"]\n')
    settings = load(Overrides(config=file), {})
    assert settings.store.root == project / "kept"
    assert settings.golden_files == (project / "golden" / "one.jsonl",)
    (project / "elsewhere" / "deep").mkdir(parents=True)
    (project / "elsewhere" / "golden").symlink_to(project / "golden")
    (project / "link").symlink_to(project / "elsewhere" / "deep")
    write(project / "link", 'taps = "../taps.toml"\ngolden = ["../golden"]\n')
    through = load(Overrides(config=project / "link" / "assay.toml"), {}).tap_file
    assert through.resolve() == project / "elsewhere" / "taps.toml"


def test_a_single_engine_option_goes_over_those_of_the_file(project: Path) -> None:
    file = project / "assay.toml"
    by_name = {"bm25": {"b": "0.5"}}
    environ = {"ASSAY_ENGINES_BM25_TOKENIZER": "ascii"}
    options = load(Overrides(config=file, engines=by_name), environ).engines["bm25"].options.model_dump()
    assert (options["k1"], options["b"], options["tokenizer"]) == (0.9, 0.5, "ascii")


def test_paths_in_the_file_are_relative_to_it_and_others_to_the_current_folder(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    settings = load(Overrides(config=project / "assay.toml", taps=Path("mine.toml")), {})
    assert settings.tap_file == elsewhere / "mine.toml"
    assert settings.golden_files == (project / "golden" / "one.jsonl",)
    assert load(Overrides(config=project / "assay.toml"), {"ASSAY_STORE": "s"}).store.root == elsewhere / "s"


def test_every_option_that_is_a_number_can_come_from_the_environment(project: Path) -> None:
    environ = {"ASSAY_MAX_FILE_BYTES": "5", "ASSAY_THREADS": "3", "ASSAY_FETCH_SECONDS": "7"}
    config = load(Overrides(config=project / "assay.toml"), environ).config
    assert (config.max_file_bytes, config.threads, config.fetch_seconds) == (5, 3, 7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("colour = 1", "colour: unknown option"),
        ("threads = 0", "threads: "),
        ('threads = "2"', "threads: "),
        ('class_rule = "name"', "class_rule: "),
        ("golden = []", "no golden set is named"),
        ('golden = ["nowhere.jsonl"]', "no such file or folder"),
        ("[engines]", "no engine is named"),
        ("[engines.word2vec]", "no engine is called 'word2vec'; use one of: bm25"),
        ("[engines.bm25]\ntokenizer = 'porter'", "engines.bm25 tokenizer"),
        ("[engines.bm25]\nk3 = 1", "engines.bm25 k3: unknown option"),
        ("[engines]\nbm25 = 1", "engines.bm25"),
        ("[floors]\nbm25 = 0.3", "floors.bm25: "),
        ("[floors.bm26]\n'recall@10' = 0.3", "floors.bm26.recall@10: no engine is called 'bm26'; name one of: bm25"),
        ("[floors.bm25]\n'recal@10' = 0.3", "floors.bm25.recal@10: no measure is called 'recal@10'; use a"),
        ("[floors.bm25]\n'recall@7' = 0.3", "floors.bm25.recall@7: no measure is called 'recall@7'"),
        ("[floors.bm25]\n'recall@10' = 1.2", "floors.bm25.recall@10: "),
        ("[floors.bm25]\n'recall@10' = nan", "floors.bm25.recall@10: "),
        ("[floors.bm25]\n'recall@10' = '0.3'", "floors.bm25.recall@10: "),
        ("[floors.bm25]\n'recall@10' = true", "floors.bm25.recall@10: "),
        ("store = ", "cannot be read as TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(project: Path, text: str, words: str) -> None:
    with pytest.raises(BadInput, match=r"assay\.toml") as caught:
        load(Overrides(config=write(project, text)), {})
    assert words in str(caught.value)
    assert caught.value.exit_code == 2


def test_all_faults_are_told_at_once(project: Path) -> None:
    with pytest.raises(BadInput) as caught:
        load(Overrides(config=write(project, "colour = 1\nthreads = 0\nmax_file_bytes = -1")), {})
    assert len(caught.value.faults) == 3


def test_floors_are_laid_over_those_of_the_file_one_by_one(project: Path) -> None:
    file = write(project, "[engines.bm25]\n[engines.metadata]\n[floors.bm25]\n'recall@10' = 0.3\n'hit@1' = 0.1\n")
    environ = {"ASSAY_FLOORS": '{ bm25 = { "hit@1" = 0.2 }, metadata = { "ndcg@10" = 0 } }'}
    floors = load(Overrides(config=file, floors={"bm25": {"hit@1": 0.4}}), environ).config.floors
    assert floors == {"bm25": {"recall@10": 0.3, "hit@1": 0.4}, "metadata": {"ndcg@10": 0.0}}


def test_all_wrong_floors_are_told_at_once_each_by_where_it_was_given(project: Path) -> None:
    file = write(project, "[floors.bm25]\n'recall@10' = 2\n'recal@10' = 0.1\n")
    environ = {"ASSAY_FLOORS": '{ bm26 = { "hit@1" = 0.2 } }'}
    with pytest.raises(BadInput) as caught:
        load(Overrides(config=file, floors={"bm25": {"hit@2": 0.4}}), environ)
    places = [fault.where for fault in caught.value.faults]
    assert places == [
        f"{file} floors.bm25.recall@10",
        f"{file} floors.bm25.recal@10",
        "--floors.bm25.hit@2",
        "ASSAY_FLOORS bm26.hit@1",
    ]


@pytest.mark.parametrize("text", ["0.3", "{ bm25 = 0.3 }", "{ bm25", "", "{}\nthreads = 9"])
def test_floors_in_the_environment_are_a_table_by_engine(project: Path, text: str) -> None:
    with pytest.raises(BadInput, match=r"ASSAY_FLOORS: .* is no table of floors by engine; give a TOML table"):
        load(Overrides(config=project / "assay.toml"), {"ASSAY_FLOORS": text})


def test_a_wrong_variable_is_called_by_its_name(project: Path) -> None:
    with pytest.raises(BadInput, match="ASSAY_THREADS: 'many' is not a whole number"):
        load(Overrides(config=project / "assay.toml"), {"ASSAY_THREADS": "many"})


@pytest.mark.parametrize(
    ("given", "environ", "words"),
    [
        (Overrides(threads=0), {}, "--threads: "),
        (Overrides(), {"ASSAY_THREADS": "0"}, "ASSAY_THREADS: "),
        (Overrides(threads=0), {"ASSAY_THREADS": "0"}, "--threads: "),
        (Overrides(), {"ASSAY_CLASS_RULE": "name"}, "ASSAY_CLASS_RULE: "),
        (Overrides(engines={"bm25": {"k1": "much"}}), {}, "--engines.bm25.k1: "),
        (Overrides(engines={"bm25": {"k3": "1"}}), {}, "--engines.bm25.k3: unknown option"),
        (Overrides(engines={"word2vec": {"k": "1"}}), {}, "--engines.word2vec.k: no engine is called"),
        (Overrides(engines={"mine": {"kind": "word2vec"}}), {}, "--engines.mine.kind: no engine is called"),
        (Overrides(engines={"bm25": {"kind": "word2vec"}}), {}, "--engines.bm25.kind: no engine is called"),
        (Overrides(), {"ASSAY_ENGINES_BM25_B": "2"}, "ASSAY_ENGINES_BM25_B: "),
        (Overrides(golden=("nowhere",)), {}, "--golden: no such file"),
        (Overrides(), {"ASSAY_GOLDEN": "nowhere"}, "ASSAY_GOLDEN: no such file"),
    ],
)
def test_a_wrong_value_is_called_by_the_place_that_gave_it(
    project: Path, given: Overrides, environ: dict[str, str], words: str
) -> None:
    with pytest.raises(BadInput) as caught:
        load(replace(given, config=project / "assay.toml"), environ)
    (line,) = str(caught.value).splitlines()
    assert words in line
    assert "assay.toml" not in line


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("ASSAY_THREAD", "ASSAY_THREADS"),
        ("ASSAY_ENGINES_BM52_K1", "ASSAY_ENGINES_BM25_<OPTION>"),
        ("ASSAY_ENGINES", "ASSAY_ENGINES_BM25_<OPTION>"),
        ("ASSAY_", "ASSAY_TAPS"),
    ],
)
def test_a_variable_that_is_no_option_is_refused_with_those_that_are_near(
    project: Path, variable: str, near: str
) -> None:
    with pytest.raises(BadInput, match=f"^{variable}: no option has this name; unset it, or use: ") as caught:
        load(Overrides(config=project / "assay.toml"), {variable: "1", "ASSAYER": "me", "OTHER_ASSAY_X": ""})
    assert near in str(caught.value)


def test_options_that_do_not_fit_together_are_told_in_our_words_alone(project: Path) -> None:
    write(project, "[engines.bm25]\n[engines.both]\nkind = 'hybrid'\nof = ['bm25', 'bm25']\n")
    with pytest.raises(BadInput) as caught:
        load(Overrides(config=project / "assay.toml", engines={"both": {"constant": "1"}}), {})
    where = f"{project / 'assay.toml'} engines.both, --engines.both.constant"
    assert str(caught.value) == f"{where}: of names bm25 twice; name two engines"


def test_a_wrong_option_hides_no_fault_of_the_files(project: Path) -> None:
    (project / "golden" / "one.jsonl").write_text('{"query": "a"}\n')
    (project / "taps.toml").write_text("nonsense = 1\n")
    (project / "decisions.jsonl").write_text("{\n")
    (project / "their.run").write_text("q\n")
    theirs = "[engines.theirs]\nkind = 'run-file'\npath = 'their.run'\n"
    file = write(project, f"threads = 0\ncluster_decisions = 'decisions.jsonl'\n{theirs}")
    with pytest.raises(BadInput) as caught:
        load(Overrides(config=file), {}, with_files=True)
    told = [next(name for name in NAMED if name in fault.where) for fault in caught.value.faults]
    assert sorted(set(told)) == sorted(NAMED)


NAMED = ("threads", "taps.toml", "one.jsonl line 1", "their.run line 1", "golden sets and run files", "decisions.jsonl")


def test_an_option_that_is_refused_says_nothing_of_the_file_that_it_would_have_named(project: Path) -> None:
    with pytest.raises(BadInput) as caught:
        load(Overrides(config=write(project, "taps = 1\ngolden = 2\n")), {}, with_files=True)
    assert [fault.where.rpartition(" ")[2] for fault in caught.value.faults] == ["taps", "golden"]


def test_an_empty_path_is_refused_and_not_the_current_folder(project: Path) -> None:
    file = project / "assay.toml"
    for given, environ, where in (
        (Overrides(store="", taps="", golden=("",)), {}, ["--store", "--taps", "--golden"]),
        (Overrides(), {"ASSAY_STORE": "", "ASSAY_TAPS": "", "ASSAY_GOLDEN": ""}, ["ASSAY_STORE", "ASSAY_TAPS"]),
    ):
        with pytest.raises(BadInput) as caught:
            load(replace(given, config=file), environ)
        assert len(caught.value.faults) == 3
        assert all(f"{name}: is empty; " in str(caught.value) for name in where)
    with pytest.raises(BadInput, match=r"^--config: is empty"):
        load(Overrides(config=""), {})
    with pytest.raises(BadInput, match=r"^ASSAY_CONFIG: is empty"):
        load(Overrides(), {"ASSAY_CONFIG": ""})


def test_a_path_with_a_nul_is_refused(project: Path) -> None:
    nul = r"a\u0000b"
    text = f'store = "{nul}"\ntaps = "{nul}"\ngolden = ["{nul}"]\n[engines.x]\nkind = "run-file"\npath = "{nul}"'
    with pytest.raises(BadInput) as caught:
        load(Overrides(config=write(project, text)), {})
    lines = str(caught.value).splitlines()
    assert [line.split(" ", 1)[1].split(":")[0] for line in lines] == ["store", "taps", "golden", "engines.x path"]
    assert all("holds a NUL character" in line and "\0" not in line for line in lines)


@pytest.mark.parametrize("name", [b"\xff.jsonl", b"a\nb.jsonl", b"\x1b[31m.jsonl", "a\u2028b.jsonl".encode()])
def test_a_golden_file_whose_name_is_no_text_is_refused(project: Path, name: bytes) -> None:
    (project / "golden" / os.fsdecode(name)).write_text("")
    with pytest.raises(BadInput, match="is too long, not UTF-8, or holds control characters; rename") as caught:
        load(Overrides(config=project / "assay.toml"), {})
    assert str(caught.value).isprintable()


def test_faults_of_the_file_the_environment_and_the_command_line_are_told_at_once(project: Path) -> None:
    given = Overrides(config=write(project, 'store = ""\n[engines.bm25]\nk1 = "x"'), fetch_seconds=0)
    with pytest.raises(BadInput) as caught:
        load(given, {"ASSAY_THREADS": "many", "ASSAY_TAP": "x", "ASSAY_GOLDEN": "nowhere"})
    assert len(caught.value.faults) == 6


def test_two_golden_sets_of_one_name_are_refused(project: Path) -> None:
    (project / "one.jsonl").write_text("")
    with pytest.raises(BadInput, match="two sets are called one"):
        load(Overrides(config=write(project, 'golden = ["golden", "one.jsonl"]')), {})


def test_the_file_that_comes_with_the_project_names_every_option() -> None:
    import tomllib

    text = (Path(__file__).parent.parent / "config" / "assay.toml").read_text()
    assert set(tomllib.loads(text)) == set(Config.model_fields)
    assert set(tomllib.loads(text)["engines"]) <= set(ENGINES)


def test_the_ledger_is_in_the_store_unless_it_is_named(project: Path) -> None:
    config = project / "assay.toml"
    assert load(Overrides(config=config, store=project / "s"), {}).ledger_url == f"sqlite:///{project}/s/ledger.sqlite"
    assert load(Overrides(config=config), {"ASSAY_LEDGER": f"{project}/x"}).ledger_url == f"sqlite:///{project}/x"
    named = load(Overrides(config=config, ledger="postgresql://user:secret@host/db"), {"ASSAY_LEDGER": "x"})
    assert named.ledger_url == "postgresql+psycopg2://user:secret@host/db"
