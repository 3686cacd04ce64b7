"""What is worth knowing about an entry beyond its text: locale copies, alias stubs, breaches of the skill format."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pipeline.taps.profile import SKILL_FILE

# --- locale copies ---------------------------------------------------------------------------------------------------

TRANSLATION_FOLDERS = frozenset({"docs", "doc", "i18n", "l10n", "locale", "locales", "translation", "translations"})
"""Folders below which a folder called like a locale holds translations."""
LANGUAGES = (
    "ar|bg|bn|ca|cs|da|de|el|en|es|et|fa|fi|fr|he|hi|hu|id|it|ja|ko|lt|lv|ms|nb|nl|pl|pt|ro|ru|sk|sl|sr|sv|sw|ta|te|th"
    "|tr|uk|ur|uz|vi|zh"
)
"""ISO 639-1 codes that count as a locale. Codes that are commoner as something else (hr, is, no, so, to) do not."""
SURE_LANGUAGES = "ja|ko|zh"
"""Codes that are a locale even as a suffix after a hyphen, where most codes are also words (``sign-it``, ``vr-ar``)."""

_ALIASES = {"cn": "zh-CN", "jp": "ja", "kr": "ko"}
_LOCALE = re.compile(rf"(?P<language>{LANGUAGES})(?:[-_](?P<region>[A-Za-z]{{2}}|[A-Za-z]{{4}}))?")
_WITH_REGION = rf"(?:{LANGUAGES})[-_](?:[A-Z]{{2}}|[A-Z][a-z]{{3}})|zh[-_](?:cn|hk|tw|hans|hant)"
_SUFFIX = re.compile(
    rf".+?(?:\.(?P<dotted>{LANGUAGES}|{_WITH_REGION})|[-_](?P<joined>{_WITH_REGION}|{SURE_LANGUAGES}))"
)


def locale_of(path: bytes) -> str | None:
    """Return the locale for which ``path`` says that its file is a copy, such as ``ja`` or ``pt-BR``; else None.

    A path says so by a folder called like a locale directly below one of ``TRANSLATION_FOLDERS`` (``docs/ja-JP/…``), or
    by the suffix of a folder or of the file's stem: ``.zh``, ``-zh-CN``, ``_pt_BR``. After ``-`` or ``_`` a suffix must
    have a region, or be one of ``SURE_LANGUAGES``. The innermost one wins.
    """
    *folders, file = path.decode("utf-8", "replace").split("/")
    found = _locale_suffix(file.rpartition(".")[0])
    for place in reversed(range(len(folders))):
        if found is None and place and folders[place - 1].lower() in TRANSLATION_FOLDERS:
            found = _locale(folders[place])
        if found is None:
            found = _locale_suffix(folders[place])
    return found


def language_of(locale: str) -> str:
    """Return the language of a locale or language tag: ``zh`` for ``zh-CN``, ``pt`` for ``pt_BR``."""
    return re.split("[-_]", locale, maxsplit=1)[0].lower()


def _locale(text: str) -> str | None:
    alias = _ALIASES.get(text)
    if alias is not None:
        return alias
    match = _LOCALE.fullmatch(text)
    if match is None:
        return None
    region = match["region"]
    if region is None:
        return match["language"]
    return f"{match['language']}-{region.upper() if len(region) == 2 else region.title()}"


def _locale_suffix(text: str) -> str | None:
    match = _SUFFIX.fullmatch(text)
    return _locale(match["dotted"] or match["joined"]) if match else None


# --- alias stubs -----------------------------------------------------------------------------------------------------

STUB_WORDS = 40
STUB_CHARACTERS = 400
"""A longer body is no stub. Characters bound the languages that put no spaces between words."""

_HEADING_OR_COMMENT = re.compile(r"^#[^\n]*|<!--.*?-->", re.MULTILINE | re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|(?<=[\u3002\uff01\uff1f])|\n[^\S\n]*\n|\n(?=[^\S\n]*[-*+>][^\S\n])")
_TARGET = re.compile(r"\[[^\]\n]*\]\([^)\s]+\)|`[^`\n]+`|https?://\S+|@?[\w./~-]+\.mdc?\b", re.IGNORECASE)
_POINTS = re.compile(
    r"^\W*(?:please )?(?:see|refer to|go to|use\b.*\binstead)\b"
    r"|\b(?:moved|renamed|deprecated|obsolete|alias (?:for|of|to)|redirects? to|(?:replaced|superseded) by|merged into"
    r"|in favou?r of|now lives? (?:in|at|under))\b"
    r"|参照|参阅|参见|翻訳|翻译|참조",
    re.IGNORECASE | re.DOTALL,
)
_WORD = re.compile(r"\w+")
_LEAD_IN_WORDS = 1


def is_alias_stub(body: str) -> bool:
    """Say whether ``body`` is short and only points elsewhere.

    Short: at most ``STUB_WORDS`` words and ``STUB_CHARACTERS`` characters that are no white space. Only points
    elsewhere, headings and comments aside: it holds at least one target (a Markdown link, code span, URL, or the name
    of an ``.md`` or ``.mdc`` file), and each sentence points (``see``, ``moved``, ``alias of``, ``use … instead``) or
    is hardly more than a target; a body that says anything of its own is no stub.
    """
    if len(body) > 4 * STUB_CHARACTERS:
        return False
    words = body.split()
    if len(words) > STUB_WORDS or sum(map(len, words)) > STUB_CHARACTERS:
        return False
    text = _HEADING_OR_COMMENT.sub("", body).strip()
    if _TARGET.search(text) is None:
        return False
    if _WORD.search(_TARGET.sub("", text)) is None:
        return True
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if _WORD.search(sentence)]
    pointing = [_POINTS.search(sentence) is not None for sentence in sentences]
    return any(pointing) and all(
        points or len(_WORD.findall(_TARGET.sub("", sentence))) <= _LEAD_IN_WORDS
        for points, sentence in zip(pointing, sentences, strict=True)
    )


# --- the open skill format -------------------------------------------------------------------------------------------

NAME_LENGTH = 64
DESCRIPTION_LENGTH = 1024

_SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def spec_violations(path: bytes, fields: Mapping[str, str | None]) -> list[str]:
    """Return what is wrong with a skill by the open skill format, as codes in a fixed order; empty where nothing is.

    Args:
        path: of the skill's ``SKILL.md``.
        fields: its front matter. ``name`` is 1 to 64 lower-case letters, digits and single hyphens, equal to its
            folder; ``description`` is 1 to 1,024 characters, white space at its ends aside.
    """
    name, description = fields.get("name"), (fields.get("description") or "").strip()
    found = []
    if not name:
        found.append("name_missing")
    else:
        if len(name) > NAME_LENGTH:
            found.append("name_too_long")
        if _SKILL_NAME.fullmatch(name) is None:
            found.append("name_characters")
        if _folder_differs(path, name):
            found.append("name_differs_from_folder")
    if not description:
        found.append("description_missing")
    elif len(description) > DESCRIPTION_LENGTH:
        found.append("description_too_long")
    return found


def _folder_differs(path: bytes, name: str) -> bool:
    """Compare with the folder of the skill; at the root of a repository there is none to differ from."""
    folder = path.removesuffix(SKILL_FILE).rstrip(b"/")
    return bool(folder) and folder.rpartition(b"/")[2] != name.encode("utf-8")
