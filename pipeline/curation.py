"""Golden sets, concepts and decisions by hand: what the ledger keeps in place of files, brought in and out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from pipeline.config import LOOKED_UP_LATER
from pipeline.errors import BadInput, Fault, MissingArtifact
from pipeline.golden.concepts import read_concepts
from pipeline.golden.crag import from_crag
from pipeline.golden.items import Draft, GoldenSet, draft_golden_set, is_set_name, plain_question
from pipeline.golden.kept import concept_lines, decided, set_lines
from pipeline.jsonlines import Wrong, bad_input, in_row, read_file, rows
from pipeline.keeping import golden_set, opened_ledger, targets_of
from pipeline.stages import looked_up, wrong_through
from pipeline.workspace import Workspace, now

if TYPE_CHECKING:
    from pipeline.judgments.targets import Targets
    from pipeline.ledger.ledger import Addition


class Imported(NamedTuple):
    """What became of the rows of a file."""

    added: int
    known: int
    """Rows that were there already, the same."""


def import_items(workspace: Workspace, name: str, file: Path) -> Imported:
    """Add the rows of a file to the set ``name`` that the ledger keeps, in one transaction; twice adds nothing more.

    Names and values of CRAG are mapped. A changed row needs a higher ``item_version``; the old one stays.

    Raises:
        BadInput: the set is a file, or rows are wrong, name nothing in the corpus, or differ from what is kept; all are
            named with their line and field.
        MissingArtifact: the corpus has not been grouped yet.
    """
    from pipeline.ledger.tables import GOLDEN_ITEMS

    faults = list(_name_faults(workspace, name))
    draft = draft_golden_set(file, _mapped(read_file(file)))
    try:
        draft = looked_up(workspace, draft)
    except MissingArtifact:
        if not faults and not draft.wrongs:
            raise
        faults.append(LOOKED_UP_LATER)
    with opened_ledger(workspace) as ledger, ledger.adding(f"golden import {name}", now()) as addition:
        new, wrongs = _new_items(addition, name, draft)
        faults += draft.with_wrongs(wrongs).faults
        if faults:
            raise BadInput(faults)
        addition.add(GOLDEN_ITEMS, new)
    return Imported(len(new), len(draft.golden.written) - len(new))


def _name_faults(workspace: Workspace, name: str) -> Iterator[Fault]:
    if not is_set_name(name):
        yield Fault(
            f"golden set {name}", "is no name: empty, too long, or with `/` or control characters", "give another name"
        )
    if name in {path.stem for path in workspace.settings.golden_files}:
        todo = "a set lies in a file or in the ledger, never in both: give another name"
        yield Fault(f"golden set {name}", "is a file", todo)


def _new_items(
    addition: Addition, name: str, draft: Draft
) -> tuple[list[dict[str, JsonValue]], list[tuple[int, Wrong]]]:
    """Return the rows of a set that the ledger does not keep yet, and what is wrong with rows beside what it keeps."""
    from pipeline.ledger.tables import DECISIONS, GOLDEN_ITEMS

    items = addition.rows(GOLDEN_ITEMS, golden_set=name)
    kept = {(row["query_id"], row["item_version"]): row["item"] for row in items}
    # What is exported has the decisions in its rows, and is the same item when it comes back.
    with_decisions = dict(zip(kept, decided(items, addition.rows(DECISIONS, golden_set=name)), strict=True))
    newest = {query_id: item for (query_id, _), item in sorted(kept.items(), key=lambda each: each[0])}
    asked = {plain_question(str(item["question"])): query_id for query_id, item in newest.items()}
    refused = {line for line, _ in draft.wrongs}
    new: list[dict[str, JsonValue]] = []
    wrongs: list[tuple[int, Wrong]] = []
    for line, written in zip(draft.lines, draft.golden.written, strict=True):
        if line in refused:
            continue
        key = (str(written["queryId"]), int(str(written.get("item_version", 1))))
        item: dict[str, JsonValue] = {"origin": "imported", **written}
        if key in kept and item in (kept[key], with_decisions[key]):
            continue
        if key in kept:
            wrongs.append((line, Wrong("queryId", f"{in_row(key[0])} is kept, and differs", "raise `item_version`")))
        elif asked.get(plain_question(str(item["question"])), key[0]) != key[0]:
            wrongs.append((line, Wrong("question", "is asked by an item that is kept", "leave the row out")))
        new.append({"golden_set": name, "query_id": key[0], "item_version": key[1], "item": item})
    return new, wrongs


def exported_lines(golden: GoldenSet) -> list[str]:
    """Return a set as JSON Lines, every version of every item; imported again, it is the same set."""
    return [json.dumps(row, ensure_ascii=False) for row in golden.written]


def _mapped(data: bytes) -> bytes:
    """Return the lines of a file with CRAG's names mapped, each at its place; a line that is wrong stays as it is."""
    lines = data.split(b"\n")
    for line, value, wrongs in rows(data):
        if value is not None and not wrongs:
            lines[line - 1] = json.dumps(from_crag(value)).encode("utf-8")
    return b"\n".join(lines)


# --- concepts --------------------------------------------------------------------------------------------------------


def import_concepts(workspace: Workspace, file: Path) -> Imported:
    """Declare the concepts of a file in the ledger, in one transaction; twice adds nothing more.

    A changed concept becomes its next version; the old one stays.

    Raises:
        BadInput: rows are wrong, or declared in the file of concepts too; all are named with their line. Or a golden
            set would be wrong: an item cites what would mention a concept that it grades `irrelevant`.
        MissingArtifact: an item grades one of them so, and the corpus has not been grouped yet.
    """
    from pipeline.ledger.tables import CONCEPTS

    declared = {concept.concept_id for concept in workspace.settings.concepts().concepts}
    given = read_concepts(file).concepts
    lines = [line for line, value, _ in rows(read_file(file)) if value is not None]
    here = f"is declared in {workspace.settings.concept_file} too"
    todo = "a concept is declared in a file or in the ledger, never in both: leave the row out"
    wrongs = [
        (line, Wrong("conceptId", f"{in_row(concept.concept_id)} {here}", todo))
        for line, concept in zip(lines, given, strict=True)
        if concept.concept_id in declared
    ]
    if wrongs:
        raise bad_input(file, wrongs)
    with opened_ledger(workspace) as ledger, ledger.adding(f"concepts import {file.name}", now()) as addition:
        kept = addition.rows(CONCEPTS)
        versions = {row["concept_id"]: row for row in kept}
        new: list[dict[str, JsonValue]] = []
        for concept in given:
            written = concept.model_dump(mode="json", by_alias=True)
            before = versions.get(concept.concept_id)
            if before is None or before["concept"] != written:
                version = 1 if before is None else before["version"] + 1
                new.append({"concept_id": concept.concept_id, "version": version, "concept": written})
        changed = {str(row["concept_id"]) for row in new}
        faults = wrong_through(workspace, workspace.declared([*kept, *new]), changed)
        if faults:
            todo = "mend the names of the concept, or the citation or grade of the item first"
            raise BadInput(Fault(str(file), f"{fault.where}: {fault.what}", todo) for fault in faults)
        addition.add(CONCEPTS, new)
    return Imported(len(new), len(given) - len(new))


def exported_concepts(workspace: Workspace) -> list[str]:
    """Return the concepts that the ledger keeps as JSON Lines, each in its last version as of the night's position."""
    return concept_lines(workspace.kept.concepts)


# --- decisions -------------------------------------------------------------------------------------------------------


def decide(workspace: Workspace, name: str, query_id: str, given: Mapping[str, JsonValue]) -> GoldenSet:
    """Append what somebody decided about a class, for an item of a set that the ledger keeps; return the set with it.

    Saying the same again adds nothing.

    Raises:
        BadInput: the set is a file, there is no such item, or the decision is wrong, names nothing in the corpus or
            contradicts what the item says; all faults are named.
        MissingArtifact: the corpus has not been grouped yet.
    """
    from pipeline.ledger.tables import DECISIONS, GOLDEN_ITEMS

    golden = golden_set(workspace, name)
    if golden.path.exists():
        todo = "write the decision into its row; `assay golden decide` is for sets that the ledger keeps"
        raise BadInput([Fault(f"golden set {name}", "is a file", todo)])
    if query_id not in {item.query_id for item in golden.items}:
        raise BadInput([Fault(f"golden set {name}", f"no item has the id {query_id!r}", "see `assay golden export`")])
    targets = targets_of(workspace)
    with opened_ledger(workspace) as ledger, ledger.adding(f"golden decide {name}", now()) as addition:
        items = addition.rows(GOLDEN_ITEMS, golden_set=name)
        said = addition.rows(DECISIONS, golden_set=name)
        earlier = [
            *(each for row in items if row["query_id"] == query_id for each in row["item"].get("decisions") or []),
            *(row["decision"] for row in said if row["query_id"] == query_id),
        ]
        given = _spelt_as_before(given, earlier, targets)
        new: dict[str, JsonValue] = {
            "id": addition.new_id(),
            "golden_set": name,
            "query_id": query_id,
            "decision": {key: value for key, value in given.items() if value is not None},
            "created_at": addition.created_at,
        }
        before, after = (
            set_lines(items, rows)[name] for rows in (said, [*said, {**new, "position": addition.position}])
        )
        whole = draft_golden_set(golden.path, "\n".join(after).encode("utf-8"))
        of_item = replace(whole.golden, items=tuple(i for i in whole.golden.items if i.query_id == query_id))
        faults = looked_up(workspace, whole._replace(golden=of_item)).faults
        if faults:
            raise BadInput(faults)
        if after != before:
            addition.add(DECISIONS, [new])
    return whole.golden


def _spelt_as_before(
    given: Mapping[str, JsonValue], earlier: Sequence[Mapping[str, JsonValue]], targets: Targets
) -> Mapping[str, JsonValue]:
    """Return a decision with its content named as in an earlier one about it, so that the later one replaces that."""

    def content(decision: Mapping[str, JsonValue]) -> str | None:
        found = targets.find(str(decision.get("class") or decision.get("entry") or ""))
        return None if isinstance(found, str) else found.body

    mine = content(given)
    for decision in earlier:
        if mine is not None and content(decision) == mine:
            names = {name: decision[name] for name in ("class", "entry") if decision.get(name)}
            return {**{name: value for name, value in given.items() if name not in ("class", "entry")}, **names}
    return given
