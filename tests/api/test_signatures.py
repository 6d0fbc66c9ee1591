"""Signed requests: botocore's signatures are accepted, and all known ways to forge or change one are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import Conflict, Unauthenticated
from common.platform.api_keys import new_key
from common.platform.signing_masters import Masters, StoredMasters, is_access_key_id
from common.storage import keys
from minute8.api import handler
from minute8.eventbridge.api.endpoint import parsed_query, possible_paths
from minute8.eventbridge.api.signature import (
    SignatureRefused,
    SignedRequest,
    check_signature,
    read_authorization,
)
from tests.api.calls import Answer, Caller, Office, send
from tests.api.scheduler_client import HOST, MASTERS, stored_masters

SKEW_S = 900

REGION = "us-east-1"
BODY = b'{"Tags":[{"Key":"team","Value":"billing"}]}'
Pair = tuple[str, str]


@dataclass
class Signed:
    """A request as botocore signs it; tests change it afterwards."""

    pair: Pair
    now: float
    method: str = "POST"
    path: str = "/eventbridge/schedule-groups/billing"
    query: str = ""
    body: bytes = BODY
    region: str = REGION
    service: str = "scheduler"
    token: str | None = None
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})

    def signed_request(self) -> AWSRequest:
        url = f"{HOST}{self.path}" + (f"?{self.query}" if self.query else "")
        request = AWSRequest(self.method, url, headers=self.headers, data=self.body)
        moment = datetime.fromtimestamp(self.now, UTC).replace(tzinfo=None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("botocore.auth.get_current_datetime", lambda: moment)
            SigV4Auth(Credentials(*self.pair, self.token), self.service, self.region).add_auth(request)
        return request

    def all_headers(self) -> dict[str, str]:
        signed = {name.lower(): str(value) for name, value in self.signed_request().headers.items()}
        return {"host": "minute8.example.com", **signed}

    def sent(self, **changed: str) -> Answer:
        """Send it; `changed` replaces headers after it was signed."""
        return self.sent_as(self.method, self.path, self.query, self.body, **changed)

    def sent_as(self, method: str, path: str, query: str, body: bytes, **changed: str) -> Answer:
        headers = {**self.all_headers(), **{name.replace("_", "-"): value for name, value in changed.items()}}
        url = path + (f"?{query}" if query else "")
        return send(method, url, {name: value for name, value in headers.items() if value != "-"}, body)


@pytest.fixture
def signed(office: Office, pair: Callable[..., Pair]) -> Signed:
    return Signed(pair("alice", "write"), office.world.clock.now())


def error_of(answer: Answer) -> str:
    assert set(answer.json) == {"Message"}
    return answer.headers["x-amzn-errortype"]


def test_a_signed_request_is_taken(signed: Signed) -> None:
    assert signed.sent().status == 200


def _authorization(text: str, **changes: str) -> str:
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


INVALID, INCOMPLETE = "InvalidSignatureException", "IncompleteSignatureException"
MISSING, UNKNOWN = "MissingAuthenticationTokenException", "UnrecognizedClientException"
Attack = Callable[[Signed], Answer]
ATTACKS: dict[str, tuple[Attack, str]] = {
    "another body": (lambda unsent: unsent.sent_as("POST", unsent.path, "", b'{"Tags":[]}'), INVALID),
    "no body": (lambda unsent: unsent.sent_as("POST", unsent.path, "", b""), INVALID),
    "a space more in the body": (
        lambda unsent: unsent.sent_as("POST", unsent.path, "", BODY + b" "),
        INVALID,
    ),
    "another path": (lambda unsent: unsent.sent_as("POST", unsent.path + "x", "", BODY), INVALID),
    "another collection": (
        lambda unsent: unsent.sent_as("POST", "/eventbridge/tags/billing", "", BODY),
        INVALID,
    ),
    "another method": (lambda unsent: unsent.sent_as("DELETE", unsent.path, "", BODY), INVALID),
    "a parameter more": (lambda unsent: unsent.sent_as("POST", unsent.path, "clientToken=x", BODY), INVALID),
    "another host": (lambda unsent: unsent.sent(host="evil.example.com"), INVALID),
    "another date": (lambda unsent: unsent.sent(x_amz_date="20261121T031201Z"), INVALID),
    "another content type": (lambda unsent: unsent.sent(content_type="text/plain"), INVALID),
    "another signature": (lambda unsent: unsent.sent(authorization=_forged(unsent, "0" * 64)), INVALID),
    "an empty signature": (lambda unsent: unsent.sent(authorization=_forged(unsent, "")), INCOMPLETE),
    "a signature in capitals": (
        lambda unsent: unsent.sent(
            authorization=_forged(unsent, unsent.all_headers()["authorization"][-64:].upper())
        ),
        INCOMPLETE,
    ),
    "a signature that is too short": (
        lambda unsent: unsent.sent(authorization=_forged(unsent, "0" * 63)),
        INCOMPLETE,
    ),
    "no authorization": (lambda unsent: unsent.sent(authorization="-"), MISSING),
    "an empty authorization": (lambda unsent: unsent.sent(authorization=""), MISSING),
    "an API key that is not valid": (
        lambda unsent: unsent.sent(authorization=f"Bearer {new_key()}"),
        UNKNOWN,
    ),
    "the secret as a bearer": (lambda unsent: unsent.sent(authorization=f"Bearer {unsent.pair[1]}"), UNKNOWN),
    "another algorithm": (
        lambda unsent: unsent.sent(
            authorization=unsent.all_headers()["authorization"].replace("HMAC-SHA256", "HMAC-SHA1")
        ),
        MISSING,
    ),
    "the asymmetric algorithm": (
        lambda unsent: unsent.sent(authorization="AWS4-ECDSA-P256-SHA256 Credential=x"),
        MISSING,
    ),
    "signed in the query": (
        lambda unsent: unsent.sent_as(
            "POST",
            unsent.path,
            urlencode({"X-Amz-Signature": "0" * 64, "X-Amz-Credential": f"{unsent.pair[0]}/x"}),
            BODY,
            authorization="-",
        ),
        MISSING,
    ),
    "no date": (lambda unsent: unsent.sent(x_amz_date="-"), INCOMPLETE),
    "the date in another form": (lambda unsent: unsent.sent(x_amz_date="2026-11-21T03:12:00Z"), INCOMPLETE),
    "no such date": (lambda unsent: unsent.sent(x_amz_date="20261321T031200Z"), INCOMPLETE),
    "another service's scope": (lambda unsent: replace(unsent, service="execute-api").sent(), INVALID),
    "another region's scope": (lambda unsent: replace(unsent, region="eu-west-1").sent(), INVALID),
    "too old": (lambda unsent: replace(unsent, now=unsent.now - SKEW_S - 1).sent(), INVALID),
    "too new": (lambda unsent: replace(unsent, now=unsent.now + SKEW_S + 1).sent(), INVALID),
    "a day old": (lambda unsent: replace(unsent, now=unsent.now - 86_400).sent(), INVALID),
    "the host is not signed": (lambda unsent: _sent_without(unsent, "host"), INCOMPLETE),
    "the date is not signed": (lambda unsent: _sent_without(unsent, "x-amz-date"), INCOMPLETE),
    "names of signed headers not sorted": (
        lambda unsent: unsent.sent(
            authorization=_authorization(
                unsent.all_headers()["authorization"], **{"content-type;host": "host;content-type"}
            )
        ),
        INCOMPLETE,
    ),
    "a signed header twice": (
        lambda unsent: unsent.sent(
            authorization=_authorization(unsent.all_headers()["authorization"], **{"host;": "host;host;"})
        ),
        INCOMPLETE,
    ),
    "a signed header that is not there": (
        lambda unsent: unsent.sent(
            authorization=_authorization(unsent.all_headers()["authorization"], **{"host;": "host;range;"})
        ),
        INCOMPLETE,
    ),
    "a part twice": (
        lambda unsent: unsent.sent(
            authorization=unsent.all_headers()["authorization"] + ", Signature=" + "0" * 64
        ),
        INCOMPLETE,
    ),
    "a part more": (
        lambda unsent: unsent.sent(authorization=unsent.all_headers()["authorization"] + ", a=b"),
        INCOMPLETE,
    ),
    "a very long authorization": (
        lambda unsent: unsent.sent(authorization=unsent.all_headers()["authorization"] + "0" * 5_000),
        INCOMPLETE,
    ),
    "not a scope": (
        lambda unsent: unsent.sent(
            authorization=unsent.all_headers()["authorization"].replace("aws4_request", "aws4")
        ),
        INCOMPLETE,
    ),
    "a session token": (lambda unsent: replace(unsent, token="token").sent(), UNKNOWN),
    "a session token that is not signed": (lambda unsent: unsent.sent(x_amz_security_token="x"), UNKNOWN),
    "a key that does not exist": (
        lambda unsent: replace(unsent, pair=(MASTERS.new_access_key_id(), unsent.pair[1])).sent(),
        UNKNOWN,
    ),
    "a key that does not exist, and its secret": (
        lambda unsent: replace(unsent, pair=_made_up()).sent(),
        UNKNOWN,
    ),
    "a key of AWS's": (
        lambda unsent: replace(unsent, pair=("AKIAIOSFODNN7EXAMPLE", unsent.pair[1])).sent(),
        UNKNOWN,
    ),
    "a key of another master's version": (
        lambda unsent: replace(unsent, pair=("M8AK002" + unsent.pair[0][7:], unsent.pair[1])).sent(),
        UNKNOWN,
    ),
    "an API key as the access key id": (
        lambda unsent: replace(unsent, pair=(new_key(), unsent.pair[1])).sent(),
        UNKNOWN,
    ),
    "somebody else's secret": (
        lambda unsent: replace(unsent, pair=(unsent.pair[0], _made_up()[1])).sent(),
        INVALID,
    ),
    "the access key id as the secret": (
        lambda unsent: replace(unsent, pair=(unsent.pair[0], unsent.pair[0])).sent(),
        INVALID,
    ),
    "an empty secret": (lambda unsent: replace(unsent, pair=(unsent.pair[0], "")).sent(), INVALID),
    "an unsigned payload": (
        lambda unsent: replace(
            unsent, headers={**unsent.headers, "X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}
        ).sent_as("POST", unsent.path, "", b'{"Tags":[]}'),
        INVALID,
    ),
}


def _forged(unsent: Signed, signature: str) -> str:
    return unsent.all_headers()["authorization"][:-64] + signature


def _made_up() -> Pair:
    access_key_id = MASTERS.new_access_key_id()
    return access_key_id, str(MASTERS.secret_of(access_key_id))


def _sent_without(unsent: Signed, name: str) -> Answer:
    headers = unsent.all_headers()
    before, _, rest = headers["authorization"].partition("SignedHeaders=")
    names, _, signature = rest.partition(",")
    kept = ";".join(part for part in names.split(";") if part != name)
    return unsent.sent(authorization=f"{before}SignedHeaders={kept},{signature}")


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_and_changes_nothing(office: Office, signed: Signed, name: str) -> None:
    before = office.stored()
    attack, error = ATTACKS[name]
    answer = attack(signed)
    assert (answer.status, error_of(answer)) == (403, error), answer.text
    assert signed.pair[1] not in answer.text
    assert office.stored() == before


def test_a_request_about_a_group_that_is_sent_again_undoes_nothing(office: Office, signed: Signed) -> None:
    """Somebody who read the requests on their way sends them again, after later ones."""
    arn = "arn:aws:scheduler:us-east-1:123456789012:schedule-group/billing"
    tags = replace(signed, path=f"/eventbridge/tags/{quote(arn, safe='')}")

    def valued(value: str) -> Signed:
        body = json.dumps({"Tags": [{"Key": "k", "Value": value}]}).encode()
        return replace(tags, now=office.world.clock.now(), body=body)

    def done(unsent: Signed) -> Signed:
        office.world.clock.sleep(1)
        unsent = replace(unsent, now=office.world.clock.now())
        assert unsent.sent().status == 200
        return unsent

    def stored_tags() -> list[dict[str, str]]:
        listed: list[dict[str, str]] = (
            replace(tags, method="GET", body=b"", now=signed.now).sent().json["Tags"]
        )
        return listed

    removal = replace(signed, method="DELETE", body=b"")
    created = done(signed)
    first = done(valued("first"))
    unset = done(replace(tags, method="DELETE", query="TagKeys=k", body=b""))
    same = done(valued("second")), done(valued("second"))
    done(valued("third"))
    before = office.stored()
    for old in (created, first, unset, *same):
        assert old.sent().status == 200
        assert office.stored() == before
    assert {"Key": "k", "Value": "third"} in stored_tags()
    removed = done(removal)
    assert created.sent().status == 200
    assert tags.sent().status == 404
    again = done(signed)
    for old in (removed, created, first):
        assert old.sent().status == 200
    assert again.sent().status == 200
    assert stored_tags() == json.loads(BODY)["Tags"]


@pytest.mark.parametrize("difference_s", [-SKEW_S, SKEW_S])
def test_a_clock_may_differ_by_fifteen_minutes(signed: Signed, difference_s: int) -> None:
    assert replace(signed, now=signed.now + difference_s).sent().status == 200


def test_a_revoked_pair_is_refused(office: Office, signed: Signed) -> None:
    assert signed.sent().status == 200
    [key] = [key for key in office.alice_admin("GET", "/v1/keys").json["keys"] if key["access_key_id"]]
    office.alice_admin("DELETE", f"/v1/keys/{key['key_id']}")
    assert error_of(signed.sent()) == UNKNOWN


def test_an_expired_pair_is_refused(office: Office, pair: Callable[..., Pair]) -> None:
    now = office.world.clock.now()
    unsent = Signed(pair("alice", "write", expires_at=int(now) + 60), now)
    assert unsent.sent().status == 200
    office.world.clock.move_to(now + 60)
    assert error_of(unsent.sent()) == UNKNOWN


def test_a_read_pair_reads_and_no_more(office: Office, pair: Callable[..., Pair]) -> None:
    unsent = Signed(pair("alice", "read"), office.world.clock.now())
    assert (unsent.sent().status, error_of(unsent.sent())) == (403, "AccessDeniedException")
    assert replace(unsent, method="GET", path="/eventbridge/schedule-groups", body=b"").sent().status == 200


def test_a_suspended_tenants_pair_reads_and_no_more(office: Office, signed: Signed) -> None:
    office.operator("POST", "/v1/tenants/alice/suspend", {"note": "unpaid"})
    office.world.clock.sleep(120)
    signed = replace(signed, now=office.world.clock.now())
    assert error_of(signed.sent()) == "AccessDeniedException"


def test_each_tenant_has_its_own_groups(aws: Callable[..., Any]) -> None:
    aws("alice").create_schedule_group(Name="billing")
    with pytest.raises(ClientError) as refused:
        aws("bob").get_schedule_group(Name="billing")
    assert refused.value.response["Error"]["Code"] == "ResourceNotFoundException"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_a_pair_is_no_api_key_and_signs_nothing_else(office: Office, signed: Signed) -> None:
    for text in (*signed.pair, ":".join(signed.pair)):
        assert Caller(text)("GET", "/v1/jobs").problem == "unauthenticated"
    other = replace(signed, method="GET", path="/v1/jobs", body=b"")
    assert send("GET", "/v1/jobs", other.all_headers()).problem == "unauthenticated"


def test_nothing_that_is_stored_can_sign(office: Office, signed: Signed) -> None:
    stored = json.dumps([item for item in office.stored() if item["sk"]["S"] != "RATE"])
    assert signed.pair[0] in stored
    assert signed.pair[1] not in stored
    for item in office.stored():
        for value in item.values():
            if isinstance(text := value.get("S"), str) and 16 <= len(text) <= 200:
                answer = replace(signed, pair=(signed.pair[0], text)).sent()
                assert answer.status == 403, item


def test_the_api_makes_pairs_lists_and_audits_them(office: Office) -> None:
    created = office.alice_admin("POST", "/v1/keys", {"role": "write", "name": "boto3", "aws": True}).json
    assert is_access_key_id(created["access_key_id"])
    assert created["key"] == MASTERS.secret_of(created["access_key_id"])
    unsent = Signed((created["access_key_id"], created["key"]), office.world.clock.now())
    assert unsent.sent().status == 200
    [listed] = [key for key in office.alice_admin("GET", "/v1/keys").json["keys"] if key["access_key_id"]]
    assert listed == {name: value for name, value in created.items() if name != "key"}
    [entry] = office.alice_admin("GET", f"/v1/audit?subject={created['key_id']}").json["entries"]
    assert entry["after"]["access_key_id"] == created["access_key_id"]
    assert office.alice_admin("POST", "/v1/keys", {"role": "write", "aws": "yes"}).problem == "invalid-input"


def test_without_a_master_there_are_no_pairs(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(handler._services().parts, "masters", StoredMasters(lambda: None))
    refused = office.alice_admin("POST", "/v1/keys", {"role": "write", "aws": True})
    assert refused.problem == "conflict"
    assert "signing_masters" in refused.text


def test_masters_are_rotated_and_retired() -> None:
    first = Masters.rotated(None)
    old = first.new_access_key_id()
    second = Masters.rotated(first)
    new = second.new_access_key_id()
    assert (old[:7], new[:7]) == ("M8AK001", "M8AK002")
    assert second.secret_of(old) == first.secret_of(old)
    assert first.secret_of(new) is None
    third = Masters.parse(second.retired(1).to_text())
    assert (third.secret_of(old), third.secret_of(new)) == (None, second.secret_of(new))
    for version in (2, 7):
        with pytest.raises(Conflict):
            second.retired(version)
    # A version is never used again, so a retired pair stays without a secret.
    assert Masters.rotated(third).current == 3


def test_a_new_master_is_read_when_its_first_pair_is_used() -> None:
    text = [MASTERS.to_text()]
    reads = []
    stored = StoredMasters(lambda: reads.append(1) or text[0])  # type: ignore[func-returns-value]
    second = Masters.rotated(MASTERS)
    new = second.new_access_key_id()
    assert stored.secret_of(new, 0) is None
    text[0] = second.to_text()
    assert stored.secret_of(new, 4) is None
    assert stored.secret_of(new, 6) == second.secret_of(new)
    assert len(reads) == 2
    assert stored_masters().secret_of("AKIAIOSFODNN7EXAMPLE", 0) is None


TEXTS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=30)
NAMES = st.text("abcXYZ019-_.", min_size=1, max_size=64).filter(lambda name: set(name) != {"."})


def verify(unsent: Signed, **changes: Any) -> None:
    headers = unsent.all_headers()
    claimed = read_authorization(headers, unsent.region, unsent.now)
    paths = possible_paths("", unsent.path)
    sent = SignedRequest(unsent.method, paths, parsed_query(unsent.query), headers, unsent.body)
    check_signature(claimed, unsent.pair[1], replace(sent, **changes))


@settings(max_examples=200, deadline=None)
@given(
    NAMES,
    st.lists(st.tuples(NAMES, TEXTS), max_size=5),
    st.binary(max_size=50),
    st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
)
def test_whatever_botocore_signs_is_verified(
    name: str, query: list[tuple[str, str]], body: bytes, method: str
) -> None:
    text = urlencode(query, quote_via=quote)
    unsent = Signed(_made_up(), 1_795_305_600, method, f"/eventbridge/schedules/{name}", text, body)
    verify(unsent)
    verify(unsent, query=parsed_query(text)[::-1])  # the order of parameters means nothing
    for changed in (
        {"method": "PATCH"},
        {"paths": (f"{unsent.path}x",)},
        {"query": [*parsed_query(text), ("a", "")]},
        {"body": body + b"x"},
        {"headers": {**unsent.all_headers(), "host": "other"}},
    ):
        with pytest.raises(SignatureRefused):
            verify(unsent, **changed)


@pytest.mark.parametrize("decodes", [True, False])
@pytest.mark.parametrize("prefix", ["", "/_aws/execute-api/8c0ffee8", "/prod"])
def test_an_arn_in_the_path_is_verified_whether_a_gateway_decodes_it(decodes: bool, prefix: str) -> None:
    arn = "arn:aws:scheduler:us-east-1:123456789012:schedule-group/billing"
    raw = f"/eventbridge/tags/{quote(arn, safe='')}"
    unsent = Signed(_made_up(), 1_795_305_600, path=prefix + raw)
    received = f"/eventbridge/tags/{arn}" if decodes else raw
    verify(unsent, paths=possible_paths(prefix, received))
    with pytest.raises(SignatureRefused):
        verify(unsent, paths=possible_paths(prefix, received + "2"))


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["authorization", "x-amz-date", "host"]), TEXTS))
def test_any_headers_are_refused_by_name(headers: dict[str, str]) -> None:
    with pytest.raises(SignatureRefused):
        read_authorization(headers, REGION, 0)


def test_an_unknown_pair_is_unauthenticated_before_anything_is_read(office: Office) -> None:
    api_keys = handler._services().tenants.api_keys
    requests: list[str] = []
    office.world.dynamodb.before = requests.append
    for text in ("", "M8AK", "M8AK001" + "a" * 26, "KEY#", keys.OPERATORS, "M8AK001" + "A" * 27):
        with pytest.raises(Unauthenticated):
            api_keys.owner_of_pair(text, 0)
    assert requests == []
