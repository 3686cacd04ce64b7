"""Studies and forecasts end to end, over git taps made for them: who took a question is named, before and after."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipeline.cli import main
from pipeline.config import Overrides, load
from pipeline.engines.bm25 import Bm25
from pipeline.engines.okapi import Okapi
from pipeline.falloff.attribution import taken_by_tap
from pipeline.falloff.orders import entry_orders, random_orders, sizes_by_factor, subsets
from tests.conftest import Ended, feed_bytes
from tests.engines.sentence_models import static_model
from tests.falloff.stored import stored
from tests.taps.gitforge import NEVER, Repository

Assay = Callable[..., Ended]

QUESTIONS = 24
"""Enough independent questions for a conclusion."""
HURT = 8
"""Questions whose wording the harmful tap copies, often enough to fill the first ten."""
ANSWERS, COPIES, OTHERS, EMPTY = "home/answers", "copy/cats", "other/texts", "bare/nothing"


def skill(name: str, body: str) -> bytes:
    return f"---\nname: {name}\ndescription: A skill.\n---\n{body}\n".encode()


def asked(place: int) -> str:
    return f"quartz{place} lantern{place} meadow{place}"


def filler(place: int, words: int = 30) -> str:
    return " ".join(f"filler{place}x{word}" for word in range(words))


FILES: Mapping[str, Mapping[str | bytes, bytes]] = {
    ANSWERS: {f"s{at}/SKILL.md": skill(f"answer-{at}", f"{asked(at)} {filler(at)}") for at in range(QUESTIONS)},
    COPIES: {
        f"c{at}x{copy}/SKILL.md": skill(f"copy-{at}-{copy}", f"{asked(at)} {asked(at)} only{at}of{copy}")
        for at in range(HURT)
        for copy in range(10)
    },
    OTHERS: {f"o{at}/SKILL.md": skill(f"other-{at}", filler(1000 + at)) for at in range(12)},
    EMPTY: {"README": b"Nothing here.\n"},
}


class World(NamedTuple):
    """Git taps and a folder for the configuration of a test."""

    repositories: Path
    pins: Mapping[str, str]

    def url(self, tap: str) -> str:
        return str(self.repositories / f"{tap}.git")

    def written(self, tap: str) -> str:
        return f"{self.url(tap)}@{self.pins[tap]}"

    def project(self, folder: Path, taps: Sequence[str], rows: Sequence[Mapping[str, object]], **options: int) -> Path:
        """Write a configuration over some taps; return its file."""
        folder.mkdir(parents=True)
        (folder / "taps.toml").write_text("".join(self.row(tap) for tap in taps))
        (folder / "asked.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        lines = ['store = "store"', 'taps = "taps.toml"', 'golden = ["asked.jsonl"]']
        (folder / "assay.toml").write_text("\n".join([*lines, *(f"{key} = {value}" for key, value in options.items())]))
        return folder / "assay.toml"

    def row(self, tap: str) -> str:
        entries = "entries = 0\n" if tap == EMPTY else ""
        role = "target" if tap == ANSWERS else "scale"
        return f'[[tap]]\nname = "{tap}"\nurl = "{self.url(tap)}"\npin = "{self.pins[tap]}"\nrole = "{role}"\n{entries}'


def question(at: int, exemplar: str | None = None) -> dict[str, object]:
    return {"queryId": f"q{at}", "query": asked(at), "exemplar": exemplar or f"{ANSWERS}::s{at}/SKILL.md"}


ROWS = [question(at) for at in range(QUESTIONS)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("taps")
    pins = {tap: Repository(folder / f"{tap}.git").commit(dict(files)) for tap, files in FILES.items()}
    return World(folder, pins)


class Told(NamedTuple):
    """A forecast made before a tap was admitted, the run after, and what then stood beside the forecast."""

    said: dict[str, Any]
    run: Path
    details: list[dict[str, Any]]
    """What the night that admitted it told of its outputs."""
    recorded: list[dict[str, Any]]


def recorded(config: Path) -> list[dict[str, Any]]:
    (path,) = (config.parent / "store" / "feed" / "forecasts").iterdir()
    return list(pq.read_table(path).to_pylist())


@pytest.fixture(scope="module")
def admitted(world: World, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A night without the harmful tap, its forecast, and the night that admits it."""
    folder = tmp_path_factory.mktemp("admitted") / "project"
    config = world.project(folder, [ANSWERS, OTHERS], ROWS, orders=3)
    main(["run", "--config", str(config), "--json"])
    main(["forecast", world.written(COPIES), "--config", str(config), "--json"])
    before = recorded(config)
    with (config.parent / "taps.toml").open("a") as taps:
        taps.write(world.row(COPIES))
    main(["run", "--config", str(config), "--json"])
    latest = json.loads((config.parent / "store" / "feed" / "latest.json").read_text())["folder"]
    feed = config.parent / "store" / "feed"
    details = pq.read_table(max((feed / "nights").iterdir()))["details"].to_pylist()[0]
    return Told({"rows": before}, feed / latest, details, recorded(config))


def of(rows: Sequence[dict[str, Any]], metric: str = "recall@10", grading: str = "row") -> dict[str, Any]:
    (row,) = [row for row in rows if (row["metric"], row["grading"]) == (metric, grading)]
    return row


def test_a_tap_that_copies_the_wording_of_answers_is_foreseen_to_hurt(admitted: Told) -> None:
    row = of(admitted.said["rows"])
    assert row["outlook"] == "hurts"
    assert row["change"] == pytest.approx(-HURT / QUESTIONS)
    assert row["taken"] == [f"q{at}" for at in range(HURT)]
    assert (row["entries"], row["mirrors"]) == (HURT * 10, 0)
    assert (row["run_after"], row["realised"]) == (None, None)
    for metric in ("judged@10", "rbp_residual@100"):
        known = of(admitted.said["rows"], metric)
        assert (known["outlook"], known["reason"]) == (None, "it says how much is known, not how good it is")
    assert row["outcome"] == "no run of these taps with this one more is published yet"


def test_once_it_is_admitted_what_it_did_stands_beside_what_was_said(admitted: Told) -> None:
    row = of(admitted.recorded)
    assert row["realised"] == pytest.approx(-HURT / QUESTIONS)
    assert row["error"] == pytest.approx(0.0)
    assert row["within"] is True and row["outcome"] is None
    assert admitted.run.name == f"run={row['run_after']}" and row["run_before"] != row["run_after"]


def test_the_night_that_admits_it_tells_what_came_of_the_forecast(admitted: Told) -> None:
    (told,) = [each["detail"] for each in admitted.details if each["stage"] == "feed"]
    change = f"{-HURT / QUESTIONS:+.4f}"
    assert f"recall@10 was said to change by {change} and changed by {change}, within the interval" in told


def test_the_tap_that_hurts_is_named_and_the_one_of_other_texts_is_not(admitted: Told) -> None:
    taken = taken_by_tap(pq.read_table(admitted.run / "attribution.parquet"))
    assert taken == pytest.approx({COPIES: HURT})


def test_the_curve_ends_at_the_headline_and_the_report_says_so(admitted: Told) -> None:
    points = pq.read_table(admitted.run / "falloff.parquet").to_pylist()
    whole = [row for row in points if row["seed"] is None and row["metric"] == "recall@10" and row["grading"] == "row"]
    end = max((row for row in whole if row["treatment"] == "removed"), key=lambda row: row["step"])
    assert end["value"] == pytest.approx(1 - HURT / QUESTIONS)
    page = (admitted.run / "report.html").read_text()
    assert "Its end is the headline of the run." in page
    assert f"{COPIES} took 100%" in page.replace("<bdi>", "").replace("</bdi>", "")
    assert {"falloff.png", "falloff.svg", "attribution.png"} <= {path.name for path in admitted.run.iterdir()}


def test_a_tap_of_other_texts_is_not_foreseen_to_change_anything(world: World, tmp_path: Path, assay: Assay) -> None:
    config = world.project(tmp_path / "p", [ANSWERS, COPIES], ROWS)
    ended = assay("forecast", world.written(OTHERS), "--name", OTHERS, "--config", config, "--json")
    row = of(ended.json["forecasts"])
    assert (row["outlook"], row["change"], row["taken"], row["brought"]) == ("no change shown", 0.0, [], [])


@pytest.mark.parametrize(
    ("written", "exit_code", "words"),
    [
        (lambda world: f"{world.url(OTHERS)}@{NEVER}", 1, "missing_pin"),
        (lambda world: f"{world.url('other/gone')}@{world.pins[OTHERS]}", 1, "gone"),
        (lambda world: f"git://127.0.0.1:1/other/texts@{world.pins[OTHERS]}", 75, "unavailable"),
        (lambda world: f"{world.url(OTHERS)}@{world.pins[OTHERS][:7]}", 2, "pin"),
        (lambda world: world.url(OTHERS), 2, "URL@PIN"),
        (lambda world: world.written(ANSWERS), 2, "the list has a tap of this name or place"),
        (lambda world: world.written(EMPTY), 2, "it has no entry, so it changes nothing"),
    ],
    ids=["missing pin", "gone", "outage", "short pin", "no pin", "in the list", "no entry"],
)
def test_a_candidate_that_cannot_be_measured_is_refused_as_any_tap_is(
    world: World, tmp_path: Path, assay: Assay, written: Callable[[World], str], exit_code: int, words: str
) -> None:
    config = world.project(tmp_path / "p", [ANSWERS], ROWS)
    ended = assay("forecast", written(world), "--config", config)
    assert (ended.exit_code, words in ended.err) == (exit_code, True), ended.err
    assert not (tmp_path / "p" / "store" / "feed").exists()


def test_a_candidate_that_no_name_can_be_made_of_is_to_be_named(
    world: World, tmp_path: Path, assay: Assay, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = world.project(tmp_path / "p", [ANSWERS], ROWS, orders=1)
    monkeypatch.chdir(world.repositories / "copy")
    found = assay("forecast", f"../other/texts.git@{world.pins[OTHERS]}", "--config", config, "--json")
    assert found.json["tap"] == OTHERS
    odd = world.repositories / "odd+name.git"
    odd.symlink_to(world.url(OTHERS))
    ended = assay("forecast", f"{odd}@{world.pins[OTHERS]}", "--config", config)
    assert ended.exit_code == 2 and ended.err.endswith("say what it would be called: --name owner/repo\n")


def test_a_run_without_the_tap_that_comes_last_tells_the_outcome_too(
    world: World, tmp_path: Path, assay: Assay
) -> None:
    config = world.project(tmp_path / "p", [ANSWERS], ROWS, orders=0)
    listed = (config.parent / "taps.toml").read_text()
    assay("forecast", world.written(COPIES), "--config", config)
    (config.parent / "taps.toml").write_text(listed + world.row(COPIES))
    assay("run", "--config", config)
    assert "no run of the same taps without it" in of(recorded(config))["outcome"]
    (config.parent / "taps.toml").write_text(listed)
    assay("run", "--config", config)
    row = of(recorded(config))
    assert row["outcome"] is None and row["realised"] == pytest.approx(-HURT / QUESTIONS)


def test_a_password_in_a_url_is_not_repeated(world: World, tmp_path: Path, assay: Assay) -> None:
    config = world.project(tmp_path / "p", [ANSWERS], ROWS)
    ended = assay("forecast", "https://me:secret@example.org/a/b@short", "--config", config)
    assert ended.exit_code == 2 and "secret" not in ended.err


class TestStudy:
    """What a study draws, and what it says where it draws nothing."""

    def test_it_names_who_took_what_and_is_published_once(self, world: World, tmp_path: Path, assay: Assay) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, COPIES, OTHERS, EMPTY], ROWS, orders=3, sizes=6)
        words = ("study", "--by", "random", "--by", "size", "--config", config, "--json")
        first = assay(*words)
        assert first.exit_code == 0, first.err
        folder = Path(first.json["folder"])
        assert folder.name == f"study={first.json['study_id']}"
        assert taken_by_tap(pq.read_table(folder / "attribution.parquet")) == pytest.approx({COPIES: HURT})
        assert any("1.000 over 24 entries of 1 tap" in said for said in first.json["said"][0]["sentences"])
        assert any(EMPTY in said and "no entry" in said for said in first.json["not_drawn"])
        before = feed_bytes(tmp_path / "p" / "store")
        assert assay(*words).json == first.json
        assert feed_bytes(tmp_path / "p" / "store") == before

    def test_a_tap_that_is_left_out_joins_nowhere(self, world: World, tmp_path: Path, assay: Assay) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, COPIES, OTHERS], ROWS, orders=2)
        ended = assay("study", "--exclude", COPIES, "--config", config, "--json")
        assert (ended.json["taps"], ended.json["left_out"]) == (2, [COPIES])
        assert ended.json["entries"] == QUESTIONS + 12
        same = assay("study", "--include", OTHERS, "--config", config, "--json")
        assert same.json["study_id"] == ended.json["study_id"]

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (("--exclude", ANSWERS), "it is a target, which every subset holds"),
            (("--include", "no/body"), "no tap of the list is called so"),
            (("--engine", "bm26"), "it is not configured"),
            (("--orders", "0"), "0 orders draw no curve"),
            (("--empty-by",), "--empty-by"),
            (("--include", OTHERS, "--exclude", OTHERS), f"--include {OTHERS}: it is excluded as well"),
            (("--include", ANSWERS), f"--include {ANSWERS}: it is a target, which every subset holds"),
            (("--step", "5", "--at", "30"), "--step 5: and --at are two ways to say at what sizes"),
            (("--at", "0"), "--at 0: is no size"),
            (("--orders", "1000", "--sizes", "1000"), "1000 orders at 1000 sizes of 24 questions are more than"),
            (("--seed", "-1"), "--seed: -1 is no seed; give a whole number from 0 to 4294967295"),
            (("--seed", str(2**64)), f"--seed: {2**64} is no seed"),
        ],
        ids=[
            "target",
            "unknown tap",
            "unknown engine",
            "no order",
            "no kind of order",
            "in and out",
            "target joins",
            "two ways",
            "no size",
            "too many",
            "seed below 0",
            "seed too large",
        ],
    )
    def test_what_cannot_be_studied_is_refused(
        self, world: World, tmp_path: Path, assay: Assay, words: Sequence[str], told: str
    ) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, OTHERS], ROWS)
        ended = assay("study", *words, "--config", config)
        assert (ended.exit_code, told in ended.err) == (2, True), ended.err

    def test_a_single_tap_has_no_curve(self, world: World, tmp_path: Path, assay: Assay) -> None:
        ended = assay("study", "--config", world.project(tmp_path / "p", [ANSWERS], ROWS), "--json")
        assert ended.json["said"] == []
        assert any("nothing joins the targets" in said for said in ended.json["not_drawn"])
        assert not list(Path(ended.json["folder"]).glob("*.png"))

    def test_fewer_than_twenty_questions_draw_no_curve(self, world: World, tmp_path: Path, assay: Assay) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, COPIES, OTHERS], ROWS[:19], orders=2)
        ended = assay("study", "--config", config, "--json")
        (said,) = ended.json["said"]
        assert said["label"] == "insufficient items"
        assert said["sentences"] == [
            "No curve is drawn: 19 independent questions of 19 can be followed, and fewer than 20 support no curve."
        ]
        assert not list(Path(ended.json["folder"]).glob("falloff*.png"))

    def test_a_question_whose_answer_is_in_no_target_is_left_out_of_every_point_and_told(
        self, world: World, tmp_path: Path, assay: Assay
    ) -> None:
        rows = [*ROWS, {**question(99, f"{OTHERS}::o1/SKILL.md"), "query": filler(1001, 3)}]
        config = world.project(tmp_path / "p", [ANSWERS, OTHERS], rows, orders=2)
        ended = assay("study", "--config", config, "--json")
        assert any("1 question is left out of every point" in said for said in ended.json["said"][0]["sentences"])

    def test_a_question_of_several_right_answers_is_followed_where_one_of_them_is_in_a_target(
        self, world: World, tmp_path: Path, assay: Assay
    ) -> None:
        both = [f"{ANSWERS}::s0/SKILL.md", f"{OTHERS}::o1/SKILL.md"]
        rows = [{**ROWS[0], "exemplar": both, "match": match, "queryId": match} for match in ("any", "all")]
        rows[1]["query"] = filler(0, 3)
        config = world.project(tmp_path / "p", [ANSWERS, OTHERS], [*rows, *ROWS[1:]], orders=2)
        ended = assay("study", "--config", config, "--json")
        assert any("1 question is left out of every point" in said for said in ended.json["said"][0]["sentences"])

    def test_an_order_asked_for_twice_is_drawn_once_and_told(self, world: World, tmp_path: Path, assay: Assay) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, OTHERS], ROWS, orders=3)
        ended = assay("study", "--by", "random", "--by", "random", "--config", config, "--json")
        assert ended.json["by"] == ["random"]
        assert any(
            "one tap joins, so there is one order; it is drawn once (3 were asked for)" in said
            for said in ended.json["not_drawn"]
        )
        seeds = pq.read_table(Path(ended.json["folder"]) / "falloff.parquet")["seed"].to_pylist()
        assert {*seeds} == {0, None}

    def test_with_global_statistics_every_point_is_that_of_the_scores_of_the_whole_corpus(
        self, world: World, tmp_path: Path, assay: Assay
    ) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, COPIES, OTHERS, EMPTY], ROWS, orders=2, sizes=6)
        config.write_text(f"{config.read_text()}\n[engines.bm25]\n[engines.bm25-okapi]\n")
        words = ("study", "--by", "random", "--by", "entries", "--config", config, "--json")
        ended = assay(*words, "--statistics", "global")
        assert ended.exit_code == 0, ended.err
        assert ended.json["statistics"] == "global" and assay(*words).json["study_id"] != ended.json["study_id"]
        folder = Path(ended.json["folder"])
        page = (folder / "report.html").read_text()
        assert "words weigh what they weigh in the whole corpus" in page
        assert "as the catalogue grows, with the weights of the whole corpus" in page
        tables = [
            pq.read_table(path) for path in folder.glob("*.parquet") if path.stem not in ("forecasts", "falloff_notes")
        ]
        assert all({*table["statistics"].to_pylist()} == {"global"} for table in tables)

        settings = load(Overrides(config=config), {})
        of = stored(settings)
        points = pq.read_table(folder / "falloff.parquet").to_pylist()
        for kind, drawn in (("random", random_orders), ("entries", entry_orders)):
            order = drawn(of.corpus, 2).drawn[0]
            steps = subsets(of.corpus, order, sizes_by_factor(of.corpus, 6).nominal)
            for step in range(steps.steps):
                for name in ("bm25", "bm25-okapi"):
                    ours = {
                        (row["grading"], row["treatment"], row["metric"]): row["value"]
                        for row in points
                        if (row["engine"], row["order_kind"], row["seed"], row["step"]) == (name, kind, 0, step + 1)
                        and row["grading"] != "qrels"
                    }
                    engine = settings.engines[name]
                    assert isinstance(engine, Bm25 | Okapi)
                    assert ours == of.filtered(engine, steps, step)

    def test_sizes_come_by_step_or_by_list_too(self, world: World, tmp_path: Path, assay: Assay) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, COPIES, OTHERS], ROWS, orders=2)

        def nominal(*words: str) -> list[int]:
            ended = assay("study", "--by", "entries", *words, "--config", config, "--json")
            assert ended.exit_code == 0, ended.err
            return sorted({*pq.read_table(Path(ended.json["folder"]) / "falloff.parquet")["nominal"].to_pylist()})

        assert nominal("--step", "40") == [24, 40, 80, 116]
        assert nominal("--at", "100", "--at", "30", "--at", "100") == [24, 30, 100, 116]
        ended = assay("study", "--by", "entries", "--at", "500", "--config", config, "--json")
        assert any("size 500: the whole corpus has 116" in said for said in ended.json["not_drawn"])

    @pytest.mark.parametrize("by", ["size", "date", "harm"])
    def test_an_order_that_is_not_drawn_has_its_curve_and_its_band_over_questions(
        self, world: World, tmp_path: Path, assay: Assay, by: str
    ) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, COPIES, OTHERS], ROWS)
        ended = assay("study", "--by", by, "--config", config, "--json")
        name = {"size": "falloff-size", "date": "falloff-first-seen", "harm": "falloff-confuser"}[by]
        assert {f"{name}.png", f"{name}.svg"} <= {path.name for path in Path(ended.json["folder"]).iterdir()}
        assert any("over drawn orders of taps alone (--by random)" in said for said in ended.json["not_drawn"])

    def test_an_engine_that_cannot_run_is_told(self, world: World, tmp_path: Path, assay: Assay) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, OTHERS], ROWS, orders=1)
        config.write_text(f'{config.read_text()}\n[engines.bm25]\n[engines.dense]\npath = "nowhere"\n')
        ended = assay("study", "--config", config, "--json")
        assert any("no curve of dense is drawn: it is not run: " in said for said in ended.json["not_drawn"])
        asked_for = assay("study", "--engine", "bm25", "--config", config, "--json")
        assert not any("dense" in said for said in asked_for.json["not_drawn"])
        told = assay("forecast", world.written(COPIES), "--config", config, "--json").json["not_made"]
        assert [said for said in told if said.startswith("dense: no forecast: it is not run: ")]

    def test_studies_that_leave_out_other_taps_are_two(self, world: World, tmp_path: Path, assay: Assay) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, COPIES, OTHERS], ROWS, orders=1)
        left = assay("study", "--exclude", COPIES, "--config", config, "--json").json
        (config.parent / "taps.toml").write_text(world.row(ANSWERS) + world.row(OTHERS))
        none = assay("study", "--config", config, "--json").json
        assert left["study_id"] != none["study_id"]
        assert (left["left_out"], none["left_out"]) == ([COPIES], [])

    def test_a_tap_that_holds_the_content_of_an_exemplar_is_a_target(
        self, world: World, tmp_path: Path, assay: Assay
    ) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, OTHERS], ROWS, orders=1)
        run = assay("run", "--config", config, "--json")
        entries = pq.read_table(Path(run.json["feed"]) / "entries.parquet").to_pylist()
        body = {(entry["tap"], entry["path_text"]): entry["body_sha256"] for entry in entries}
        rows = [question(at, f"class:{body[ANSWERS, f's{at}/SKILL.md']}") for at in range(QUESTIONS)]
        (config.parent / "asked.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        listed = (config.parent / "taps.toml").read_text()
        (config.parent / "taps.toml").write_text(re.sub(r"role = .*\n", "", listed))
        ended = assay("study", "--config", config, "--json")
        assert ended.exit_code == 0, ended.err
        assert "1.000 over 24 entries of 1 tap to" in ended.json["said"][0]["sentences"][0]

    def test_engines_of_any_name_are_drawn(self, world: World, tmp_path: Path, assay: Assay) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, COPIES, OTHERS], ROWS, orders=2, sizes=3)
        names = ["if", "a.b[0]", "x'y", "<b>&amp;"]
        engines = "".join(f'[engines.{json.dumps(name)}]\nkind = "metadata"\n' for name in names)
        config.write_text(f"{config.read_text()}\n{engines}")
        ended = assay("study", "--config", config, "--json")
        assert ended.exit_code == 0, ended.err
        svg = (Path(ended.json["folder"]) / "falloff.svg").read_text()
        drawn = {text.strip() for text in ElementTree.fromstring(svg).itertext()}
        assert {*names} <= drawn

    def test_floors_of_any_measure_are_told_with_the_size_at_which_they_are_crossed(
        self, world: World, tmp_path: Path, assay: Assay
    ) -> None:
        config = world.project(tmp_path / "p", [ANSWERS, COPIES, OTHERS], ROWS, orders=2, sizes=8)
        floors = '"recall@10" = 0.8\n"recall@100" = 0.5\n"hit@1" = 1\n"must_pass" = 0.5\n'
        config.write_text(f"{config.read_text()}\n[engines.bm25]\n[engines.metadata]\n[floors.bm25]\n{floors}")
        ended = assay("study", "--by", "entries", "--config", config, "--json")
        assert ended.exit_code == 0, ended.err
        told = {said["engine"]: " ".join(said["sentences"]) for said in ended.json["said"]}
        assert re.search(
            r"recall@10 falls below its floor of 0\.80 at about \d+ entries \(\d+ to [^)]+\)", told["bm25"]
        )
        assert "recall@100 falls below its floor of 0.50: not reached" in told["bm25"]
        assert "hit@1 " in told["bm25"] and "floor" not in told["metadata"]
        assert any("bm25: floor of must_pass: it is measured on" in said for said in ended.json["not_drawn"])
        rows = pq.read_table(Path(ended.json["folder"]) / "falloff_summaries.parquet").to_pylist()
        crossed = {(row["engine"], row["metric"]) for row in rows if row["summary"] == "floor crossing"}
        assert crossed == {("bm25", "recall@10"), ("bm25", "recall@100"), ("bm25", "hit@1")}
        other = assay("study", "--by", "entries", "--config", config, "--floors.bm25.recall@10", "0.7", "--json")
        assert other.json["study_id"] != ended.json["study_id"]


def test_a_night_whose_curves_are_switched_off_says_so(world: World, tmp_path: Path, assay: Assay) -> None:
    config = world.project(tmp_path / "p", [ANSWERS], ROWS[:1], orders=0)
    assert assay("run", "--config", config).exit_code == 0
    (run,) = (tmp_path / "p" / "store" / "feed").glob("run=*")
    assert "orders = 0 in the configuration switches curves off" in (run / "report.html").read_text()


ENGINES = """
[engines.bm25]
[engines.dense]
path = "model"
[engines.both]
kind = "hybrid"
of = ["bm25", "dense"]
[engines.theirs]
kind = "run-file"
path = "their.run"
[engines.with-theirs]
kind = "hybrid"
of = ["bm25", "theirs"]
"""


def test_engines_of_every_kind_end_at_their_headline_or_say_why_they_have_no_curve(
    world: World, tmp_path: Path, assay: Assay
) -> None:
    config = world.project(tmp_path / "p", [ANSWERS, COPIES, OTHERS], ROWS, orders=2, sizes=3)
    config.write_text(config.read_text() + ENGINES)
    words = [word for at in range(QUESTIONS) for word in asked(at).split()]
    numbers = np.random.Generator(np.random.PCG64(0)).normal(size=(len(words), 16))
    static_model(config.parent / "model", dict(zip(words, numbers.tolist(), strict=True)))
    lines = [f"q{at} Q0 {ANSWERS}::s{at}/SKILL.md 1 1.0 theirs\n" for at in range(QUESTIONS)]
    (config.parent / "their.run").write_text("".join(lines))
    ended = assay("run", "--config", config, "--json")
    assert ended.exit_code == 0, ended.err
    tables = {
        name: pq.read_table(Path(ended.json["feed"]) / f"{name}.parquet") for name in ("falloff", "falloff_notes")
    }
    ends = {
        row["engine"]: row["value"]
        for row in sorted(tables["falloff"].to_pylist(), key=lambda row: row["step"])
        if (row["seed"], row["metric"], row["grading"], row["treatment"]) == (None, "recall@10", "row", "removed")
    }
    headline = {row["engine"]: row["values"]["recall@10"] for row in ended.json["headline"] if row["grading"] == "row"}
    assert ends.keys() == {"bm25", "dense", "both"}
    assert ends == pytest.approx({engine: headline[engine] for engine in ends})
    why = {row["engine"]: row["reason"] for row in tables["falloff_notes"].to_pylist() if row["what"] == "curve"}
    assert why.keys() == {"theirs", "with-theirs"}
    assert "made outside" in why["theirs"] and "its source theirs has no curve" in why["with-theirs"]
