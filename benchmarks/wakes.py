"""The environments that wakes start before a burst, by the rules of the model."""

from __future__ import annotations

from benchmarks.modelled_queue import BATCH
from benchmarks.setting import ENVIRONMENTS_AT_ONCE, POLLS_A_SECOND, Setting, allowed, pollers
from common.planning.packs import WAKE_S

# Without a measured executor.
_FIRST_WAKE_S, _LATER_WAKE_S = 0.5, 0.1


def woken(setting: Setting) -> tuple[int, float]:
    """The environments of each function at the burst, and how long all of its wakes keep them busy, s.

    A batch of wakes goes to an environment that is free, else it starts one: as long as the first ones start, the
    others start more. The burst's own polling begins anew.
    """
    executor = setting.executor
    first_s = setting.cold_s + (executor.first_wake_s if executor else _FIRST_WAKE_S)
    later_s = executor.wake_s if executor else _LATER_WAKE_S
    left, busy_s, polls, at = -(-setting.wakes // (BATCH * setting.functions)), 0.0, 0.0, 0.0
    made, idle = 0, 0
    ends: list[float] = []
    while left and at < WAKE_S:
        idle += sum(end <= at for end in ends)
        ends = [end for end in ends if end > at]
        places = min(left, allowed(setting, at) - len(ends), idle + ENVIRONMENTS_AT_ONCE - made)
        if setting.minimum_pollers:
            ready = pollers(setting, at)
            polls = min(ready, polls + ready * POLLS_A_SECOND * setting.look_s)
            places = min(places, int(polls))
            polls -= places
        reused = min(idle, places)
        idle, made, left = idle - reused, made + places - reused, left - places
        ends += [at + later_s] * reused + [at + first_s] * (places - reused)
        busy_s += reused * later_s + (places - reused) * first_s
        at += setting.look_s
    return made, busy_s + left * later_s
