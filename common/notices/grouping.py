"""Decides when a subscription gets a message and what it reports: delay, grouping, recoveries. Pure.

A problem waits for `delay_s` after it began. A problem that ends before is never reported. Then one message reports all
waiting problems, and for `group_s` no further problem is reported; but that a job does not run is told within 15
minutes. A reported problem that still goes on after a day is reported again. A run that took too long or too little is
reported once. The recovery of a reported problem is reported, too. The recovery of the last reported problem does not
wait for the end of `group_s`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from common.notices.subscription import NOT_RUNNING, DeliveryResult, Notice, Problem, SubscriptionState
from common.timing.instants import DAY_S

# An item has room for 400 KB.
MAX_WAITING: Final = 100
MAX_REPORTED: Final = 200
# Jobs that do not run, by name. The others are one problem for each reason, which counts them.
MAX_STOPPED: Final = 50
AGAIN_S: Final = DAY_S
# A job that does not run waits no longer than this for the end of a group: so it makes 20 messages an hour at most.
STOPPED_HELD_S: Final = 180
# The index of failures is read again from so far back, because failures can appear late in it.
LATE_S: Final = 60
# Reported failures of runs by hand are known for this time, so that a second read does not repeat them.
_BY_HAND_S: Final = 10 * LATE_S

# A message is tried again after 1, 2, 4… minutes, at most an hour.
FIRST_RETRY_S: Final = 60
MAX_RETRY_S: Final = 3_600
DISABLED_AFTER_S: Final = 3 * DAY_S
# No other round sends a message that is being sent.
LEASE_S: Final = 120
ERROR_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class Digest:
    """The problems and recoveries of one message."""

    problems: tuple[Problem, ...]
    recovered: tuple[Problem, ...]
    complete: bool


def add(state: SubscriptionState, problems: Iterable[Problem]) -> None:
    """Add problems, in the order of time. Known ones change nothing."""
    for problem in problems:
        known = state.reported.get(problem.key)
        if known and problem.last_at <= known.last_at:
            continue
        if known:
            state.over.pop(problem.key, None)  # a new failure: the problem goes on
            state.reported[problem.key] = replace(known, last_at=problem.last_at, run_name=problem.run_name)
            if problem.ends and problem.last_at < (known.reported_at or 0.0) + AGAIN_S:
                continue
        _wait(state, problem)


def _wait(state: SubscriptionState, problem: Problem) -> None:
    waiting = state.waiting.get(problem.key)
    if waiting is None:
        if len(state.waiting) >= MAX_WAITING:
            state.complete = False
        else:
            state.waiting[problem.key] = problem
    elif problem.last_at > waiting.last_at:
        state.waiting[problem.key] = replace(problem, first_at=waiting.first_at, runs=waiting.runs + 1)


def end(state: SubscriptionState, ended: Mapping[str, str], now: float, *, reports: bool) -> None:
    """End these problems, each in a way that a word says.

    `reports`: a message reports the end of a reported problem.
    """
    for key, over_by in ended.items():
        state.waiting.pop(key, None)
        if key in state.reported:
            if reports:
                over = replace(state.reported[key], recovered_at=now, over_by=over_by)
                state.over.setdefault(key, over)
            else:
                del state.reported[key]


def change_reasons(state: SubscriptionState, present: Iterable[Problem]) -> None:
    """Forget jobs that do not run for another reason than before, or not at all now: each is a new problem."""
    for problem in present:
        for known in (state.waiting, state.reported):
            before = known.get(problem.key)
            if before and (before.reason, before.is_share) != (problem.reason, problem.is_share):
                del known[problem.key]
                state.over.pop(problem.key, None)


def named_and_counted(state: SubscriptionState, present: Iterable[Problem]) -> list[Problem]:
    """What does not run: the newest by name, and the others as one problem for each reason.

    Which of the others were told is known by their number alone. If a name gives way to a newer one, or has room again,
    nothing is told.
    """
    problems = sorted(present, key=lambda each: (bool(each.more), not each.address, -each.last_at, each.key))
    named = [problem for problem in problems[:MAX_STOPPED] if not problem.more]
    unnamed: dict[str, list[Problem]] = {}
    for problem in problems[len(named) :]:
        unnamed.setdefault(problem.reason, []).append(problem)
    together: list[Problem] = []
    for reason in unnamed.keys() | {problem.reason for problem in state.reported.values() if problem.more}:
        of_reason = [problem for problem in named if problem.reason == reason]
        fresh = [each for each in of_reason if each.key not in state.reported | state.waiting]
        together += _together(state, reason, unnamed.get(reason, []), fresh)
    return [*sorted(named, key=lambda problem: (problem.address, problem.job_id)), *together]


def _together(
    state: SubscriptionState, reason: str, unnamed: Sequence[Problem], fresh: Sequence[Problem]
) -> list[Problem]:
    """The unnamed of a reason as one problem, if there are any. `fresh` ones have a name now, the newest first."""
    key = f"{NOT_RUNNING}#{reason}"
    reported, count = state.reported.get(key), sum(problem.more or 1 for problem in unnamed)
    told_count = reported.more if reported else 0
    for problem in unnamed:
        if not problem.more:
            state.waiting.pop(problem.key, None)
            state.over.pop(problem.key, None)
            told_count += state.reported.pop(problem.key, None) is not None
    renamed = [*reversed(fresh)][: max(0, told_count - count)]
    state.reported |= {problem.key: replace(problem, reported_at=problem.last_at) for problem in renamed}
    if not unnamed:
        if reported and told_count > len(renamed):
            state.reported[key] = replace(reported, more=told_count - len(renamed))
        else:
            state.reported.pop(key, None)
        return []
    first_at = min(problem.first_at for problem in unnamed)
    last_at = max(problem.last_at for problem in unnamed)
    waiting = state.waiting.pop(key, None)
    more = max(count, waiting.more if waiting else 0)
    joint = replace(unnamed[0], job_id="", first_at=first_at, last_at=last_at, detail="", more=more)
    if more > told_count:
        state.reported.pop(key, None)
        state.over.pop(key, None)
    else:
        state.reported[key] = replace(joint, reported_at=reported.reported_at if reported else last_at)
    return [joint]


def may_report(state: SubscriptionState, delay_s: int, now: float) -> bool:
    """Whether a message is due, if no problem has ended meanwhile."""
    if state.message is not None:
        return False
    quiet = _is_quiet(state, delay_s, now)
    problems = any(problem.first_at + delay_s <= now for problem in state.waiting.values())
    recovered = any((problem.recovered_at or 0.0) + delay_s <= now for problem in state.over.values())
    all_over = all(key in state.over for key, problem in state.reported.items() if problem.ends)
    return (problems and not quiet) or (recovered and (not quiet or all_over))


def _is_quiet(state: SubscriptionState, delay_s: int, now: float) -> bool:
    """Whether the group goes on, and no job that does not run has waited long enough."""
    waited = (
        now >= max(problem.first_at + delay_s, problem.last_at + STOPPED_HELD_S)
        for problem in state.waiting.values()
        if problem.kind == NOT_RUNNING
    )
    return now < state.quiet_until and not any(waited)


def take_digest(state: SubscriptionState, delay_s: int, group_s: int, now: float) -> Digest:
    """Take what the next message reports out of the state. Only after `may_report`."""
    problems: tuple[Problem, ...] = ()
    complete = state.complete
    if not _is_quiet(state, delay_s, now):
        problems, state.waiting = tuple(state.waiting.values()), {}
        state.complete = True
        if problems:
            state.quiet_until = now + group_s
    recovered, state.over = tuple(state.over.values()), {}
    for problem in recovered:
        state.reported.pop(problem.key, None)
    for problem in problems:
        state.reported.pop(problem.key, None)  # so that the newest come last
        state.reported[problem.key] = replace(problem, reported_at=now)
    # What goes on not to run would be told again.
    oldest = sorted(state.reported, key=lambda key: state.reported[key].kind == NOT_RUNNING)
    for key in oldest[: max(0, len(state.reported) - MAX_REPORTED)]:
        del state.reported[key]
    return Digest(problems, recovered, complete)


def forget(state: SubscriptionState, now: float) -> None:
    """Forget reported failures of runs by hand, which only their own retry could end, and runs that no look reads."""
    for key, problem in list(state.reported.items()):
        is_old = problem.by_hand and now > (problem.reported_at or 0.0) + _BY_HAND_S
        is_read = problem.ends or problem.last_at >= (state.searched_since or 0.0) - LATE_S
        if is_old or not is_read:
            del state.reported[key]
            state.over.pop(key, None)


def known_until(state: SubscriptionState, began_at: float) -> float:
    """Until when the alerts of every job are known, in a search that began at `began_at`: to the search before it."""
    if state.searched_after or state.searched_at == began_at:  # it goes on, or another one was not finished
        return state.searched_since or 0.0
    return max(state.searched_since or 0.0, state.searched_at)


def note_delivery(
    state: SubscriptionState,
    message_id: str,
    ok: bool,
    error: str,
    now: float,
    *,
    address_failed: bool = True,
) -> None:
    """Note the result of a try. The result of a former message changes nothing.

    Not `address_failed`: Minute8 itself did. The message is tried again, and its address is not disabled for that.
    """
    result = DeliveryResult(now, ok, error[:ERROR_CHARS])
    if state.test and state.test.message_id == message_id:
        state.test, state.last_test = None, result
        if ok:
            _works(state)
            if state.message:
                state.message = replace(state.message, next_at=now)
        return
    if not state.message or state.message.message_id != message_id:
        return
    state.last_sent = result
    if ok:
        state.message, state.delivered_at = None, now
        _works(state)
        return
    tries = state.message.tries + 1
    wait_s = min(FIRST_RETRY_S * 2 ** min(tries - 1, 10), MAX_RETRY_S)
    state.message = replace(state.message, tries=tries, next_at=now + wait_s)
    if not address_failed:
        return
    if state.failing_since is None:
        state.failing_since = now
    if now - state.failing_since >= DISABLED_AFTER_S:
        state.disabled_at = now


def _works(state: SubscriptionState) -> None:
    state.failing_since = state.disabled_at = None


def to_send(state: SubscriptionState, now: float) -> list[Notice]:
    """The messages to send now. A test is sent to a disabled address, too."""
    present: Collection[Notice | None] = (state.test, None if state.disabled_at else state.message)
    return [message for message in present if message is not None and message.next_at <= now]
