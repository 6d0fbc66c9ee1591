"""Long texts: how they are compressed."""

from __future__ import annotations

import base64
import zlib


def packed(text: str) -> str:
    """Compressed, as text."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def unpacked(data: str) -> str:
    """The inverse of `packed`."""
    return zlib.decompress(base64.b64decode(data)).decode()
