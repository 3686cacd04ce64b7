"""What exemplars and citations say: grade 3 for the content that each names, without a model."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.golden.resolve import ResolvedSet
from pipeline.judgments.qrels import Judgment, Qrel
from pipeline.judgments.targets import Targets

GRADE = 3


def provenance_of(resolved: ResolvedSet, targets: Targets) -> list[Judgment]:
    """Return one judgment for each item and body that its exemplars and citations name, in the order of the items."""
    judgments: dict[tuple[str, str], Judgment] = {}
    for one in resolved.items:
        for named, body in one.bodies:
            found = None if named.startswith("class:") else targets.find(named)
            judgments.setdefault(
                (one.item.query_id, body),
                Judgment(
                    query_id=one.item.query_id,
                    doc_id=None if found is None or isinstance(found, str) else found.doc_id,
                    chunk_id=f"class:{body}",
                    grade=GRADE,
                    source="provenance",
                    judged_sha256=body,
                ),
            )
    return list(judgments.values())


def unwritten(judgments: Sequence[Judgment]) -> list[Qrel]:
    """Return judgments as rows that stand in no ledger: what follows from a golden set need not be looked up there."""
    return [
        Qrel.model_validate({**each.model_dump(), "id": f"provenance-{n}", "seq": 1, "created_at": "", "position": 0})
        for n, each in enumerate(judgments, start=1)
    ]
