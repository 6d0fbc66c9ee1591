"""The console's files over HTTP: types, compression, caching, and headers that keep other people's code out."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minute8.api import console
from minute8.api.app import resolve
from minute8.api.http.problems import MethodNotAllowed, NoSuchRoute

PAGE = b"<!doctype html><title>Minute8</title>"
SCRIPT = b"export const a = 1;"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html.gz").write_bytes(gzip.compress(PAGE))
    (tmp_path / "assets" / "index-1a2b3c.js.gz").write_bytes(gzip.compress(SCRIPT))
    (tmp_path / ".sources").write_text("a hash")
    return tmp_path


def body(answer: dict[str, Any]) -> bytes:
    assert answer["isBase64Encoded"] is True
    return base64.b64decode(answer["body"])


@pytest.mark.parametrize("path", ["/console", "/console/", "/console/index.html"])
def test_the_page_is_there_with_a_slash_and_without(files: Path, path: str) -> None:
    answer = console.answer("GET", path, "gzip, br", files)
    assert gzip.decompress(body(answer)) == PAGE
    assert answer["headers"]["Content-Encoding"] == "gzip"
    assert answer["headers"]["Content-Type"] == "text/html; charset=utf-8"
    assert answer["headers"]["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("below", ["/console", "/console/console"])
def test_a_file_of_a_hashed_name_is_kept_for_ever(files: Path, below: str) -> None:
    """The page names `console/assets/…`, which below `/console/` is one folder deeper."""
    answer = console.answer("GET", f"{below}/assets/index-1a2b3c.js", "", files)
    assert body(answer) == SCRIPT
    assert "Content-Encoding" not in answer["headers"]
    assert answer["headers"]["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer["headers"]["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer["headers"]["Vary"] == "Accept-Encoding"


def test_nothing_of_other_origins_and_nothing_inline_works(files: Path) -> None:
    headers = console.answer("GET", "/console", "gzip", files)["headers"]
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "*" not in policy and "data:" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path",
    [
        "/console/../handler.py",
        "/console/.sources",
        "/console/%2e%2e/app.py",
        "/console//etc/passwd",
        "/console/a.js",
    ],
)
def test_only_the_files_of_the_console_are_there(files: Path, path: str) -> None:
    with pytest.raises(NoSuchRoute):
        console.answer("GET", path, "gzip", files)


def test_other_methods_are_refused(files: Path) -> None:
    with pytest.raises(MethodNotAllowed):
        console.answer("POST", "/console", "gzip", files)


def test_no_key_is_needed_and_a_stage_in_the_path_is_left_out(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "FILES", files)
    event = {
        "rawPath": "/prod/console/index.html",
        "headers": {"accept-encoding": "gzip"},
        "requestContext": {"stage": "prod", "http": {"method": "GET"}, "requestId": "r"},
    }
    services: Any = SimpleNamespace(issuer_pages=lambda: None)  # nothing else is used
    assert gzip.decompress(body(resolve(services, event))) == PAGE


def test_a_deployment_without_a_console_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRoute):
        console.answer("GET", "/console", "gzip", tmp_path)
