"""Runs made up for the tests of the page: the feed's tables, column by column, of any size."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

Tables = dict[str, pa.Table]
Rows = list[dict[str, Any]]

RUN = hashlib.sha256(b"run").hexdigest()
CORPUS = hashlib.sha256(b"corpus").hexdigest()
WORDS = (
    "review",
    "deploy",
    "parse",
    "extract",
    "migrate",
    "schema",
    "chart",
    "invoice",
    "kubernetes",
    "commit",
    "audit",
)
DEPTHS = (1, 3, 5, 10, 20, 100)
LABELS = ((0, "no items"), (20, "insufficient items"), (50, "low confidence"))


def label_of(n: int) -> str:
    return "no items" if n == 0 else next((label for most, label in LABELS if n < most), "ok")


def entry_rows(rng: random.Random, taps: Sequence[str], count: int) -> Rows:
    rows: Rows = []
    for place in range(count):
        tap = taps[min(int(rng.expovariate(0.35)), len(taps) - 1)]
        copied = rows[rng.randrange(len(rows))] if rows and rng.random() < 0.2 else None
        slug = copied["slug"] if copied and rng.random() < 0.7 else f"{rng.choice(WORDS)}-{rng.choice(WORDS)}"
        path = f"skills/{slug}-{place}/SKILL.md"
        rows.append(
            {
                "tap": tap,
                "path": path.encode(),
                "path_text": path,
                "kind": rng.choices(["skill", "rule", "workflow"], [8, 3, 1])[0],
                "name": slug,
                "slug": slug,
                "description": None if place % 17 == 5 else f"How to {rng.choice(WORDS)} and {slug}. " * 4,
                "class_id": copied["class_id"] if copied else hashlib.sha256(str(place).encode()).hexdigest(),
                "mirror": False,
                "mirror_kind": None,
                "renamed_mirror": False,
            }
        )
    rows.sort(key=lambda row: (row["tap"].encode(), row["path"]))
    first: dict[str, Any] = {}
    carriers: dict[str, set[str]] = {}
    for row in rows:
        carriers.setdefault(row["slug"], set()).add(row["class_id"])
        original = first.setdefault(row["class_id"], row)
        if original is not row:
            row["mirror"] = True
            row["mirror_kind"] = "intra_tap" if original["tap"] == row["tap"] else "cross_tap"
            row["renamed_mirror"] = original["slug"] != row["slug"]
    for row in rows:
        row["homonyms"] = len(carriers[row["slug"]]) - 1
        row["body_sha256"] = row["class_id"]
        row["cluster_id"] = None
    return rows


READINGS = ("copies", "family", "copies", "vetoed")


def near_rows(entries: Rows) -> dict[str, Rows]:
    """Make up clusters of three classes each, a family, and pairs; put the entries into the clusters."""
    by_class: dict[str, Rows] = {}
    for entry in entries:
        by_class.setdefault(entry["class_id"], []).append(entry)
    ids = sorted(by_class)
    groups = [ids[at : at + 3] for at in range(0, max(len(ids) // 4, 2), 3)]
    clusters: Rows = []
    members: Rows = []
    pairs: Rows = []
    for number, bodies in enumerate(groups):
        cluster_id = hashlib.sha256("".join(bodies).encode()).hexdigest()
        held = [entry for body in bodies for entry in by_class[body]]
        for entry in held:
            entry["cluster_id"] = cluster_id
        place = {name: held[0][name] for name in ("tap", "path", "path_text", "slug")}
        members += [{"cluster_id": cluster_id, "body_sha256": body, **place} for body in bodies]
        counts = {"bodies": len(bodies), "entries": len(held), "taps": len({entry["tap"] for entry in held})}
        shared = {**counts, "names": sorted({entry["slug"] for entry in held}), "evidence": ["ours / theirs"], **place}
        measured = {"lowest_similarity": 0.7 + number / 100, "chained": False} if number % 3 else {}
        clusters.append(
            {
                "cluster_id": cluster_id,
                "reading": READINGS[number % len(READINGS)],
                "lowest_similarity": None,
                "chained": None,
                "confusable": ["coinmarketcal / coinmarketcap"] if number % len(READINGS) == 3 else [],
                **measured,
                **shared,
            }
        )
        sides = {f"{side}_{name}": value for side in ("left", "right") for name, value in place.items()}
        pairs.append(
            {
                "side": "above" if number % 2 else "below",
                "similarity": 0.8 + number / 1000 if number % 2 else 0.79 - number / 1000,
                "left_body": bodies[0],
                "right_body": bodies[-1],
                "differs": "runs [-npm-] {+pnpm+} install",
                **sides,
            }
        )
    families = [
        {"family_id": row["cluster_id"], "shared_words": 0.9, "slots": ["the job"], **row}
        for row in clusters
        if row["reading"] == "family"
    ]
    return {
        "near_duplicate_clusters": clusters,
        "near_duplicate_members": members,
        "near_pairs": pairs,
        "template_families": families,
    }


def near_facts(near: dict[str, Rows]) -> dict[str, Any]:
    clusters = near["near_duplicate_clusters"]
    readings = [row["reading"] for row in clusters]
    counts = {name: sum(row[name] for row in clusters) for name in ("bodies", "entries")}
    return {
        "clusters": len(clusters),
        **{f"clusters_{reading}": readings.count(reading) for reading in ("copies", "family", "vetoed")},
        "clusters_chained": 0,
        **counts,
        "eligible": 1234,
        "unverified_clusters": 77,
        "unverified_bodies": 321,
        "exact_pairs": 55,
        "exact_bodies": 66,
        "astray": 2,
        "lsh_candidates": 99,
        "lsh_recall": 0.9871,
        "lsh_precision": 0.6543,
        "families": len(near["template_families"]),
        "families_bodies": 3,
        "families_entries": 3,
        "families_largest": 3,
    }


def near_metric_rows(metrics: Rows) -> Rows:
    """Make up the second number: the headline, a little higher."""
    columns = ("golden_set", "engine", "grading", "metric", "k", "n", "n_items", "ci_low", "ci_high", "label", "reason")
    return [
        {
            **{column: row[column] for column in columns},
            "exact": row["value"],
            "value": None if row["value"] is None else min(row["value"] + 0.012, 1.0),
            "n_moved": 3,
        }
        for row in metrics
        if row["facet"] == "all" and row["metric"] in ("recall@10", "hit@1", "mrr@100", "ndcg@10")
    ]


def class_rows(entries: Rows) -> Rows:
    members: dict[str, Rows] = {}
    for entry in entries:
        members.setdefault(entry["class_id"], []).append(entry)
    return [
        {
            "class_id": class_id,
            "rule": "body",
            "entries": len(rows),
            "names": sorted({row["slug"] for row in rows}),
            "intra_tap_mirrors": sum(row["mirror_kind"] == "intra_tap" for row in rows),
            "cross_tap_mirrors": sum(row["mirror_kind"] == "cross_tap" for row in rows),
            "renamed_mirrors": sum(row["renamed_mirror"] for row in rows),
        }
        for class_id, rows in sorted(members.items())
    ]


def tap_rows(taps: Sequence[str], entries: Rows) -> Rows:
    rows: Rows = []
    for tap in taps:
        own = [entry for entry in entries if entry["tap"] == tap]
        mirrors = sum(entry["mirror"] for entry in own)
        rows.append(
            {
                "tap": tap,
                "pin": hashlib.sha1(tap.encode()).hexdigest(),
                "entries": len(own),
                "skills": sum(entry["kind"] == "skill" for entry in own),
                "rules": sum(entry["kind"] == "rule" for entry in own),
                "workflows": sum(entry["kind"] == "workflow" for entry in own),
                "classes": len({entry["class_id"] for entry in own}),
                "intra_tap_mirrors": sum(entry["mirror_kind"] == "intra_tap" for entry in own),
                "cross_tap_mirrors": sum(entry["mirror_kind"] == "cross_tap" for entry in own),
                "renamed_mirrors": sum(entry["renamed_mirror"] for entry in own),
                "duplication": mirrors / len(own) if own else None,
                "parse_ok": len(own) - len(own) // 9,
                "parse_recovered": len(own) // 9,
                "parse_lenient": 0,
                "parse_none": 0,
                "passed_over": [{"reason": "binary", "files": 12}, {"reason": "too_large", "files": 1}] if own else [],
            }
        )
    return rows


def ranked(rng: random.Random, entries: Rows, key: dict[str, Any], answerable: bool) -> tuple[dict[str, Any], Rows]:
    """Make an item of the key's set and engine with its hits. Some are answered, some late, some never."""
    depth = 0 if rng.random() < 0.03 else min(100, len(entries))
    right = rng.choice([1, 1, 2, 3, 5, 8, 14, 37, 80, None]) if answerable else None
    right = right if right is not None and right <= depth else None
    hits = [
        {
            **key,
            "rank": rank,
            **{column: entry[column] for column in ("class_id", "tap", "path", "path_text", "slug")},
            "score": 30.0 - rank / 4,
            "grade": 1 if rank == right else None,
        }
        for rank, entry in enumerate(rng.sample(entries, depth), 1)
    ]
    item = {
        **key,
        "mode": rng.choice(["exemplar", "name"]) if answerable else None,
        "question": f"what do I use to {rng.choice(WORDS)} a {rng.choice(WORDS)} before we {rng.choice(WORDS)}?",
        "kind": rng.choice(["skill", "skill", "rule"]),
        "answerable": answerable,
        "relevant": 1 if answerable else None,
        "wanted": [f"{rng.choice(WORDS)}-{rng.choice(WORDS)}"] if answerable else [],
        "hits": depth,
        "abstained": depth == 0,
        "first_relevant_rank": right,
        "unknown_words": rng.sample(["frobnicate", "wibble", "zorkmid"], rng.choice([0, 0, 0, 1, 2])),
        "scored": answerable,
        "reason": None if answerable else "not answerable",
        "upper_bound": rng.random() < 0.2,
        "lookup_equal": rng.choice([True, True, False, None]) if answerable else None,
        "lookup_reason": "the class 0123456789ab is shown by a mirror called copied-name",
        "other_language_hits": rng.choice([0, 0, 1]),
        **{f"tied_at_{cut}": rng.random() < 0.1 for cut in (1, 10, 100)},
    }
    return item, hits


def value_of(metric: str, item: dict[str, Any]) -> float:
    rank = item["first_relevant_rank"]
    name, k = metric.split("@")
    if rank is None or rank > int(k):
        return 0.0
    return 1.0 / rank if name == "mrr" else 1.0


def metric_rows(items: Rows, golden_set: str, engine: str, grading: str) -> Rows:
    rows: Rows = []
    groups = [("all", "*", items)] + [
        (facet, value, [item for item in items if item[facet] == value])
        for facet in ("kind", "mode")
        for value in sorted({item[facet] for item in items if item[facet]})
    ]
    for facet, facet_value, members in groups:
        scored = [item for item in members if item["scored"]]
        for metric in [*(f"recall@{k}" for k in DEPTHS), "hit@1", "hit@10", "mrr@100", "ndcg@10"]:
            values = [value_of(metric, item) for item in scored]
            mean = sum(values) / len(values) if values else None
            rows.append(
                {
                    "corpus": CORPUS,
                    "class_rule": "body",
                    "golden_set": golden_set,
                    "golden_digest": hashlib.sha256(golden_set.encode()).hexdigest(),
                    "engine": engine,
                    "grading": grading,
                    "treatment": "removed",
                    "source_filter": "all",
                    "k": int(metric.split("@")[1]),
                    "facet": facet,
                    "facet_value": facet_value,
                    "aggregate": "micro",
                    "metric": metric,
                    "value": mean,
                    "reason": None if values else "no item is scored",
                    "n": len(values),
                    "n_items": len(values),
                    "n_null": 0,
                    "n_upper_bound": 2 if grading == "name" else 0,
                    "ci_low": max(0.0, mean - 1 / len(values) ** 0.5) if mean is not None else None,
                    "ci_high": min(1.0, mean + 1 / len(values) ** 0.5) if mean is not None else None,
                    "label": label_of(len(values)),
                }
            )
    return rows


def tax_rows(golden_set: str, engine: str, taps: Sequence[str]) -> Rows:
    shares = {tap: 0.1 / (place + 1) if place < 8 else 0.0 for place, tap in enumerate(taps)}
    return [
        {
            "golden_set": golden_set,
            "engine": engine,
            "grading": grading,
            "metric": metric,
            "tap": tap,
            "value": value,
            "reason": None,
        }
        for grading in ("row", "name")
        for metric in ("recall@10", "hit@1", "mrr@100", "ndcg@10", "ndcg@5")
        for tap, value in {"*": sum(shares.values()), **shares}.items()
    ]


def sensitivity_rows(golden_set: str, engine: str) -> Rows:
    return [
        {
            "golden_set": golden_set,
            "engine": engine,
            "metric": metric,
            **dict(zip(("by_name", "by_name_as_one", "all_pinned", "decided"), (0.4, 0.45, 0.5, 0.3), strict=True)),
            **{"denominator_effect": 0.05, "identity_effect": 0.05, "judgment_effect": -0.2, "shift": -0.1},
            "reason": None,
            "n_items": 30,
            "n_left_out": 4,
            "credited": 20,
            "credited_ambiguous": 7,
        }
        for metric in ("recall@10", "hit@1", "mrr@100", "ndcg@10")
    ]


ITEM_FIELDS = {
    "lookup_equal": pa.bool_(),
    "relevant": pa.int64(),
    "first_relevant_rank": pa.int64(),
    "unknown_words": pa.list_(pa.string()),
    "wanted": pa.list_(pa.string()),
    "mode": pa.string(),
    "reason": pa.string(),
}
FIELDS: dict[str, dict[str, pa.DataType]] = {
    "items": ITEM_FIELDS,
    "rankings": {"grade": pa.int64()},
    "metrics": {"value": pa.float64(), "ci_low": pa.float64(), "ci_high": pa.float64(), "reason": pa.string()},
    "near_metrics": {"value": pa.float64(), "ci_low": pa.float64(), "ci_high": pa.float64(), "reason": pa.string()},
    "near_duplicate_clusters": {
        "lowest_similarity": pa.float64(),
        "chained": pa.bool_(),
        "confusable": pa.list_(pa.string()),
    },
    "entries": {"mirror_kind": pa.string(), "description": pa.string(), "cluster_id": pa.string()},
    "duplicate_tax": {"reason": pa.string()},
    "sensitivity": {"reason": pa.string()},
}


def as_table(name: str, rows: Rows, like: Rows) -> pa.Table:
    """Build a table, with the columns of the row ``like`` where there are no rows."""
    inferred = pa.Table.from_pylist(like).schema
    fields = [pa.field(field.name, FIELDS.get(name, {}).get(field.name, field.type)) for field in inferred]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def tables_of(
    taps: int = 6,
    entries: int = 150,
    items: int = 40,
    golden_sets: Sequence[str] = ("everyday",),
    engines: Sequence[str] = ("bm25",),
    seed: int = 7,
) -> Tables:
    """Return the tables of a made-up run. The same arguments give the same tables."""
    rng = random.Random(seed)
    names = [f"owner-{place:02}/{rng.choice(WORDS)}-skills" for place in range(max(taps, 1))]
    corpus = entry_rows(rng, names, max(entries, 1))
    found: Rows = []
    hits: Rows = []
    metrics: Rows = []
    for golden_set in golden_sets:
        for engine in engines:
            for place in range(max(items, 1)):
                key = {"golden_set": golden_set, "query_id": f"q{place:04}", "engine": engine}
                item, own = ranked(rng, corpus, key, answerable=place % 10 != 9)
                found += [{**item, "grading": grading} for grading in ("row", "name")]
                hits += own
            own_items = [
                i for i in found if (i["golden_set"], i["engine"], i["grading"]) == (golden_set, engine, "row")
            ]
            metrics += [
                row for grading in ("row", "name") for row in metric_rows(own_items, golden_set, engine, grading)
            ]
    near = near_rows(corpus)
    run = {
        "corpus": CORPUS,
        "taps": taps,
        "entries": entries,
        "classes": len({entry["class_id"] for entry in corpus}),
        "class_rule": "body",
        "engines": [
            {"engine": name, "kind": name, "status": "ok", "reason": None, "fingerprint": RUN, "options": '{"k1":1.2}'}
            for name in engines
        ],
        "golden_sets": [{"name": name, "digest": RUN, "items": items} for name in golden_sets],
        "stages": [{"stage": "snapshot", "version": 1}],
        "near_duplicates": near_facts(near),
        "configuration": json.dumps({"class_rule": "body", "max_file_bytes": 1048576, "near_threshold": 0.8}),
        "status": "ok",
    }
    rows = {
        "runs": [run],
        "taps": tap_rows(names, corpus),
        "entries": corpus,
        "classes": class_rows(corpus),
        **near,
        "near_metrics": near_metric_rows(metrics),
        "rankings": hits,
        "items": found,
        "metrics": metrics,
        "duplicate_tax": [row for name in golden_sets for engine in engines for row in tax_rows(name, engine, names)],
        "sensitivity": [row for name in golden_sets for engine in engines for row in sensitivity_rows(name, engine)],
    }
    of_items = ("rankings", "items", "metrics", "near_metrics", "duplicate_tax", "sensitivity")
    empty = {
        "taps": taps,
        "entries": entries,
        "classes": entries,
        **dict.fromkeys(near, entries),
        **dict.fromkeys(of_items, items),
    }
    stamped = {name: [{"run_id": RUN, **row} for row in listed] for name, listed in rows.items()}
    return {name: as_table(name, listed if empty.get(name, 1) else [], listed) for name, listed in stamped.items()}


@pytest.fixture(scope="session")
def small_run() -> Tables:
    """A run of the size of the embedded default."""
    return tables_of()


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Tables]:
    """Makes the tables of a run of any size; see ``tables_of``."""
    return tables_of
