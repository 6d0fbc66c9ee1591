"""The console's files, as a deployment carries them: compressed, under names that hold a hash of their content."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from functools import cache
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from common.errors import shown
from minute8.api.http.problems import MethodNotAllowed, NoSuchRoute
from minute8.api.http.representation import takes_gzip

if TYPE_CHECKING:
    from minute8.api.auth.issuer_pages import IssuerPages

# scripts/console.py builds them.
FILES: Final = Path(__file__).with_name("console_files")
PATH: Final = "/console"
_INDEX: Final = "index.html"
# The name in the page of where to sign in at the issuer of tokens.
_ISSUER: Final = "minute8-issuer"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
# Names below this folder change with their content.
_HASHED: Final = "assets/"
_POLICY: Final = "Content-Security-Policy"
_HEADERS: Final = {
    # Inline scripts and styles, frames, other origins: nothing of it is used, so nothing of it works.
    _POLICY: "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

Event = dict[str, Any]


def is_asked_for(path: str) -> bool:
    """Whether a path is the console's."""
    return path == PATH or path.startswith(f"{PATH}/")


def answer(
    method: str,
    path: str,
    accepts: str,
    files: Path | None = None,
    issuer_pages: Callable[[], IssuerPages | None] = lambda: None,
) -> Event:
    """The file at `path`, for a client that `accepts` these encodings. Raises NoSuchRoute, MethodNotAllowed."""
    if method != "GET":
        raise MethodNotAllowed(method, ["GET"])
    # The page names its files relative to `/console`, so they are also asked for below `/console/`.
    name = path.removeprefix(PATH).removeprefix("/").removeprefix("console/") or _INDEX
    content = _files(files or FILES).get(name)
    if content is None:
        raise NoSuchRoute(f"nothing is at {shown(path)}")
    headers = {
        **_HEADERS,
        "Content-Type": _TYPES[Path(name).suffix],
        "Cache-Control": "public, max-age=31536000, immutable" if name.startswith(_HASHED) else "no-cache",
        "Vary": "Accept-Encoding",
    }
    if name == _INDEX and (pages := issuer_pages()):
        content = _with_issuer(content, pages)
        # The page exchanges its code for a token there; nothing else of other origins is loaded or called.
        headers[_POLICY] += f"; connect-src 'self' {pages.token_origin}"
    if takes_gzip(accepts):
        headers["Content-Encoding"] = "gzip"
    else:
        content = gzip.decompress(content)
    return {
        "statusCode": HTTPStatus.OK.value,
        "headers": headers,
        "body": base64.b64encode(content).decode(),
        "isBase64Encoded": True,
    }


def _with_issuer(page: bytes, pages: IssuerPages) -> bytes:
    """The compressed page, which says where to sign in: no request of its own, and no script."""
    tag = f'<meta name="{_ISSUER}" content="{escape(json.dumps(pages.to_json()))}" />'
    return gzip.compress(gzip.decompress(page).replace(b"</head>", tag.encode() + b"</head>", 1))


@cache
def _files(files: Path) -> dict[str, bytes]:
    """All files, compressed, by their names. Read once, and looked up only here: no path can lead elsewhere."""
    return {
        path.relative_to(files).as_posix().removesuffix(".gz"): path.read_bytes()
        for path in files.rglob("*.gz")
    }
