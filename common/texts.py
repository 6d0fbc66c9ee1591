"""Long texts: how they are compressed."""

from __future__ import annotations

import base64
import zlib
from typing import Final

# What `unpacked` raises for a text that is none of ours or was damaged, and what reading such an item raises.
UNREADABLE: Final = (ValueError, KeyError, TypeError, zlib.error)


def packed(text: str) -> str:
    """Compressed, as text."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def unpacked(data: str) -> str:
    """The inverse of `packed`."""
    return zlib.decompress(base64.b64decode(data)).decode()
