"""The numbers of the shards whose jobs have a pace. Pure.

All shards of a pace are planned together. They are found by their numbers, which are negative: a hash of tenant and
key, and then how many shards of the group came before. Code that knows of no paces reads such a shard as any other.
"""

from __future__ import annotations

import hashlib
from typing import Final

from common.timing.schedule import Pace

# More shards than the entries of any group fill.
_SHARDS: Final = 1_000_000
# The bytes of a pace's hash: too many for a tenant to find a key with the hash of another tenant's.
_HASH_BYTES: Final = 8
# Added to it, so that all have as many digits: none begins as another.
_LEAST: Final = 10**19


def pace_number(tenant: str, pace: Pace | None) -> int:
    """Names a pace among the shards; 0 without a pace."""
    if pace is None:
        return 0
    digest = hashlib.blake2b(f"{tenant}/{pace.key}".encode(), digest_size=_HASH_BYTES).digest()
    return _LEAST + int.from_bytes(digest)


def pace_of(shard: int) -> int:
    """The number of the pace to which a shard belongs; 0: to none."""
    return -shard // _SHARDS if shard < 0 else 0


def shard_number(pace: int, nth: int) -> int:
    """The number of the nth shard of a group's jobs with this pace."""
    return -(pace * _SHARDS + nth) if pace else nth


def nth_shard(shard: int) -> int:
    """The inverse: which of its group and pace it is."""
    return -shard % _SHARDS if shard < 0 else shard
