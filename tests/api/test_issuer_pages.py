"""Where the console signs in at the token issuer: what its description may say, and what the page may connect to."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from minute8.api import console
from minute8.api.auth.issuer_pages import IssuerPages, KnownIssuerPages
from tests.api.issuer import ISSUER, settings

AGAIN_S = 60
FRESH_S = 3_600

CLIENT = {"JWT_CONSOLE_CLIENT": "console", "JWT_CONSOLE_SCOPE": "openid minute8"}
DESCRIPTION = {
    "issuer": ISSUER,
    "authorization_endpoint": "https://login.example.com/authorize?tenant=a",
    "token_endpoint": "https://tokens.example.com:8443/token",
}
HTML = b"<!doctype html><head></head>"
PAGES = IssuerPages(
    DESCRIPTION["authorization_endpoint"], DESCRIPTION["token_endpoint"], "console", "openid minute8"
)


class Issuer:
    """What the issuer answers, and how often it was asked."""

    def __init__(self, **changes: Any) -> None:
        self.description: dict[str, Any] = {**DESCRIPTION, **changes}
        self.fails = False
        self.asked: list[str] = []

    def fetch(self, url: str) -> bytes:
        self.asked.append(url)
        if self.fails:
            raise OSError("no route")
        return json.dumps(self.description).encode()

    def known(self) -> KnownIssuerPages:
        return KnownIssuerPages(settings(**CLIENT), self.fetch)


def page(name: str, tmp_path: Path, issuer_pages: Callable[[], IssuerPages | None]) -> dict[str, Any]:
    (tmp_path / "index.html.gz").write_bytes(gzip.compress(HTML))
    (tmp_path / "icon.svg.gz").write_bytes(gzip.compress(b"<svg/>"))
    return console.answer("GET", f"/console/{name}", "", tmp_path, issuer_pages)


class Metas(HTMLParser):
    """What the page says in its `meta` tags, and which tags it has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.contents: dict[str, str] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        attributes = dict(attrs)
        if tag == "meta":
            self.contents[str(attributes["name"])] = attributes["content"] or ""


def metas(answer: dict[str, Any]) -> Metas:
    return Metas(base64.b64decode(answer["body"]).decode())


def test_the_page_is_told_the_endpoints_and_may_connect_to_the_tokens_alone(tmp_path: Path) -> None:
    issuer = Issuer()
    known = issuer.known()
    answer = page("", tmp_path, lambda: known.at(0.0))
    assert json.loads(metas(answer).contents["minute8-issuer"]) == {
        "authorize": DESCRIPTION["authorization_endpoint"],
        "token": DESCRIPTION["token_endpoint"],
        "client_id": "console",
        "scope": "openid minute8",
    }
    assert issuer.asked == [f"{ISSUER.rstrip('/')}/.well-known/openid-configuration"]
    policy = answer["headers"]["Content-Security-Policy"]
    assert policy.endswith("; connect-src 'self' https://tokens.example.com:8443")
    assert "login.example.com" not in policy


def test_a_description_writes_no_tag_into_the_page(tmp_path: Path) -> None:
    attack = 'https://login.example.com/"><script src=x></script>'
    pages = replace(PAGES, authorize=attack)
    page_metas = metas(page("", tmp_path, lambda: pages))
    assert page_metas.tags == ["head", "meta"]
    assert json.loads(page_metas.contents["minute8-issuer"])["authorize"] == attack


def test_a_deployment_without_a_client_connects_to_nothing_else(tmp_path: Path) -> None:
    answer = page("", tmp_path, lambda: None)
    assert base64.b64decode(answer["body"]) == HTML
    assert "connect-src" not in answer["headers"]["Content-Security-Policy"]


def test_a_file_that_needs_no_issuer_asks_none(tmp_path: Path) -> None:
    def ask() -> IssuerPages | None:
        raise AssertionError("asked")

    assert page("icon.svg", tmp_path, ask)["statusCode"] == 200


def test_the_issuer_is_asked_once_an_hour_and_once_a_minute_while_it_fails() -> None:
    issuer = Issuer()
    known = issuer.known()
    assert [known.at(float(now)) for now in (0, 1, FRESH_S - 1)] == [PAGES] * 3
    assert len(issuer.asked) == 1
    issuer.fails = True
    # What it said before still holds.
    assert [known.at(float(now)) for now in (FRESH_S, FRESH_S + AGAIN_S - 1)] == [PAGES] * 2
    assert len(issuer.asked) == 2
    known.at(float(FRESH_S + AGAIN_S))
    assert len(issuer.asked) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://other.example.com"},
        {"token_endpoint": "http://tokens.example.com/token"},
        {"token_endpoint": None},
        {"token_endpoint": "https://a.example.com; script-src *"},
        {"token_endpoint": "https://*/token"},
        {"token_endpoint": "https://user@a.example.com/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
    ],
)
def test_a_description_that_is_not_to_be_trusted_offers_no_sign_in(changes: dict[str, Any]) -> None:
    assert Issuer(**changes).known().at(0.0) is None
