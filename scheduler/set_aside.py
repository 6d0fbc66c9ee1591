"""Retries what was set aside: with planners if there are any, else in the tick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from common.planning.quarantine import GROUP, MOST, SetAside
from common.planning.shares import encode_set_aside
from common.storage import keys
from common.timing.groups import group_can_fire

if TYPE_CHECKING:
    from scheduler.tick import Scheduler, TickSummary

# How many names one message contains; a record that failed before is sent alone.
_TOGETHER: Final = 20


def plan_set_aside(scheduler: Scheduler, summary: TickSummary) -> int:
    """Plan the readable records, at most MOST of them. Returns how many were set aside."""
    fresh: list[str] = []
    failed: list[str] = []
    found = 0
    for one in scheduler.quarantine.waiting():
        found += 1
        if len(fresh) + len(failed) >= MOST or (one.kind == GROUP and not _is_readable(one)):
            continue
        if one.tries > 1 and one.shards > 1:
            failed += scheduler.quarantine.split(one, summary.now)
        else:
            (failed if one.tries else fresh).append(one.key["sk"])
    together = [fresh[first : first + _TOGETHER] for first in range(0, len(fresh), _TOGETHER)]
    messages = together + [[name] for name in failed]
    if scheduler.fan_out:
        scheduler.fan_out.queue.send_bodies([encode_set_aside(names) for names in messages])
    else:
        for name in fresh + failed:
            plan_one(scheduler, name, summary)
    return found


def plan_one(scheduler: Scheduler, name: str, summary: TickSummary) -> None:
    """Plan the record with this sort key, without a time limit."""
    if share := scheduler.quarantine.take(name, summary.now):
        scheduler.plan_shards(share.shards, share.window, summary, share.after, share.part)
        scheduler.quarantine.release(share)


def _is_readable(one: SetAside) -> bool:
    try:
        group_can_fire(keys.group_and_shard(one.name)[0], one.start_at, one.end_at)
    except Exception:  # noqa: BLE001  it waits for a version that can
        return False
    return True
