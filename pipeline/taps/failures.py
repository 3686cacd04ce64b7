"""How a tap can end, and what git's words mean. Pure: text in, state and reason out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal
from urllib.parse import unquote

from pipeline.errors import AssayError, Outage, Unsound, one_line

State = Literal["ok", "unavailable", "gone", "missing_pin", "drift", "invalid"]
"""How an attempt at a tap ends; see the glossary."""

LONGEST_REASON = 400
"""Characters of a reason: enough for git's own words, short enough for a table."""

_HTTP_STATUS = re.compile(r"requested URL returned error: (\d{3})")
_NOT_OUR_REF = re.compile(r"not our ref ([0-9a-f]{40,64})\b")
_REFUSED = re.compile(
    r"does not allow request for unadvertised object|filter '[^']*' not supported|does not support shallow"
    r"|does not support (--)?(depth|filter)|unadvertised object|filtering not (allowed|supported)",
    re.IGNORECASE,
)
_SIGNS: tuple[tuple[State, re.Pattern[str]], ...] = (
    ("unavailable", re.compile(r"could not resolve host|unable to connect|connection (refused|timed out)", re.I)),
    ("missing_pin", re.compile(r"mismatched algorithms|couldn't find remote ref|no such remote ref", re.I)),
    ("gone", re.compile(r"repository '' not found|repository not found|does not appear to be a git repository", re.I)),
    ("gone", re.compile(r"authentication failed|could not read (username|password)|permission denied \(", re.I)),
    ("gone", re.compile(r"access denied|not exported|no such repository|dubious ownership", re.I)),
    ("gone", re.compile(r"invalid gitfile format|strange (pathname|hostname) .*blocked|file name too long", re.I)),
    ("invalid", re.compile(r"possible repository corruption|bad object|missing (blob|tree|commit) object", re.I)),
    ("invalid", re.compile(r"did not send all necessary objects|pack is corrupted|unable to read tree|inflate", re.I)),
)
"""The first that git's words show, in this order, is the state. Words that show none are an outage: git speaks of
networks in too many ways to list, and trying later does no harm."""


class TapError(AssayError):
    """A tap could not be had at its pin.

    Attributes:
        state: how the attempt ended, never ``ok``.
        reason: one line without credentials.
    """

    def __init__(self, state: State, reason: str) -> None:
        self.state = state
        self.reason = one_line(reason)[:LONGEST_REASON]
        self.exit_code = Outage.exit_code if state == "unavailable" else Unsound.exit_code
        super().__init__(f"{state}: {self.reason}")


def without_credentials(text: str, url: str = "") -> str:
    """Return ``text`` without the user and password of any URL in it, nor those of ``url`` anywhere."""
    userinfo, separator, _ = url.partition("://")[2].partition("/")[0].rpartition("@")
    if separator:
        _, colon, password = userinfo.partition(":")
        secrets = {f"{userinfo}@", *((password,) if colon else (userinfo,))}
        for secret in sorted((secrets | {unquote(secret) for secret in secrets}) - {""}, key=len, reverse=True):
            text = text.replace(secret, "" if secret.endswith("@") else "***")
    text = re.sub(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s'\"]*@", r"\1", text)
    # A token may stand in the query of a URL as well.
    return re.sub(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s'\"?]*)\?[^\s'\"]*", r"\1?***", text)


def not_here(words: str) -> frozenset[str]:
    """Return the ids that a server said it does not have."""
    return frozenset(_NOT_OUR_REF.findall(words))


def is_refusal(words: str) -> bool:
    """Say whether a server refused the way in which it was asked: a filter, a depth, or an id that no branch shows."""
    return _REFUSED.search(words) is not None


def failure(words: str, url: str) -> TapError:
    """Return what a failed fetch from ``url`` means, from the ``words`` that git wrote to standard error."""
    lacking = not_here(words)
    if lacking:
        return TapError("missing_pin", f"the repository has no object {', '.join(sorted(lacking))}")
    reason = without_credentials("; ".join(_telling(words.splitlines())) or "git failed and said nothing", url)
    return TapError(_state(words), reason)


def _state(words: str) -> State:
    status = _HTTP_STATUS.search(words)
    if status:
        return "gone" if status[1] in ("401", "403", "404", "410", "451") else "unavailable"
    own_words = re.sub(r"'[^'\n]*'", "''", words)  # names of repositories say nothing about them
    return next((state for state, sign in _SIGNS if sign.search(own_words)), "unavailable")


def _telling(lines: Iterable[str]) -> list[str]:
    """Keep the lines that tell what went wrong, without git's prefixes, warnings and general advice."""
    plain = (line.strip() for line in lines)
    telling = (re.sub(r"^((fatal|error|remote): )+", "", line, flags=re.I) for line in plain if not _ADVICE.match(line))
    return list(dict.fromkeys(telling))


_ADVICE = re.compile(r"$|warning:|hint:|Please make sure you have the correct access|and the repository exists\.$")
