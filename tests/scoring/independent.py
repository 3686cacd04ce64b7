"""A little program of its own that works out answers and abstentions from what a run published. It calls no stage.

It reads entries, rankings and items of the run, the golden set, and the catalogues for the words of the entries.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

_STOPPED = "the a an and or of to for in on with is are be this that it as at by from your you can will if when how"
STOPPED = set(re.findall(r"\w+", _STOPPED))
SPECIAL = {"c++": "cpp", "c#": "csharp", "f#": "fsharp", "objective-c": "objectivec", "objective c": "objectivec"}
Numbers = dict[str, Any]


def tokens(text: str) -> list[str]:
    text = unicodedata.normalize("NFC", text).lower()
    for name, word in SPECIAL.items():
        text = re.sub(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", f" {word} ", text)
    if text.isascii():
        return [word for word in re.findall(r"[a-z0-9]+", text) if len(word) > 1 and word not in STOPPED]
    found: list[str] = []
    run, script = "", ""
    for char in f"{text} ":
        kind = "cjk" if _is_cjk(char) else "word" if unicodedata.category(char)[0] in "LNM" else ""
        if kind != script and run:
            pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
            found += pairs if script == "cjk" else [run]
            run = ""
        script = kind
        run += char if kind else ""
    return [word for word in found if word not in STOPPED and not (len(word) == 1 and word.isascii())]


def _is_cjk(char: str) -> bool:
    name = unicodedata.name(char, "")
    return unicodedata.category(char)[0] in "LNM" and name.startswith(("CJK UNIFIED", "HIRAGANA", "KATAKANA"))


class Run:
    """What one engine ranked for one golden set."""

    def __init__(self, store: Path, feed: Path, golden: Path, engine: str = "bm25") -> None:
        def rows(name: str, *columns: str) -> list[dict[str, Any]]:
            return pq.read_table(feed / f"{name}.parquet", columns=list(columns) or None).to_pylist()  # type: ignore[no-any-return]

        self.store = store
        own = (golden.stem, engine)
        lines = [line for line in golden.read_text("utf-8").splitlines() if line.strip() and not line.startswith("#")]
        written = {row.get("query") or row["question"]: row for row in map(json.loads, lines)}
        items = [row for row in rows("items") if (row["golden_set"], row["engine"]) == own and row["grading"] == "row"]
        self.rows = {row["query_id"]: written[row["question"]] for row in items}
        self.questions = {row["query_id"]: row["question"] for row in items}
        self.ranked: dict[str, list[tuple[int, float, str]]] = {query_id: [] for query_id in self.rows}
        for hit in rows("rankings", "golden_set", "engine", "query_id", "rank", "score", "class_id"):
            if (hit["golden_set"], hit["engine"]) == own and hit["rank"] is not None:
                self.ranked[hit["query_id"]].append((hit["rank"], hit["score"], hit["class_id"]))
        for hits in self.ranked.values():
            hits.sort()
        self.class_of = {
            f"{row['tap']}::{row['path_text']}": row["class_id"]
            for row in rows("entries", "tap", "path_text", "class_id")
        }

    def answerable(self, query_id: str) -> bool:
        row = self.rows[query_id]
        return bool(row.get("answerable", row.get("questionType") != "false_premise"))

    def grade(self, query_id: str) -> int | None:
        """An exemplar is grade 3; nobody judged anything else."""
        exemplars = self.rows[query_id].get("exemplar", [])
        named = [exemplars] if isinstance(exemplars, str) else exemplars
        first = self.ranked[query_id][:1]
        return 3 if first and first[0][2] in {self.class_of[name] for name in named} else None

    def signals(self, reach: dict[str, float]) -> dict[str, Numbers]:
        found = {}
        for query_id, hits in self.ranked.items():
            scores = [score for _, score, _ in hits]
            found[query_id] = {
                "top_score": scores[0] if scores else None,
                "reached": scores[0] / reach[query_id] if scores else None,
                "gap": None if not scores else 1.0 if len(scores) == 1 else (scores[0] - scores[1]) / scores[0],
            }
        return found

    def reach(self) -> dict[str, float]:
        """BM25 with k1 = 1.2: every distinct word of a question at its most, 2.2 times its weight."""
        held: Counter[str] = Counter()
        entries = 0
        for words in self._documents():
            entries += 1
            held.update(words)
        asked = {query_id: tokens(text) for query_id, text in self.questions.items()}
        found = {}
        for query_id, question in asked.items():
            used = dict.fromkeys(self._stand_in(word, held) for word in question)
            weights = [math.log(1 + (entries - held[word] + 0.5) / (held[word] + 0.5)) for word in used]
            found[query_id] = 2.2 * math.fsum(weights)
        return found

    @staticmethod
    def _stand_in(word: str, held: Counter[str]) -> str:
        if word in held or len(word) < 4:
            return word
        return min(((-count, other) for other, count in held.items() if other.startswith(word)), default=(0, word))[1]

    def _documents(self) -> Iterator[set[str]]:
        for file in sorted((self.store / "store" / "catalog").glob("*/entries.parquet")):
            columns = ["slug", "description", "body"]
            for row in pq.read_table(file, columns=columns).to_pylist():
                opened = re.sub("[-_]+", " ", row["slug"])
                yield set(tokens("\n".join([row["slug"], opened, row["description"] or "", row["body"]])))


def wilson(share: float, n: float) -> tuple[float, float]:
    z = 1.959963984540054
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def independent(clusters: list[str]) -> float:
    sizes = Counter(clusters).values()
    return sum(sizes) ** 2 / sum(size * size for size in sizes)


def worth(item: Numbers, threshold: float) -> float | None:
    """What the answer is worth; None where nobody judged it."""
    if item["signal"] is None or item["signal"] < threshold:
        return 0.0
    if not item["answerable"]:
        return -1.0
    return {None: None, 3: 1.0, 2: 0.5}.get(item["grade"], -1.0)


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def fitted(tuning: list[Numbers]) -> float:
    """The truthful threshold that loses at most one answerable item in twenty; the lowest of equal ones."""
    answerable = [item for item in tuning if item["answerable"]]
    best = (-math.inf, -math.inf)
    tried = {item["signal"] for item in tuning if item["signal"] is not None} | {math.inf}
    for threshold in sorted(tried, reverse=True) if answerable else ():
        lost = sum(item["signal"] is None or item["signal"] < threshold for item in answerable)
        unavoidable = sum(item["signal"] is None for item in answerable)
        value = mean(worth(item, threshold) for item in tuning)
        if value is not None and lost <= max(0.05 * len(answerable), unavoidable) and value >= best[0]:
            best = (value, threshold)
    return best[1]


def figures(items: list[Numbers], threshold: float) -> Numbers:
    """Return every figure of a policy, by the names of the table."""
    values = [worth(item, threshold) for item in items]
    given = [item["signal"] is not None and item["signal"] >= threshold for item in items]
    unjudged = sum(value is None for value in values)
    credited = [
        1.0 if not item["answerable"] and not answered else value
        for item, answered, value in zip(items, given, values, strict=True)
    ]
    found: Numbers = {
        "n_items": len(items),
        "n_unjudged": unjudged,
        "truthfulness": mean(values),
        "truthfulness_low": (math.fsum(v for v in values if v is not None) - unjudged) / len(items),
        "truthfulness_high": (math.fsum(v for v in values if v is not None) + unjudged) / len(items),
        "truthfulness_abstain_credit": mean(credited),
        "coverage": sum(given) / len(items),
    }
    for name, kind, wrong in (("false_answer", False, True), ("false_abstention", True, False)):
        chosen = [answered for item, answered in zip(items, given, strict=True) if item["answerable"] is kind]
        if chosen:
            rate = sum(answered is wrong for answered in chosen) / len(chosen)
            n = independent([item["cluster"] for item in items if item["answerable"] is kind])
            low, high = wilson(rate, n)
            found |= {f"{name}_rate": rate, f"{name}_low": low, f"{name}_high": high}
        else:
            found |= {f"{name}_{part}": None for part in ("rate", "low", "high")}
    return found | told(items)


def told(items: list[Numbers]) -> Numbers:
    """Return what the signal tells: the area by ranks, and the areas under the curve of risk."""
    by_signal = sorted(items, key=lambda item: -math.inf if item["signal"] is None else item["signal"])
    signals = [-math.inf if item["signal"] is None else item["signal"] for item in by_signal]
    places: dict[float, list[int]] = {}
    for place, signal in enumerate(signals, 1):
        places.setdefault(signal, []).append(place)
    ranks = [sum(places[signal]) / len(places[signal]) for signal in signals]
    positive = [rank for rank, item in zip(ranks, by_signal, strict=True) if item["answerable"]]
    n, m = len(positive), len(items) - len(positive)
    area = (math.fsum(positive) - n * (n + 1) / 2) / (n * m) if n and m else None
    judged = [
        (item["signal"], not item["answerable"] or (item["grade"] or 0) < 2)
        for item in items
        if item["signal"] is not None and (not item["answerable"] or item["grade"] is not None)
    ]
    if not judged:
        return {"auroc": area, "aurc": None, "excess_aurc": None}
    # Among equal signals errors are spread evenly.
    risks: list[float] = []
    before = 0.0
    for signal in sorted({signal for signal, _ in judged}, reverse=True):
        tied = [wrong for other, wrong in judged if other == signal]
        for place in range(1, len(tied) + 1):
            risks.append((before + sum(tied) * place / len(tied)) / (len(risks) + 1))
        before += sum(tied)
    right = len(judged) - round(before)
    best = [max(0, place - right) / place for place in range(1, len(judged) + 1)]
    aurc = math.fsum(risks) / len(risks)
    return {"auroc": area, "aurc": aurc, "excess_aurc": aurc - math.fsum(best) / len(best)}
