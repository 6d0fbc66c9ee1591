"""Secrets in calls: where values go, and that nothing that comes back shows them."""

from __future__ import annotations

import base64
import codecs
import html
import json
import re
import textwrap
import time
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from msgspec import structs

from common.runs.outcome import Outcome
from executor.secrets import Filled, JobSecrets, Redaction
from tests.executor.contexts import event
from tests.worlds import World, job, with_spec

ERROR_BYTES = 400
LOG_TAIL_BYTES = 800
SECRET_BYTES = 4_096
SECRET_CHARS = 8

SECRETS = st.text(min_size=SECRET_CHARS, max_size=60).filter(
    lambda text: len(text.replace("\\", "").strip()) >= SECRET_CHARS and text.isprintable()
)
ENCODINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in JSON": json.dumps,
    "in JSON, not ASCII": lambda value: json.dumps(value, ensure_ascii=False),
    "in JSON, as PHP writes it": lambda value: json.dumps(value).replace("/", "\\/"),
    "in JSON, as Go writes it": lambda value: (
        json.dumps(value, ensure_ascii=False)
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
    ),
    "in JSON in JSON": lambda value: json.dumps(json.dumps({"echo": value})),
    "in HTML": html.escape,
    "in Python": repr,
    "in a URL": lambda value: quote(value, safe=""),
    "in a URL, as JavaScript writes it": lambda value: quote(value, safe="!'()*"),
    "in a path": quote,
    "in a form": quote_plus,
    "in hex": lambda value: value.encode().hex(),
    "in capital hex": lambda value: value.encode().hex().upper(),
    **{
        f"in Base64 after {before!r}": lambda value, before=before: base64.b64encode(
            before + value.encode() + b":x"
        ).decode()
        for before in (b"", b"u", b"ab", b"user:")
    },
    "in Base64 for URLs": lambda value: base64.urlsafe_b64encode(f"user:{value}".encode()).decode(),
}


@pytest.mark.long
@pytest.mark.parametrize("encoded", ENCODINGS.values(), ids=ENCODINGS)
@given(value=SECRETS, before=st.text(max_size=5), after=st.text(max_size=5))
def test_a_value_is_not_shown_in_any_encoding(
    encoded: Callable[[str], str], value: str, before: str, after: str
) -> None:
    encoded_value = encoded(value)
    shown = Redaction({"token": value})(f"{before}<{encoded_value}>{after}")
    assert "secret://token" in shown
    # Characters of Base64 at both ends depend on their neighbours.
    assert len(encoded_value) < 24 or encoded_value[8:-8] not in shown.replace("secret://token", "")
    assert value not in shown.replace("secret://token", "")


CANARY = "Canary/3+key?é&\"x\"='y'-Zz" * 3
WRAPPED = re.sub("(.{76})", "\\1\\n", base64.b64encode(f"user:{CANARY}".encode()).decode())
# Twenty transformations; docs/targets.md says which are found.
TRANSFORMED: dict[str, str] = {
    "base64, lines of 76": WRAPPED,
    "base64, lines of 76 with CRLF": WRAPPED.replace("\n", "\r\n"),
    "base64, lines of 76, in JSON": json.dumps({"echo": WRAPPED}),
    "base64, lines of 64, indented": textwrap.indent(
        re.sub("(.{64})", "\\1\\n", WRAPPED.replace("\n", "")), "  "
    ),
    "base64 for URLs": base64.urlsafe_b64encode(CANARY.encode()).decode(),
    "URL twice": quote(quote(CANARY, safe=""), safe=""),
    "URL three times": quote(quote(quote(CANARY, safe=""), safe=""), safe=""),
    "a form in a URL": quote(quote_plus(CANARY)),
    "Python's bytes": repr(CANARY.encode()),
    "Python's bytes in JSON": json.dumps(repr(CANARY.encode())),
    "Python's text": repr(CANARY),
    "in capitals": CANARY.upper(),
    "in small letters": CANARY.lower(),
    "in swapped case": CANARY.swapcase(),
    "hex in capitals": CANARY.encode().hex().upper(),
    "HTML": html.escape(CANARY),
    "JSON in JSON": json.dumps(json.dumps({"echo": CANARY})),
    "words over lines": CANARY.replace("-", "-\n    "),
}
NOT_FOUND: dict[str, str] = {
    "backwards": CANARY[::-1],
    "base64 twice": base64.b64encode(base64.b64encode(CANARY.encode())).decode(),
    "ROT13": codecs.encode(CANARY, "rot13"),
    "compressed": base64.b64encode(zlib.compress(CANARY.encode())).decode(),
}


@pytest.mark.parametrize("how", TRANSFORMED)
def test_no_part_of_a_transformed_canary_is_shown(how: str) -> None:
    """Of Base64 wrapped at 76, of URLs encoded twice, of bytes and other cases 47 to 76 % were left."""
    shown = Redaction({"canary": CANARY})(f"answer: {TRANSFORMED[how]} end")
    assert "secret://canary" in shown
    rest = shown.replace("secret://canary", "")
    assert len(rest) < len("answer:  end") + 24, shown


@pytest.mark.parametrize("how", NOT_FOUND)
def test_what_is_not_found_is_stated(how: str) -> None:
    assert Redaction({"canary": CANARY})(NOT_FOUND[how]) == NOT_FOUND[how]


def test_the_forms_of_a_value_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    formed: list[str] = []
    monkeypatch.setattr("executor.secrets._forms", lambda value: formed.append(value) or {value})
    redact = Redaction({})
    for value in ("once-and-for-all", "once-and-for-all", "another-value"):
        redact.add({"s": value})
        assert redact(f"<{value}>") == "<secret://s>"
    assert formed == ["once-and-for-all", "another-value"]


@given(value=SECRETS, at=st.integers(4, 59))
@example(value="000\\000¡", at=4)
def test_a_value_that_is_cut_off_is_not_shown(value: str, at: int) -> None:
    assume(not set(value) & set("☂☃"))
    at = min(at, len(value) - 1)
    redact = Redaction({"token": value})
    assert redact(f"☂☃{value[:at]}").startswith("☂☃secret://")
    assert redact(f"{value[-at:]}☂☃").endswith("secret://token☂☃") or not value[-at:].strip()


@pytest.mark.parametrize("answer", ["p%40s!wo*rd&1", '"p@s!wo*rd\\u00261"'])
def test_a_value_is_not_shown_as_other_languages_encode_it(answer: str) -> None:
    assert "rd" not in Redaction({"token": "p@s!wo*rd&1"})(answer.replace("&", "%26"))


def test_values_that_overlap_are_both_hidden() -> None:
    redact = Redaction({"one": "11112222", "two": "22223333", "three": "111122223333444"})
    assert redact("<111122223333>") == "<secret://three>"
    assert Redaction({"one": "11112222", "two": "22223333"})("<111122223333>") == "<secret://one>"


def test_each_line_of_a_value_is_hidden() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"
    assert "MIIEv" not in Redaction({"pem": pem})("line 2: MIIEvQIBADANBgkqhkiG9w0BAQEFAASC!")


def test_a_hostile_value_and_answer_take_no_time() -> None:
    """The most that a job can name, and all that an outcome can hold: a loop over characters would take minutes."""
    values = {f"s{number}": ("a" * 15 + "\n") * (SECRET_BYTES // 16) for number in range(20)}
    outcome = Filled({}, event(), Redaction(values)).redacted(
        Outcome(ok=False, error="a" * 5_000, log_tail="a" * 5_000)
    )
    assert "aaaa" not in outcome.error + outcome.log_tail


@pytest.mark.parametrize("before", ["a" * 8, "\\a" * 8], ids=["plain", "escaped"])
def test_thousands_of_lines_with_the_same_beginning_take_no_time(before: str) -> None:
    """Compared one by one, at each place of an answer full of that beginning, they take over half a minute."""
    lines = [f"{before}{number:05x}" for number in range(20 * 290)]
    values = {f"s{first}": "\n".join(lines[first::20])[:SECRET_BYTES] for first in range(20)}
    began_at = time.process_time()
    outcome = Filled({}, event(), Redaction(values)).redacted(
        Outcome(ok=False, error="a" * 5_000, log_tail=before * 200)
    )
    assert time.process_time() - began_at < 5
    assert "aaaa" not in outcome.error + outcome.log_tail


def test_of_lines_with_the_same_beginning_each_is_hidden_to_its_end() -> None:
    value = "\n".join(f"same-beginning-{number}-{number}!" for number in range(9))
    shown = Redaction({"token": value})("7: same-beginning-7-7!, 4: same-beginning-4-4!, same-beginning-4-5")
    assert shown == "7: secret://token, 4: secret://token, secret://token5"


def test_what_is_told_is_cut_to_size_after_it_is_redacted() -> None:
    values = {"n" * 64: "12345678"}
    outcome = Filled({}, event(), Redaction(values)).redacted(
        Outcome(ok=False, error="12345678" * 99, log_tail="12345678" * 99)
    )
    assert (len(outcome.error), len(outcome.log_tail)) == (ERROR_BYTES, LOG_TAIL_BYTES)
    assert "1234" not in outcome.error + outcome.log_tail


HTTP = {"kind": "http", "url": "https://x.example.com/", "method": "POST"}


KNOWN = {"plain": "p4ss-word", "spaced": "pass word/?&=%ä", "lines": "one line\r\nx-evil: 1"}


class KnownValues:
    def value(self, tenant: str, name: str, now: float) -> str | None:
        return KNOWN.get(name)


@pytest.fixture
def filled(world: World) -> Callable[..., Any]:
    """The call of a job with this target; its payload is null."""
    secrets = JobSecrets(KnownValues(), world.clock)  # type: ignore[arg-type]
    stored = world.registry.put("alice", "job", job(cron="0 9 * * *"))

    def fill(**target: Any) -> Any:
        named = structs.replace(with_spec(stored, target={**HTTP, **target}), secrets=("nobody", *KNOWN))
        return secrets.filled(named, {"payload": "null", "minute8": {}}, Redaction({}))

    return fill


def test_a_header_gets_the_value(filled: Callable[..., Any]) -> None:
    call = filled(headers={"Authorization": "Bearer secret://plain", "X-Other": "as it is"})
    assert call.target["headers"] == {"Authorization": "Bearer p4ss-word", "X-Other": "as it is"}


@pytest.mark.parametrize("name", ["lines", "spaced"])
def test_a_value_that_no_header_may_have_is_refused_without_being_shown(
    filled: Callable[..., Any], name: str
) -> None:
    outcome = filled(headers={"X-Token": f"secret://{name}"})
    assert (outcome.permanent, outcome.error_type) == (True, "SecretRefused")
    assert "X-Token" in outcome.error
    assert not any(part in outcome.error for part in ("evil", "pass", "line"))


def test_a_url_gets_the_value_percent_encoded(filled: Callable[..., Any]) -> None:
    call = filled(url="https://x.example.com/hooks/secret://spaced?token=secret://spaced&a=1")
    encoded = "pass%20word%2F%3F%26%3D%25%C3%A4"
    assert call.target["url"] == f"https://x.example.com/hooks/{encoded}?token={encoded}&a=1"


def test_a_missing_secret_and_one_that_cannot_be_read(filled: Callable[..., Any]) -> None:
    missing = filled(headers={"X-Token": "secret://nobody"})
    assert (missing.error_type, missing.permanent, missing.throttled) == ("SecretMissing", False, False)
    assert missing.error == "the tenant has no secret 'nobody'"


def test_secrets_that_are_read_too_slowly_for_the_lease_cost_no_attempt(world: World) -> None:
    names: list[str] = []

    class SlowValues:
        def value(self, tenant: str, name: str, now: float) -> str | None:
            names.append(name)
            world.clock.sleep(3)
            return "p4ss-word"

    stored = world.registry.put("alice", "job", job(cron="0 9 * * *"))
    secrets = JobSecrets(SlowValues(), world.clock)  # type: ignore[arg-type]
    outcome = secrets.filled(
        stored, {"payload": '["secret://a","secret://b","secret://c"]', "minute8": {}}, Redaction({})
    )
    assert isinstance(outcome, Outcome)
    assert (outcome.error_type, outcome.throttled, names) == ("SecretNotRead", True, ["a", "b"])
    assert isinstance(
        secrets.filled(stored, {"payload": '"secret://a"', "minute8": {}}, Redaction({})), Filled
    )
