"""Locale copies, alias stubs, and breaches of the open skill format."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.catalog.flags import STUB_WORDS, is_alias_stub, locale_of, spec_violations


@pytest.mark.parametrize(
    ("path", "locale"),
    [
        (b"docs/ja-JP/agents/a.md", "ja-JP"),
        (b"docs/pt_br/skills/x/SKILL.md", "pt-BR"),
        (b"site/Docs/tr/commands/a.md", "tr"),
        (b"i18n/zh-Hans/rules/a.mdc", "zh-Hans"),
        (b"translations/cn/rules/a.mdc", "zh-CN"),
        (b"locales/de/commands/a.md", "de"),
        (b"docs/en/commands/a.md", "en"),
        (b"commands/review.fr.md", "fr"),
        (b"commands/review.zh-CN.md", "zh-CN"),
        (b"commands/review_pt_BR.md", "pt-BR"),
        (b"skills/review-zh/SKILL.md", "zh"),
        (b"skills-ja/review/SKILL.md", "ja"),
        (b"docs/ja/zh-TW/docs/ko/x.md", "ko"),
    ],
)
def test_a_path_says_that_it_is_a_locale_copy(path: bytes, locale: str) -> None:
    assert locale_of(path) == locale


@pytest.mark.parametrize(
    "path",
    [
        b"skills/i18n/SKILL.md",
        b"docs/ai/rules/a.mdc",
        b"docs/hr/commands/a.md",
        b"de/commands/a.md",
        b"infrastructure/it/SKILL.md",
        b"skills/vr-ar/SKILL.md",
        b"skills/sign-it/SKILL.md",
        b"skills/ui-ux/SKILL.md",
        b"commands/node.js.md",
        b"docs/ja.md",
        b"commands/zh.md",
        b"docs/\xff\xfe/a.md",
    ],
)
def test_other_paths_do_not(path: bytes) -> None:
    assert locale_of(path) is None


@pytest.mark.parametrize(
    "body",
    [
        "# Old name\n\nSee `skills/new-name/SKILL.md`.\n",
        "This skill has moved to [new-name](../new-name/SKILL.md).",
        "Alias of `pdf-official`.",
        "Deprecated. Use `pdf-official` instead.",
        "Please refer to https://example.org/skill for the text.",
        "../pdf/SKILL.md\n",
        "@./../shared/one.md\n@./../shared/two.md\n",
        "# 見出し\n\n英語版を参照してください。\n\n詳細は：`skills/x/SKILL.md`\n",
    ],
)
def test_a_short_body_that_only_points_elsewhere_is_a_stub(body: str) -> None:
    assert is_alias_stub(body)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "# Only a heading\n",
        "Use TypeScript.",
        "Follow the guidelines in `docs/style.md`.",
        "See `guide.md`. Then write the tests first and keep functions short.",
        "- Use the `v` validator.\n- See https://example.org/types for the types.",
        "Deprecated, and nothing else is said.",
        "See " + "very " * STUB_WORDS + "long `x.md`.",
        "参照" + "文" * 400 + "`x.md`",
    ],
)
def test_a_body_that_says_something_of_its_own_is_not(body: str) -> None:
    assert not is_alias_stub(body)


@given(st.text(alphabet="ab .:`[]()-#<!>\nSe/md@", max_size=200))
@settings(deadline=None)
def test_any_body_has_an_answer(body: str) -> None:
    assert is_alias_stub(body) in (True, False)


def test_a_skill_that_keeps_the_format_breaks_nothing() -> None:
    assert spec_violations(b"skills/pdf-tools/SKILL.md", {"name": "pdf-tools", "description": "x" * 1024}) == []
    assert spec_violations(b"SKILL.md", {"name": "a" * 64, "description": "x"}) == []


@pytest.mark.parametrize(
    ("name", "description", "expected"),
    [
        (None, None, ["name_missing", "description_missing"]),
        ("", "  ", ["name_missing", "description_missing"]),
        ("pdf", "x" * 1025, ["description_too_long"]),
        ("other", "x", ["name_differs_from_folder"]),
        ("PDF", "x", ["name_characters", "name_differs_from_folder"]),
        ("pdf-", "x", ["name_characters", "name_differs_from_folder"]),
        ("p--f", "x", ["name_characters", "name_differs_from_folder"]),
        ("a" * 65, "x", ["name_too_long", "name_differs_from_folder"]),
    ],
)
def test_each_breach_of_the_format_has_its_code(name: str | None, description: str | None, expected: list[str]) -> None:
    assert spec_violations(b"skills/pdf/SKILL.md", {"name": name, "description": description}) == expected
