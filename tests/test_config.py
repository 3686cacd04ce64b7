"""Options come from the command line, the environment and the file, in this order; faults are told all at once."""

from __future__ import annotations

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


def test_a_wrong_variable_is_called_by_its_name(project: Path) -> None:
    with pytest.raises(BadInput, match="ASSAY_THREADS: 'many' is not a whole number"):
        load(Overrides(config=project / "assay.toml"), {"ASSAY_THREADS": "many"})


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
