"""The format of a key: `m8_`, 256 random bits in base 62, and a checksum. Pure except for the random bits.

Secret scanners can recognise a leaked key, and a mistyped key costs no read. SHA-256 of 256 random bits needs no salt
and no key stretching.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KEY_BITS: Final = 256
_SECRET_CHARS: Final = 43  # the fewest that can hold 256 bits in base 62
_CHECKSUM_CHARS: Final = 6
_KEY: Final = re.compile(rf"m8_([0-9A-Za-z]{{{_SECRET_CHARS}}})([0-9A-Za-z]{{{_CHECKSUM_CHARS}}})", re.ASCII)


def new_key() -> str:
    """A new random key."""
    secret = _base62(secrets.randbits(_KEY_BITS), _SECRET_CHARS)
    return f"m8_{secret}{_checksum(secret)}"


def is_well_formed(raw_key: str) -> bool:
    """Whether the text has the format of a key, with a valid checksum."""
    match = _KEY.fullmatch(raw_key)
    return match is not None and match[2] == _checksum(match[1])


def hash_of(raw_key: str) -> str:
    """What is stored of a key: its SHA-256 in hexadecimal digits."""
    return hashlib.sha256(raw_key.encode()).hexdigest()


def _checksum(secret: str) -> str:
    return _base62(zlib.crc32(secret.encode()), _CHECKSUM_CHARS)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
