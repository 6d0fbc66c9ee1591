"""Signed tokens in place of keys: whom they authenticate, and all known ways to impersonate others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from common import telemetry
from common.errors import InvalidInput, Unauthenticated
from common.platform.api_keys import new_key
from common.platform.tenants import Tenants
from minute8.api.auth.tokens import ALGORITHMS, TokenSettings, is_token
from tests.api.calls import Caller, Office
from tests.api.conftest import open_office
from tests.api.issuer import (
    NOW,
    claims,
    configuration,
    encoded,
    jwk,
    key_set,
    private_key,
    signed,
    signed_parts,
    token,
    tokens,
)
from tests.worlds import World, job, open_world

LEEWAY_S = 30

TAKES = tokens()


@pytest.fixture(scope="module")
def still() -> Iterator[Office]:
    """An office whose clock shows NOW, for tests that change nothing."""
    with open_world() as world, pytest.MonkeyPatch.context() as monkeypatch:
        yield open_office(world, monkeypatch)


@pytest.mark.parametrize("key", ["rsa", "ec", "ed"])
def test_a_signed_token_is_as_good_as_a_key(office: Office, key: str) -> None:
    ann = Caller(token(key, role="write"))
    assert ann("PUT", "/v1/jobs/report", job(cron="0 3 * * *")).status == 201
    assert office.alice("GET", "/v1/jobs/report").status == 200
    assert ann("GET", "/v1/tenant").json["key"] == {"key_id": "jwt:ann@example.com", "role": "write"}


def test_the_audit_names_the_subject(office: Office) -> None:
    Caller(token(role="write"))("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    assert "jwt:ann@example.com" in {item["by"]["S"] for item in office.stored() if "by" in item}


def test_without_an_issuer_no_token_is_taken(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert TokenSettings.of(configuration(JWT_ISSUER="")) is None
    open_office(world, monkeypatch, takes=None)
    assert Caller(token())("GET", "/v1/jobs").problem == "unauthenticated"


def test_a_suspended_tenants_token_reads_and_no_more(office: Office) -> None:
    Tenants(office.world.table("tenants")).suspend("alice", "unpaid", office.world.clock.now())
    ann = Caller(token(role="admin"))
    assert ann("GET", "/v1/jobs").status == 200
    assert ann("PUT", "/v1/jobs/report", job(cron="0 3 * * *")).problem == "tenant-suspended"


def test_a_tenant_that_does_not_exist_is_unauthenticated(office: Office) -> None:
    assert Caller(token(tenant="carol"))("GET", "/v1/jobs").problem == "unauthenticated"


PUBLIC = (
    private_key("rsa")
    .public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
)
_HEADER = b'{"alg":"RS256","kid":"rsa"}'


def _hmac_with(secret: bytes, header: dict[str, Any]) -> str:
    text = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims()).encode())}"
    how = jwt.get_algorithm_by_name("HS256")
    # `prepare_key` would refuse the public key as a secret; an attacker does not use it.
    return f"{text}.{encoded(how.sign(text.encode(), secret))}"


def _bare(header: dict[str, Any], signature: str) -> str:
    return f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims()).encode())}.{signature}"


def _tampered() -> str:
    head, _, signature = token(tenant="bob").split(".")
    return f"{head}.{encoded(json.dumps(claims()).encode())}.{signature}"


ATTACKS: dict[str, str] = {
    "alg none, no signature": _bare({"alg": "none"}, ""),
    "alg none": _bare({"alg": "none", "kid": "rsa"}, "AAAA"),
    "alg nOnE": token(header={"alg": "nOnE"}),
    "HS256 with the public key": _hmac_with(PUBLIC, {"alg": "HS256", "kid": "rsa"}),
    "RS256, and in truth HS256 with the public key": _hmac_with(PUBLIC, {"alg": "RS256", "kid": "rsa"}),
    "an algorithm of another key": token("rsa", {"alg": "ES256"}),
    "an EC token with the RSA key's id": token("ec", {"kid": "rsa"}),
    "an algorithm that is not configured": signed_parts(
        b'{"alg":"PS256","kid":"rsa"}', json.dumps(claims()).encode(), "rsa", "PS256"
    ),
    "alg is no text": token(header={"alg": ["RS256"]}),
    "no alg": token(header={"alg": None}),
    "somebody else's key": token("rsa-other", {"kid": "rsa"}),
    "somebody else's EC key": token("ec-other", {"kid": "ec"}),
    "somebody else's Ed25519 key": token("ed-other", {"kid": "ed"}),
    "a key that the issuer does not have": token("rsa-other"),
    "no kid": token(header={"kid": None}),
    "kid is no text": token(header={"kid": 7}),
    "an empty kid": token(header={"kid": ""}),
    "kid is a path": token(header={"kid": "../../dev/null"}),
    "kid is a query": token(header={"kid": "rsa' OR '1'='1"}),
    "a very long kid": token(header={"kid": "x" * 300}),
    "its own key in jwk": token("rsa-other", {"kid": "rsa", "jwk": jwk("rsa-other")}),
    "its own keys at jku": token("rsa-other", {"kid": "rsa-other", "jku": "https://evil.example.com/keys"}),
    "its own keys at x5u": token("rsa-other", {"kid": "rsa-other", "x5u": "https://evil.example.com/x"}),
    "crit": token(header={"crit": ["exp"], "exp": NOW}),
    "crit, and it is unknown": token(header={"crit": ["urn:x"], "urn:x": True}),
    "an empty crit": token(header={"crit": []}),
    "b64": token(header={"b64": True}),
    "a logout token": token(header={"typ": "logout+jwt"}),
    "a DPoP proof": token(header={"typ": "dpop+jwt"}),
    "typ is no text": token(header={"typ": 7}),
    "changed after it was signed": _tampered(),
    "cut": token()[:-5],
    "with more behind it": token() + "AA",
    "padded": token() + "==",
    "without its signature": token().rpartition(".")[0] + ".",
    "of five parts": token() + ".AAAA.AAAA",
    "expired": token(exp=NOW - LEEWAY_S),
    "long expired": token(exp=0),
    "expires in words": token(exp="tomorrow"),
    "expires as text": token(exp=str(NOW + 3600)),
    "expires as true": token(exp=True),
    "expires never": token(exp=None),
    "expires in infinity": signed(json.dumps(claims()).replace(str(NOW + 3600), "Infinity").encode()),
    "expires in 1e999": signed(json.dumps(claims()).replace(str(NOW + 3600), "1e999").encode()),
    "not yet": token(nbf=NOW + LEEWAY_S + 1),
    "not yet, as text": token(nbf="0"),
    "not yet, as true": token(nbf=True),
    "from the future": token(iat=NOW + LEEWAY_S + 1),
    "another issuer": token(iss="https://login.example.org/"),
    "almost the issuer": token(iss="https://login.example.com"),
    "a list of issuers": token(iss=["https://login.example.com/"]),
    "no issuer": token(iss=None),
    "another audience": token(aud="billing"),
    "almost the audience": token(aud="minute8-staging"),
    "no audience": token(aud=None),
    "an empty list of audiences": token(aud=[]),
    "an audience in an object": token(aud={"minute8": True}),
    "no subject": token(sub=None),
    "an empty subject": token(sub=""),
    "a subject that is no text": token(sub=7),
    "a very long subject": token(sub="x" * 256),
    "bound to a key": token(cnf={"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}),
    "no tenant": token(tenant=None),
    "an empty tenant": token(tenant=""),
    "a tenant that is no text": token(tenant=7),
    "a list of tenants": token(tenant=["alice"]),
    "a tenant in an object": token(tenant={"S": "alice"}),
    "a tenant with a separator": token(tenant="alice#JOB"),
    "a tenant with a colon": token(tenant="alice:report"),
    "a tenant with a slash": token(tenant="alice/../bob"),
    "a tenant with a space": token(tenant="alice "),
    "a tenant with a line break": token(tenant="alice\n"),
    "a tenant with a zero": token(tenant="alice\x00"),
    "a look-alike tenant": token(tenant="аlice"),  # a Cyrillic а
    "a full-width tenant": token(tenant="ａlice"),
    "a tenant with a hidden character": token(tenant="alice\u200b"),
    "a very long tenant": token(tenant="a" * 5_000),
    "the operators": token(tenant="OPERATORS#"),
    "a claim twice": signed(json.dumps(claims(tenant="bob"))[:-1].encode() + b', "tenant": "alice"}'),
    "a header twice": signed_parts(
        b'{"alg":"none","alg":"RS256","kid":"rsa"}', json.dumps(claims()).encode(), "rsa", "RS256"
    ),
    "no object": signed([claims()]),
    "no JSON": signed(b"alice"),
    "no Unicode": signed(b'{"tenant":"\xff"}'),
    "nested deeply": signed_parts(_HEADER, b'{"a":' * 1_000 + b"1" + b"}" * 1_000, "rsa", "RS256"),
    "its header is no object": signed_parts(b'["RS256"]', json.dumps(claims()).encode(), "rsa", "RS256"),
    "its header is no JSON": signed_parts(b"RS256", json.dumps(claims()).encode(), "rsa", "RS256"),
    "huge": token(more="x" * 8_192),
}  # fmt: skip


@pytest.mark.parametrize("raw", ATTACKS.values(), ids=ATTACKS.keys())
def test_an_inexact_token_is_refused(still: Office, raw: str) -> None:
    before = still.stored()
    refused = Caller(raw)("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    assert (refused.status, refused.problem) == (401, "unauthenticated")
    assert refused.json["detail"] == "the API key or token is not valid"
    assert still.stored() == before


def test_the_token_that_the_attacks_change_is_valid(still: Office) -> None:
    """Otherwise all tokens would be refused for another reason."""
    for key in ("rsa", "ec", "ed"):
        assert Caller(token(key))("GET", "/v1/jobs").status == 200
    assert (
        Caller(token(header={"typ": None, "jku": "https://evil.example.com", "x5c": ["x"]}))(
            "GET", "/v1/jobs"
        ).status
        == 200
    )


BARELY: dict[str, str] = {
    "expired within the leeway": token(exp=NOW - LEEWAY_S + 1),
    "not yet within the leeway": token(nbf=NOW + LEEWAY_S, iat=NOW + LEEWAY_S),
    "a fraction of a second": token(exp=NOW + 0.5),
    "one of several audiences": token(aud=["billing", "minute8"]),
    "an access token": token(header={"typ": "at+JWT"}),
    "no typ": token(header={"typ": None}),
    "no iat": token(iat=None),
}  # fmt: skip


@pytest.mark.parametrize("raw", BARELY.values(), ids=BARELY.keys())
def test_a_token_at_each_bound_is_accepted(raw: str) -> None:
    assert TAKES.authenticate(raw, NOW).tenant == "alice"


@pytest.mark.parametrize(
    ("configuration_values", "own_claims", "role"),
    [
        ({}, {"role": "admin"}, "admin"),
        ({}, {"role": "write"}, "write"),
        ({}, {}, "read"),
        ({}, {"role": "operator"}, "read"),
        ({}, {"role": "Admin"}, "read"),
        ({}, {"role": "not admin"}, "read"),
        ({}, {"role": ["read", "admin", "write"]}, "admin"),
        ({}, {"role": [["admin"], {"admin": True}, None]}, "read"),
        ({}, {"role": {"admin": True}}, "read"),
        ({"JWT_ROLE_CLAIM": ""}, {"role": "admin", "": "admin"}, "read"),
        ({"JWT_ROLE_CLAIM": "scope"}, {"scope": "openid write profile"}, "write"),
        ({"JWT_ROLES": "ops team=admin, devs = write"}, {"role": ["devs"]}, "write"),
        ({"JWT_ROLES": "ops team=admin, devs = write"}, {"role": "ops team"}, "admin"),
        ({"JWT_ROLES": "ops team=admin, devs = write"}, {"role": "admin"}, "read"),
        ({"JWT_ROLES": "cn=ops=admin"}, {"role": "cn=ops"}, "admin"),
        ({"JWT_DEFAULT_ROLE": "write"}, {}, "write"),
        ({"JWT_DEFAULT_ROLE": "none"}, {"role": "read"}, "read"),
    ],
)
def test_the_role_is_the_configured_claims(
    configuration_values: dict[str, str], own_claims: dict[str, Any], role: str
) -> None:
    assert tokens(**configuration_values).authenticate(signed(claims(**own_claims)), NOW).role == role


def test_a_token_without_a_role_can_be_refused() -> None:
    with pytest.raises(Unauthenticated):
        tokens(JWT_DEFAULT_ROLE="none").authenticate(token(), NOW)


def test_the_tenants_claim_is_the_configured_one() -> None:
    takes = tokens(JWT_TENANT_CLAIM="custom:tenant_id")
    raw = signed({**claims(tenant="bob"), "custom:tenant_id": "alice"})
    assert takes.authenticate(raw, NOW).tenant == "alice"
    with pytest.raises(Unauthenticated):
        takes.authenticate(token(), NOW)


@pytest.mark.parametrize(
    ("subject", "by"),
    [
        ("auth0|5f7c8ec7", "jwt:auth0|5f7c8ec7"),
        ("ann b", "jwt:ann%20b"),
        ("ann\nkey.revoked by bob", "jwt:ann%0Akey.revoked%20by%20bob"),
        ("ann%20b", "jwt:ann%2520b"),
        ("änn", "jwt:%C3%A4nn"),
    ],
)
def test_a_subject_is_named_without_doubt(subject: str, by: str) -> None:
    assert TAKES.authenticate(token(sub=subject), NOW).by == by


def test_the_log_knows_why(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[tuple[str, Any]] = []
    monkeypatch.setattr(
        telemetry.logger(), "info", lambda text, **more: logged.append((text, more["reason"]))
    )
    for raw in (ATTACKS["expired"], ATTACKS["a look-alike tenant"], ATTACKS["a very long kid"]):
        with pytest.raises(Unauthenticated):
            TAKES.authenticate(raw, NOW)
    assert [text for text, _ in logged] == ["token refused"] * 3
    assert f"exp is {NOW - LEEWAY_S}" in logged[0][1]
    assert "tenant" in logged[1][1]
    assert max(len(reason) for _, reason in logged) < 150


@pytest.mark.parametrize("key", ["weak", "p384"])
def test_keys_that_are_too_weak_or_of_another_curve_sign_nothing(key: str) -> None:
    documents = key_set("rsa", key)
    algorithm = {"weak": "RS256", "p384": "ES256"}[key]
    raw = signed_parts(
        json.dumps({"alg": algorithm, "kid": key}).encode(),
        json.dumps(claims()).encode(),
        key,
        "RS256" if key == "weak" else "ES384",
    )
    with pytest.raises(Unauthenticated):
        tokens(documents).authenticate(raw, NOW)


def test_keys_and_tokens_are_distinguished() -> None:
    assert is_token(token())
    for text in (new_key(), "m8_alice", "", "a.b", "a.b.c.d", "a..c", "a.b.c\n", "ä.b.c"):
        assert not is_token(text)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"JWT_AUDIENCE": " , "}, "jwtAudience"),
        ({"JWT_ALGORITHMS": "HS256"}, "jwtAlgorithms"),
        ({"JWT_ALGORITHMS": "RS256,none"}, "jwtAlgorithms"),
        ({"JWT_ALGORITHMS": ""}, "jwtAlgorithms"),
        ({"JWT_TENANT_CLAIM": ""}, "jwtTenantClaim"),
        ({"JWT_ROLES": "ops=operator"}, "jwtRoles"),
        ({"JWT_ROLES": "admin"}, "jwtRoles"),
        ({"JWT_DEFAULT_ROLE": "operator"}, "jwtDefaultRole"),
        ({"JWT_DEFAULT_ROLE": ""}, "jwtDefaultRole"),
        ({"JWKS_URL": "http://login.example.com/keys"}, "jwksUrl"),
        ({"JWKS_URL": "https://[::1/keys"}, "jwksUrl"),
        ({"JWKS_URL": "", "JWT_ISSUER": "http://login.example.com"}, "jwtIssuer"),
        ({"JWKS_URL": "", "JWT_ISSUER": "login.example.com"}, "jwtIssuer"),
    ],
)
def test_a_configuration_that_would_be_a_hole_is_refused(settings: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        TokenSettings.of(configuration(**settings))
    assert refused.value.field == field


def test_all_algorithms_are_asymmetric_and_known_to_the_library() -> None:
    assert not {name for name in ALGORITHMS if name.startswith("HS") or name.lower() == "none"}
    for name in ALGORITHMS:
        assert jwt.get_algorithm_by_name(name)
