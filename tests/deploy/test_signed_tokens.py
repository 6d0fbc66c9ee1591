"""A deployment with an issuer of tokens: its API can check them."""

from __future__ import annotations

import base64
import json

import httpx
import pytest

from scripts.embedded import Embedded, deploy
from scripts.embedded.deployment import client
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.embedded

ISSUER = {"jwtIssuer": "https://127.0.0.1:9", "jwtAudience": "minute8", "jwksUrl": "https://127.0.0.1:9/keys"}


@pytest.fixture(scope="module")
def api(deployed: Embedded) -> Embedded:
    """The same file as another stage; no server listens at the issuer's address."""
    return deploy(deployed, stage="local", params=ISSUER)


def test_the_api_alone_has_the_layer_for_tokens(api: Embedded) -> None:
    functions = client(api, "lambda").list_functions()["Functions"]
    layers = {
        function["FunctionName"]: [layer["Arn"].split(":")[-2] for layer in function["Layers"]]
        for function in functions
        if function["FunctionName"].startswith("minute8-local-")
    }
    assert layers.pop("minute8-local-api") == ["minute8-local-deps", "minute8-local-jwt"]
    assert set(map(tuple, layers.values())) == {("minute8-local-deps",)}


def test_a_token_is_checked_with_what_the_layer_brings(api: Embedded) -> None:
    """The check gets as far as the request to the issuer, which fails. The signature's library is loaded before it."""
    parts = (json.dumps(part).encode() for part in ({"alg": "RS256", "kid": "a"}, {"sub": "ann"}))
    text = ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (*parts, b"signature"))
    answer = httpx.get(
        f"{api.api_url}/v1/jobs", headers={"Authorization": f"Bearer {text}"}, timeout=PATIENCE_S
    )
    assert answer.status_code == 503, answer.text
    assert answer.json()["type"] == "urn:minute8:problem:issuer-unreachable"


def test_keys_go_on_working(api: Embedded) -> None:
    answer = httpx.get(
        f"{api.api_url}/v1/jobs", headers={"Authorization": "Bearer m8_alice"}, timeout=PATIENCE_S
    )
    assert (answer.status_code, answer.json()["type"]) == (401, "urn:minute8:problem:unauthenticated")
