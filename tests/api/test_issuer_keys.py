"""The issuer's keys over https from a test server: found, rotated, withdrawn, and not requested too often."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from common.errors import InvalidInput, Unauthenticated
from minute8.api.auth.discovery import fetching
from minute8.api.auth.issuer_keys import IssuerKeys
from minute8.api.auth.tokens import Tokens
from minute8.api.http.problems import IssuerUnreachable
from tests.api.calls import Caller
from tests.api.conftest import open_office
from tests.api.issuer import NOW, jwk, key_set, settings, token
from tests.executor.servers import Server, serving, trusting
from tests.worlds import World

AGAIN_S = 30
FRESH_S = 600
STALE_S = 86_400

_DISCOVERY = "/.well-known/openid-configuration"


@dataclass
class Issuer:
    """An https server that serves a key set, which a test can change."""

    server: Server
    documents: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.server.port}"

    def tells(self, body: bytes, path: str = "/keys", status: int = 200, **headers: str) -> None:
        self.documents[path] = (status, headers, body)

    def requested_paths(self) -> list[str]:
        """The requested paths since the last call."""
        paths = [requested_paths.path for requested_paths in self.server.requests]
        self.server.requests.clear()
        return paths

    def tokens(self, **changes: str) -> Tokens:
        configuration_values = {"JWT_ISSUER": self.url, "JWKS_URL": f"{self.url}/keys", **changes}
        return Tokens(
            settings(**configuration_values),
            lambda token_settings: IssuerKeys(token_settings, fetching(trusting())),
        )

    def token(self, key: str = "rsa", **claims: Any) -> str:
        return token(key, iss=self.url, exp=NOW + 10 * STALE_S, **claims)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with serving() as server:
        started = Issuer(server)
        server.reply = lambda handler: started.documents.get(handler.path, (404, {}, b"{}"))
        started.tells(key_set("rsa"))
        yield started


def test_keys_are_fetched_when_first_needed_and_kept(issuer: Issuer) -> None:
    takes = issuer.tokens()
    assert issuer.requested_paths() == []
    for second in range(0, FRESH_S, 100):
        assert takes.authenticate(issuer.token(), NOW + second).tenant == "alice"
    assert issuer.requested_paths() == ["/keys"]


def test_the_address_is_found_by_the_issuers_name(issuer: Issuer) -> None:
    issuer.tells(json.dumps({"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}).encode(), _DISCOVERY)
    assert issuer.tokens(JWKS_URL="").authenticate(issuer.token(), NOW).tenant == "alice"
    assert issuer.requested_paths() == [_DISCOVERY, "/keys"]


@pytest.mark.parametrize(
    "documents",
    [
        {"issuer": "https://evil.example.com", "jwks_uri": "{url}/keys"},
        {"jwks_uri": "{url}/keys"},
        {"issuer": "{url}", "jwks_uri": "http://localhost/keys"},
        {"issuer": "{url}", "jwks_uri": "file:///etc/passwd"},
        {"issuer": "{url}", "jwks_uri": ["{url}/keys"]},
        {"issuer": "{url}"},
        [],
    ],
)
def test_a_discovery_that_is_not_the_issuers_own_leads_nowhere(issuer: Issuer, documents: Any) -> None:
    issuer.tells(json.dumps(documents).replace("{url}", issuer.url).encode(), _DISCOVERY)
    with pytest.raises(IssuerUnreachable):
        issuer.tokens(JWKS_URL="").authenticate(issuer.token(), NOW)
    assert issuer.requested_paths() == [_DISCOVERY]


def test_a_new_key_is_found_and_a_withdrawn_one_is_refused(issuer: Issuer) -> None:
    takes = issuer.tokens()
    takes.authenticate(issuer.token(), NOW)
    issuer.tells(key_set("rsa-next"))
    assert takes.authenticate(issuer.token("rsa-next"), NOW + AGAIN_S).tenant == "alice"
    with pytest.raises(Unauthenticated):
        takes.authenticate(issuer.token(), NOW + AGAIN_S)


def test_a_withdrawn_key_is_refused_in_the_end_also_where_no_new_one_is_seen(issuer: Issuer) -> None:
    takes = issuer.tokens()
    takes.authenticate(issuer.token(), NOW)
    issuer.tells(key_set("rsa-next"))
    assert takes.authenticate(issuer.token(), NOW + FRESH_S - 1).tenant == "alice"
    with pytest.raises(Unauthenticated):
        takes.authenticate(issuer.token(), NOW + FRESH_S)


def test_invented_keys_do_not_make_us_ask_each_time(issuer: Issuer) -> None:
    takes = issuer.tokens()
    invented = token("rsa-other", iss=issuer.url)
    for second in range(2 * AGAIN_S):
        with pytest.raises(Unauthenticated):
            takes.authenticate(invented.replace("rsa-other", f"rsa-{second}"), NOW + second)
    assert issuer.requested_paths() == ["/keys"] * 2
    assert takes.authenticate(issuer.token(), NOW + 2 * AGAIN_S - 1).tenant == "alice"
    assert issuer.requested_paths() == []


def test_while_the_issuer_is_away_its_keys_serve_for_a_day(issuer: Issuer) -> None:
    takes = issuer.tokens()
    takes.authenticate(issuer.token(), NOW)
    issuer.tells(b"down", status=503)
    assert takes.authenticate(issuer.token(), NOW + STALE_S - 1).tenant == "alice"
    with pytest.raises(IssuerUnreachable):
        takes.authenticate(issuer.token(), NOW + STALE_S)
    issuer.tells(key_set("rsa"))
    assert takes.authenticate(issuer.token(), NOW + STALE_S + AGAIN_S).tenant == "alice"


BAD_ANSWERS: list[tuple[int, dict[str, str], bytes]] = [
    (404, {}, key_set("rsa")),
    (302, {"Location": "/elsewhere"}, b""),
    (200, {}, b""),
    (200, {}, b"[]"),
    (200, {}, b"{}"),
    (200, {}, b'{"keys": {}}'),
    (200, {}, b'{"keys": []}'),
    (200, {}, b'{"keys": [], "keys": [{}]}'),
    (200, {}, b'{"keys": [1, null, "x", {}, {"kid": "rsa"}, {"kid": "rsa", "kty": "RSA", "n": "!", "e": 3}]}'),
    (200, {}, b'{"keys": [{"kid": "rsa", "kty": "oct", "k": "c2VjcmV0"}]}'),
    (200, {}, json.dumps({"keys": [jwk("rsa", use="enc")]}).encode()),
    (200, {}, json.dumps({"keys": [jwk("rsa", key_ops=["encrypt"])]}).encode()),
    (200, {}, json.dumps({"keys": [jwk("rsa", key_ops=7)]}).encode()),
    (200, {}, json.dumps({"keys": [jwk("rsa", alg="PS256")]}).encode()),
    (200, {}, json.dumps({"keys": [jwk("rsa", kid=7)]}).encode()),
    (200, {}, json.dumps({"more": "x" * 300_000, **json.loads(key_set("rsa"))}).encode()),
    (200, {"Content-Length": "1000000"}, key_set("rsa")[:-9]),
]  # fmt: skip


@pytest.mark.parametrize(("status", "headers", "body"), BAD_ANSWERS, ids=range(len(BAD_ANSWERS)))
def test_an_answer_without_usable_keys_is_refused(
    issuer: Issuer, status: int, headers: dict[str, str], body: bytes
) -> None:
    issuer.tells(key_set("rsa"), "/elsewhere")
    issuer.documents["/keys"] = (status, headers, body)
    with pytest.raises(IssuerUnreachable):
        issuer.tokens().authenticate(issuer.token(), NOW)
    assert issuer.requested_paths() == ["/keys"]


def test_an_unusable_key_spoils_no_other(issuer: Issuer) -> None:
    good = json.loads(key_set("rsa"))["keys"]
    issuer.tells(
        json.dumps(
            {"keys": [None, {"kid": "x", "kty": "RSA"}, {**good[0], "kid": "y", "n": 1}, *good]}
        ).encode()
    )
    assert issuer.tokens().authenticate(issuer.token(), NOW).tenant == "alice"


def test_a_server_without_a_trusted_certificate_is_not_read(issuer: Issuer) -> None:
    untrusting = Tokens(settings(JWT_ISSUER=issuer.url, JWKS_URL=f"{issuer.url}/keys"), IssuerKeys)
    with pytest.raises(IssuerUnreachable):
        untrusting.authenticate(issuer.token(), NOW)
    assert issuer.requested_paths() == []


@pytest.mark.parametrize("url", ["http://localhost/keys", "file:///etc/passwd", "ftp://localhost/", ""])
def test_nothing_but_https_is_fetched(url: str) -> None:
    with pytest.raises(InvalidInput):
        fetching(trusting())(url)


def test_a_token_that_cannot_be_checked_gets_retry_later(
    issuer: Issuer, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.tells(b"down", status=503)
    office = open_office(world, monkeypatch, issuer.tokens())
    refused = Caller(issuer.token())("GET", "/v1/jobs")
    assert (refused.status, refused.problem) == (503, "issuer-unreachable")
    assert refused.headers["retry-after"] == str(AGAIN_S)
    assert office.alice("GET", "/v1/jobs").status == 200
