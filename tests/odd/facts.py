"""What must hold of each kind of odd file, as facts: for real files in the order of their list, and for self-made ones.

Each fact names columns of the catalogue, or one of the measures of ``measured``. ``not an entry`` says instead how the
file is accounted for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.taps.gitforge import FILE, LINK, SUBMODULE

Facts = Mapping[str, object]


class Entry(NamedTuple):
    """The file is an entry of which these facts hold."""

    facts: Facts


class Counted(NamedTuple):
    """The file is no entry and is counted."""

    where: str
    """``passed_over``: could not be read; ``others``: can be no entry; ``counted``: was read and is none."""
    reason: str
    files: int
    """Files of the tap that are counted so."""
    mode: str = FILE
    """How git lists it."""


Case = Entry | Counted

SKILL = {"kind": "skill", "encoding": "utf-8", "via_link": False, "empty_body": False, "locale": None}
RULE = {**SKILL, "kind": "rule"}
WORKFLOW = {**SKILL, "kind": "workflow"}
READ = {"parse_status": "ok", "description_source": "front_matter"}
RECOVERED = {"parse_status": "recovered", "description_source": "front_matter"}
BODY_ALONE = {"parse_status": "none", "description_source": "body"}

REAL: dict[str, tuple[Case, ...]] = {
    "bom": (
        Entry({**SKILL, **READ, "slug": "accessibility-rules", "name_is": "folder", "spec_violations": []}),
        # Two marks: the second one is text, so the front matter does not open at column 0.
        Entry({**WORKFLOW, **BODY_ALONE, "slug": "bom", "name_is": "stem", "description": "\ufeff---"}),
    ),
    "crlf": (Entry({**SKILL, **READ, "slug": "geomaster", "has_cr": False, "spec_violations": []}),),
    "crlf-mixed": (Entry({**SKILL, **READ, "slug": "repo-scan", "has_cr": False, "spec_violations": []}),),
    "u+fffd": (
        Entry(
            {
                **SKILL,
                **READ,
                "slug": "sdk-analytics-installer",
                "name": "SDK Analytics Installer",
                "replacements": True,
                "spec_violations": ["name_characters", "name_differs_from_folder"],
            }
        ),
    ),
    "mojibake": (Entry({**RULE, **RECOVERED, "name_is": "stem", "replacements": False, "holds": "â"}),),
    "zero-width": (Entry({**SKILL, **READ, "name_is": "folder", "holds": "\u200b", "spec_violations": []}),),
    "cjk": (
        Entry({**RULE, **BODY_ALONE, "slug": "computer-vision", "name_is": "folder"}),
        Entry({**WORKFLOW, **READ, "slug": "a11y-architect", "locale": "ja-JP"}),
    ),
    "fm-late": (
        Entry({**WORKFLOW, **BODY_ALONE, "slug": "sqs-expert", "name_is": "stem", "description": "---"}),
        Entry({**WORKFLOW, **BODY_ALONE, "slug": "skill-extractor", "name_is": "stem", "holds": "\n---\n"}),
    ),
    "yaml-alias": (
        Entry({**RULE, **RECOVERED, "slug": "code-signing", "name_is": "stem"}),
        Entry({**RULE, **RECOVERED, "slug": "assistant-response-rules", "name_is": "stem"}),
    ),
    "yaml-tagdot": (Entry({**RULE, **RECOVERED, "slug": "meta", "name_is": "stem"}),),
    "yaml-flow": (
        Entry(
            {
                **WORKFLOW,
                "parse_status": "lenient",
                "description_source": "front_matter",
                "slug": "supabase-backup-manager",
                "description_length": 82,
            }
        ),
    ),
    "yaml-at": (
        Entry({**SKILL, **RECOVERED, "slug": "swiftui-patterns", "locale": "ja-JP", "description_starts": "@"}),
    ),
    # What is read line by line keeps the first line of a block scalar: its indicator.
    "yaml-indent": (
        Entry({**SKILL, "parse_status": "lenient", "description_source": "front_matter", "slug": "backend-ai-guide"}),
    ),
    "name-nested": (Entry({**SKILL, **READ, "name_is": "folder", "spec_violations": []}),),
    "name-emoji": (
        Entry(
            {
                **SKILL,
                **READ,
                "slug": "hinduism-vedic-wisdom",
                "name": "Hinduism Vedic Wisdom 🕉️",
                "spec_violations": ["name_characters", "name_differs_from_folder"],
            }
        ),
    ),
    "name-missing": (
        Entry({**SKILL, **READ, "slug": "commit", "name_is": "folder", "spec_violations": ["name_missing"]}),
    ),
    # 2,896 characters as written, its quotes and 39 backslashes of escapes included.
    "desc-long": (Entry({**WORKFLOW, **READ, "slug": "llm-architect", "description_length": 2855}),),
    "empty-file": (
        Entry(
            {
                **SKILL,
                "parse_status": "none",
                "empty_body": True,
                "description": None,
                "description_source": None,
                "slug": "playwright-testing",
                "spec_violations": ["name_missing", "description_missing"],
            }
        ),
        Entry(
            {
                **RULE,
                "parse_status": "none",
                "empty_body": True,
                "description": None,
                "slug": "solidity-react-blockchain-apps-cursorrules-prompt-",
                "name_is": "folder",
            }
        ),
    ),
    "empty-body": (Entry({**RULE, **RECOVERED, "slug": "apiresponse-class", "empty_body": True, "body": ""}),),
    "huge": (
        Entry({**WORKFLOW, **READ, "slug": "fpf-agent", "bytes": 456_139}),
        Entry({**SKILL, **READ, "slug": "quality-playbook", "bytes": 294_426}),
    ),
    "long-line": (
        Entry({**SKILL, **READ, "slug": "pytorch-fsdp", "longest_line": 129_733}),
        Entry({**RULE, **BODY_ALONE, "name_is": "folder", "longest_line": 12_202, "description_length": 160}),
    ),
    "symlink-entry": (
        Entry({**SKILL, **BODY_ALONE, "slug": "README", "name_is": "folder", "via_link": True, "links_of_tap": 88}),
    ),
    "symlink-broken": (Counted("passed_over", "broken_link", 213, LINK),),
    "symlink-newline": (Counted("passed_over", "broken_link", 8, LINK),),
    "symlink-dir": (Counted("passed_over", "link_to_directory", 4, LINK),),
    "submodule": (Counted("passed_over", "submodule", 16, SUBMODULE),),
    "case-collision": (Counted("counted", ".md", 330),),
    "skill-case": (Counted("counted", ".md", 70), Counted("counted", ".md", 117)),
    "hidden-workflow": (Counted("others", "part of a skill", 4069),),
    "self-nested-path": (
        Entry({**WORKFLOW, **BODY_ALONE, "slug": "vital-health-content-agent", "path_bytes": 167, "folders": 12}),
    ),
}
"""By the categories of ``odd-files.tsv``: one case for each of its rows, in their order."""


def measured(row: Mapping[str, Any], links_of_tap: int = 0, content: bytes | None = None) -> dict[str, object]:
    """Return a row of a catalogue with what can be measured of it beside its columns."""
    folder, _, file = row["path_text"].rpartition("/")
    places = {"folder": folder.rpartition("/")[2], "stem": file.rpartition(".")[0]}
    return {
        **row,
        "name_is": next((place for place, text in places.items() if text == row["name"]), None),
        "has_cr": "\r" in row["body"],
        "replacements": "\ufffd" in row["body"],
        "longest_line": max(map(len, row["body"].split("\n"))),
        "description_length": len(row["description"] or ""),
        "description_starts": (row["description"] or "")[:1],
        "path_bytes": len(row["path"]),
        "folders": row["path"].count(b"/"),
        "links_of_tap": links_of_tap,
        "bytes": None if content is None else len(content),
    }


def differing(facts: Facts, row: Mapping[str, Any]) -> dict[str, tuple[object, object]]:
    """Return the facts that do not hold of a measured row: by name, what was found and what must hold."""
    held = facts.get("holds")
    found = {**row, "holds": held if str(held) in row["body"] else "not held by the body"}
    return {name: (found[name], value) for name, value in facts.items() if found[name] != value}
