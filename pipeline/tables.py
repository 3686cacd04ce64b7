"""The public contract: every table of the feed, every file that people write, and their schemas in ``schemas/``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.checks import CHECK_ROWS
from pipeline.checks.known import KNOWN_ITEM_ROWS
from pipeline.classes.clusters import CLUSTERS, MEMBERS, NEAR_PAIRS
from pipeline.classes.decisions import ClusterDecision
from pipeline.classes.families import FAMILIES, FAMILY_MEMBERS
from pipeline.classes.group import CLASS_ROWS
from pipeline.config import Config
from pipeline.errors import BadInput, Fault
from pipeline.falloff.rows import ATTRIBUTION, FALLOFF, FALLOFF_FITS, FALLOFF_NOTES, FALLOFF_SUMMARIES
from pipeline.feedback.readiness import READINESS
from pipeline.feedback.rows import FEEDBACK_ROWS
from pipeline.golden.concepts import Concept
from pipeline.golden.items import GoldenRow
from pipeline.judgments.conflicts import CONFLICTS
from pipeline.judgments.qrels import Judgment
from pipeline.records import Record, Table
from pipeline.reports.feed import ENTRIES, LINEAGE, NIGHTS, RUNS, STUDIES, TAPS, Latest, published_schema
from pipeline.reports.forecasts import FORECAST_ROWS
from pipeline.reports.proposal import PinProposal
from pipeline.scoring.duplicates import DUPLICATE_TAX
from pipeline.scoring.near import NEAR_METRICS
from pipeline.scoring.outcomes import JUDGED_METRICS, OUTCOMES
from pipeline.scoring.policies import ABSTENTION
from pipeline.scoring.rows import ITEMS, METRICS, RANKINGS
from pipeline.scoring.sensitivity import SENSITIVITY
from pipeline.taps.taplist import TapKeys

if TYPE_CHECKING:
    import pyarrow as pa

NEAR_TABLES: dict[str, Table] = {
    "near_duplicate_clusters": CLUSTERS,
    "near_duplicate_members": MEMBERS,
    "near_pairs": NEAR_PAIRS,
    "template_families": FAMILIES,
    "template_family_members": FAMILY_MEMBERS,
}
"""Tables of the stage that finds near-duplicates."""

SCORE_TABLES: dict[str, Table] = {
    "rankings": RANKINGS,
    "items": ITEMS,
    "metrics": METRICS,
    "near_metrics": NEAR_METRICS,
    "duplicate_tax": DUPLICATE_TAX,
    "sensitivity": SENSITIVITY,
    "outcomes": OUTCOMES,
    "abstention": ABSTENTION,
    "judged_metrics": JUDGED_METRICS,
}
"""Tables that each golden set has under each engine."""

FALLOFF_TABLES: dict[str, Table] = {
    "falloff": FALLOFF,
    "falloff_fits": FALLOFF_FITS,
    "falloff_summaries": FALLOFF_SUMMARIES,
    "falloff_notes": FALLOFF_NOTES,
    "attribution": ATTRIBUTION,
}
"""Tables of the curves of a golden set."""

RUN_TABLES: dict[str, Table] = {
    "runs": RUNS,
    "taps": TAPS,
    "entries": ENTRIES,
    "classes": CLASS_ROWS,
    **NEAR_TABLES,
    **SCORE_TABLES,
    "checks": CHECK_ROWS,
    "known_items": KNOWN_ITEM_ROWS,
    **FALLOFF_TABLES,
    "readiness": READINESS,
    "conflicts": CONFLICTS,
    "feedback": FEEDBACK_ROWS,
}
"""Tables of a published run, `feed/run=<run_id>/<table>.parquet`. Each has the run's id as its first column."""

OTHER_TABLES: dict[str, Table] = {
    "nights": NIGHTS,
    "lineage": LINEAGE,
    "studies": STUDIES,
    "forecasts": FORECAST_ROWS,
}
"""Tables outside of runs, in `feed/nights/`, `feed/lineage/`, `feed/study=<study_id>/` and `feed/forecasts/`."""

FEED_TABLES: dict[str, Table] = {**RUN_TABLES, **OTHER_TABLES}

FILES: dict[str, type[Record]] = {
    "config": Config,
    "golden-row": GoldenRow,
    "cluster-decision": ClusterDecision,
    "concept": Concept,
    "judgment": Judgment,
    "tap": TapKeys,
    "latest": Latest,
    "pin-proposal": PinProposal,
}
"""What people write, or read as JSON."""


def schema_files() -> dict[str, str]:
    """Return the text of every file in ``schemas/``, by name."""
    runs = {name: published_schema(table.schema) for name, table in RUN_TABLES.items()}
    schemas = {**runs, **{name: table.schema for name, table in OTHER_TABLES.items()}}
    tables = {f"{name}.arrow.json": _pretty(_arrow(FEED_TABLES[name], schema)) for name, schema in schemas.items()}
    records = {f"{name}.schema.json": _pretty(_json_schema(name, record)) for name, record in FILES.items()}
    return {**tables, **records}


def write_schemas(folder: Path) -> int:
    """Write every schema into ``folder`` and return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    files = schema_files()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return len(files)


def check_schemas(folder: Path) -> None:
    """Hold ``folder`` against the code.

    Raises:
        BadInput: a schema is missing, differs, or is of nothing that the code knows.
    """
    wanted = schema_files()
    standing = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.json"))}
    todo = "run `assay schemas` and review the difference"
    faults = [
        Fault(str(folder / name), "is missing" if name not in standing else "differs from the code", todo)
        for name, text in sorted(wanted.items())
        if standing.get(name) != text
    ]
    faults += [
        Fault(str(folder / name), "no table or file has this schema", "remove it")
        for name in sorted(standing.keys() - wanted.keys())
    ]
    if faults:
        raise BadInput(faults)


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _json_schema(name: str, record: type[Record]) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        **{key: value for key, value in record.model_json_schema(by_alias=True).items() if key != "title"},
    }


def _arrow(table: Table, schema: pa.Schema) -> dict[str, Any]:
    return {
        "table": table.name,
        "version": table.version,
        "sorted_by": list(table.key),
        "columns": [
            {
                "name": column.name,
                "type": str(column.type),
                "nullable": column.nullable,
                "description": (column.metadata or {}).get(b"description", b"").decode("utf-8"),
            }
            for column in schema
        ],
    }
