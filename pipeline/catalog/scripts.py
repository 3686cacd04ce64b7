"""Scripts that are written without spaces between words, so that a run of them is cut by character."""

from __future__ import annotations

from bisect import bisect_right

HAN_AND_KANA: tuple[tuple[int, int], ...] = (
    (0x3005, 0x3007),  # iteration mark, closing mark, ideographic zero
    (0x3021, 0x3029),  # Hangzhou numerals
    (0x3031, 0x3035),  # vertical kana repeat marks
    (0x3038, 0x303C),
    (0x3041, 0x30FF),  # Hiragana, Katakana, their voicing marks, U+30FC
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # halfwidth Katakana, with U+FF70 and the voicing marks
    (0x16FE3, 0x16FE3),
    (0x16FF0, 0x16FF6),
    (0x1AFF0, 0x1AFFE),
    (0x1B000, 0x1B167),
    (0x20000, 0x3FFFF),  # the two planes set aside for Han, so that later blocks need no change here
)
"""Ranges in which every letter, digit or mark belongs to a run of Han, Hiragana or Katakana.

By the Unicode property Script, and for what several scripts share by Script_Extensions where it names no other script
(the prolonged sound mark U+30FC and U+FF70, the voicing marks, repeat marks). Signs in these ranges that are no letter,
digit or mark, such as U+30FB, separate as they do elsewhere. Numbers in circles or brackets are numbers, not Han.
"""


def is_han_or_kana(code: int) -> bool:
    """Say whether the letter, digit or mark with this code point is written as Han, Hiragana and Katakana are."""
    behind = bisect_right(_FIRSTS, code)
    return behind > 0 and code <= HAN_AND_KANA[behind - 1][1]


_FIRSTS = [first for first, _ in HAN_AND_KANA]
