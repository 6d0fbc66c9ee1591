"""The keys of paces (common/planning/pace_shards.py).

| table   | pk                           | sk                              | item                                    |
| ------- | ---------------------------- | ------------------------------- | --------------------------------------- |
| due     | CARRIED#pace                 | end of window#group#shard       | what a pace has taken of the time after |
"""

from __future__ import annotations

from common.storage.keys import Key


def carried(pace: int, end: int, group: str = "", shard: int = 0) -> Key:
    """What a share of the window that ends at `end` took after it; group and shard are the first of the share."""
    return {"pk": f"CARRIED#{pace}", "sk": f"{end}#{group}#{shard}"}


def shards_of(group: str, pace: int) -> tuple[str, str]:
    """The sort keys of a group's shards in the directory that are of one pace, or of none (0).

    The numbers of a pace's shards begin with `-`, which sorts before all digits; `:` follows them.
    """
    digits = f"-{pace}" if pace else ""
    return f"{group}#{digits}0", f"{group}#{digits}:"
