"""Small corpora for the tests of near-duplicates: entries given by name and text, and what is made of them."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import pyarrow as pa

from pipeline.catalog.digests import normalised
from pipeline.classes.bodies import distinct_bodies
from pipeline.classes.clusters import NearDuplicateOptions, NearDuplicates, near_duplicates
from pipeline.classes.families import Families, template_families
from pipeline.classes.signatures import sign


class Row(NamedTuple):
    slug: str
    body: str
    tap: str = "acme/skills"
    path: str = ""
    """The slug where it is empty."""
    alias_stub: bool = False
    locale: str | None = None


def digest(body: str) -> str:
    return hashlib.sha256(normalised(body).encode()).hexdigest()


def entries(rows: list[Row]) -> pa.Table:
    """The columns of the catalogue that near-duplicates are made of, in the order given."""
    columns = {
        "tap": pa.array([row.tap for row in rows], pa.string()),
        "path": pa.array([(row.path or row.slug).encode() for row in rows], pa.binary()),
        "path_text": pa.array([row.path or row.slug for row in rows], pa.string()),
        "slug": pa.array([row.slug for row in rows], pa.string()),
        "locale": pa.array([row.locale for row in rows], pa.string()),
        "body": pa.array([row.body for row in rows], pa.string()),
        "body_sha256": pa.array([digest(row.body) for row in rows], pa.string()),
        "empty_body": pa.array([not row.body.strip() for row in rows], pa.bool_()),
        "alias_stub": pa.array([row.alias_stub for row in rows], pa.bool_()),
    }
    return pa.table(columns)


def near(rows: list[Row], options: NearDuplicateOptions | None = None, threads: int = 1) -> NearDuplicates:
    table = entries(rows)
    bodies = distinct_bodies(table)
    return near_duplicates(bodies, sign(bodies["body"]), table, options, threads)


def families(rows: list[Row]) -> Families:
    table = entries(rows)
    return template_families(distinct_bodies(table), table)


def text(first: int, end: int) -> str:
    """Words that are all different: texts of overlapping ranges share shingles."""
    return " ".join(f"w{number}" for number in range(first, end))


def company(found: NearDuplicates) -> set[frozenset[str]]:
    """The clusters, each as the slugs of the first entries of its bodies."""
    together: dict[str, set[str]] = {}
    for member in found.members.to_pylist():
        together.setdefault(member["cluster_id"], set()).add(member["slug"])
    return {frozenset(names) for names in together.values()}
