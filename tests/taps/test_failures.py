from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.taps.failures import State, failure, is_refusal, without_credentials

URL = "https://example.org/ssl/certificate-not-found.git"


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (f"fatal: unable to access '{URL}/': Could not resolve host: example.org", "unavailable"),
        (f"fatal: unable to access '{URL}/': The requested URL returned error: 503", "unavailable"),
        (f"fatal: unable to access '{URL}/': The requested URL returned error: 429", "unavailable"),
        (f"fatal: unable to access '{URL}/': SSL certificate problem: self-signed certificate", "unavailable"),
        (
            "fatal: unable to connect to example.org:\nexample.org[0: 127.0.0.1]: errno=Connection refused",
            "unavailable",
        ),
        (
            "error: RPC failed; curl 56 GnuTLS recv error\nfatal: early EOF\nfatal: invalid index-pack output",
            "unavailable",
        ),
        ("Host key verification failed.\nfatal: Could not read from remote repository.", "unavailable"),
        ("fatal: write error: No space left on device", "unavailable"),
        ("", "unavailable"),
        (f"remote: Not Found\nfatal: repository '{URL}/' not found", "gone"),
        (f"fatal: unable to access '{URL}/': The requested URL returned error: 403", "gone"),
        (f"fatal: could not read Username for '{URL}': terminal prompts disabled", "gone"),
        ("git@example.org: Permission denied (publickey).\nfatal: Could not read from remote repository.", "gone"),
        ("ERROR: Repository not found.\nfatal: Could not read from remote repository.", "gone"),
        ("fatal: '/srv/x' does not appear to be a git repository", "gone"),
        ("fatal: remote error: access denied or repository not exported: /x", "gone"),
        ("fatal: detected dubious ownership in repository at '/srv/x'", "gone"),
        (f"fatal: remote error: upload-pack: not our ref {'a' * 40}", "missing_pin"),
        ("fatal: mismatched algorithms: client sha256; server sha1", "missing_pin"),
        ("remote: aborting due to possible repository corruption on the remote side.\nfatal: early EOF", "invalid"),
    ],
)
def test_the_words_of_git_have_one_meaning(words: str, state: State) -> None:
    assert failure(words, URL).state == state


@pytest.mark.parametrize(
    "words",
    [
        f"error: Server does not allow request for unadvertised object {'a' * 40}",
        "fatal: remote error: filter 'blob:none' not supported",
        "fatal: dumb http transport does not support shallow capabilities",
    ],
)
def test_a_refusal_of_the_way_of_asking_is_no_failure_yet(words: str) -> None:
    assert is_refusal(words)


def test_a_missing_object_is_no_refusal() -> None:
    assert not is_refusal(f"fatal: remote error: upload-pack: not our ref {'a' * 40}")


def test_a_reason_is_one_line_that_moves_no_cursor() -> None:
    reason = failure("fatal: a\x1b[2Jb\r\nerror: c", URL).reason
    assert reason == r"a\x1b[2Jb; c"


SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="/:@'\"\\#?"), min_size=4)


@settings(deadline=None)
@given(SECRETS, SECRETS)
def test_a_reason_holds_no_password(user: str, password: str) -> None:
    url = f"https://{user}:{password}zz9@example.org/a.git"
    words = f"fatal: unable to access '{url}/': it says {password}zz9"
    assert f"{password}zz9" not in failure(words, url).reason
    assert f"{password}zz9" not in without_credentials(url)


def test_an_at_sign_in_a_path_is_no_credential() -> None:
    assert without_credentials("https://example.org/a@b") == "https://example.org/a@b"


def test_a_reason_holds_no_token_from_the_query_of_a_url() -> None:
    told = failure(
        "fatal: unable to access 'https://host/x?token=s3cret&a=b': Failed to connect", "https://host/x"
    ).reason
    assert "s3cret" not in told and "https://host/x?***" in told


@pytest.mark.parametrize(
    "words",
    ["fatal: invalid gitfile format: /etc/passwd", "fatal: strange pathname '-x' blocked", "File name too long"],
)
def test_an_address_that_can_never_work_is_no_outage(words: str) -> None:
    assert failure(words, "file:///x").state == "gone"
