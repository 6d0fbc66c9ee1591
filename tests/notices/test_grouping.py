"""The delay, the grouping and what a recovery cancels, as tables with a clock."""

from __future__ import annotations

import pytest

from common.notices import grouping
from common.notices.grouping import Digest
from common.notices.subscription import FAILED, OVERDUE, Notice, Problem, Subscription, SubscriptionState
from common.timing.instants import DAY_S


def failure(job_id: str, at: float, *, by_hand: bool = False) -> Problem:
    return Problem(FAILED, job_id, at, at, f"run-{at:05.0f}", by_hand=by_hand)


def reported(state: SubscriptionState, delay_s: int, group_s: int, now: float) -> Digest | None:
    if not grouping.may_report(state, delay_s, now):
        return None
    return grouping.take_digest(state, delay_s, group_s, now)


# What happens at which second: a job that fails (+), recovers (-); `=` and what is reported, in the words of `shown`.
# With a delay of 60 s, and 600 s of quiet after a message.
NIGHTS = {
    "a failure is reported after the delay": "0+a 59= 60=failed(a)",
    "a recovery within the delay cancels it": "0+a 30-a 60= 900=",
    "what else failed meanwhile is in the same message": "0+a 40+b 60=failed(a,b)",
    "one bad night is one message": "0+a 60=failed(a) 70+b 80+c 90+a 300+d 659=",
    "what failed in the quiet comes after it, together": "0+a 60=failed(a) 70+b 80+c 660=failed(b,c)",
    "what recovered in the quiet is not reported": "0+a 60=failed(a) 70+b 90-b 660=",
    "a reported failure is reported once": "0+a 60=failed(a) 700+a 1400+a 1500=",
    "the recovery of all is reported within the quiet": "0+a 60=failed(a) 100-a 159= 160=recovered(a)",
    "some recoveries wait for the end of the quiet": "0+a 0+b 60=failed(a,b) 100-a 160= 660=recovered(a)",
    "recoveries are reported together": "0+a 0+b 60=failed(a,b) 100-a 130-b 160=recovered(a,b)",
    "who fails again before the recovery is reported has not recovered": "0+a 60=failed(a) 100-a 120+a 700=",
    "a recovery in the quiet takes no failure along": "0+a 60=failed(a) 90+b 100-a 160=recovered(a) 660=failed(b)",
    "a new failure after the recovery is reported": "0+a 60=failed(a) 100-a 160=recovered(a) 700+a 760=failed(a)",
    "flapping makes two messages in the quiet at most": (
        "0+a 60=failed(a) 100-a 160=recovered(a) 200+a 220-a 300+a 310-a 320= 659= 660="
    ),
}


@pytest.mark.parametrize("night", NIGHTS.values(), ids=NIGHTS)
def test_a_night(night: str) -> None:
    state = SubscriptionState(looked_at=0)
    for step in night.split():
        sign = next(sign for sign in "+-=" if sign in step)
        at, _, text = step.partition(sign)
        if sign == "+":
            grouping.add(state, [failure(text, float(at))])
        elif sign == "-":
            grouping.end(state, {f"{FAILED}#{text}": "recovered"}, float(at), reports=True)
        else:
            assert shown(reported(state, 60, 600, float(at))) == text, step


def shown(digest: Digest | None) -> str:
    if digest is None:
        return ""
    parts = (("failed", digest.problems), ("recovered", digest.recovered))
    return " ".join(
        f"{word}({','.join(problem.job_id for problem in problems)})" for word, problems in parts if problems
    )


def test_a_failure_that_is_read_twice_counts_once() -> None:
    state = SubscriptionState(looked_at=0)
    for _ in range(3):
        grouping.add(state, [failure("a", 0), failure("a", 10), failure("a", 20)])
    assert state.waiting["failed#a"].runs == 3
    assert reported(state, 0, 600, 30) is not None
    grouping.add(state, [failure("a", 10), failure("a", 20)])
    assert state.waiting == {}


def test_a_job_that_goes_on_failing_is_reported_again_after_a_day() -> None:
    state = SubscriptionState(looked_at=0)
    grouping.add(state, [failure("a", 0)])
    assert reported(state, 0, 0, 10)
    grouping.add(state, [failure("a", DAY_S + 9)])
    assert reported(state, 0, 0, DAY_S + 9) is None
    grouping.add(state, [failure("a", DAY_S + 10)])
    assert shown(reported(state, 0, 0, DAY_S + 10)) == "failed(a)"
    grouping.add(state, [failure("a", DAY_S + 11)])
    assert reported(state, 0, 0, DAY_S + 11) is None


def test_failures_by_hand_are_reported_each_time_and_need_no_recovery() -> None:
    state = SubscriptionState(looked_at=0)
    grouping.add(state, [failure("a", 0, by_hand=True), failure("a", 0)])
    assert shown(reported(state, 0, 0, 1)) == "failed(a,a)"
    grouping.forget(state, 700)
    assert list(state.reported) == ["failed#a"]


def test_without_recoveries_the_end_of_a_problem_is_only_known() -> None:
    state = SubscriptionState(looked_at=0)
    grouping.add(state, [failure("a", 0)])
    assert reported(state, 0, 0, 0)
    grouping.end(state, {"failed#a": "recovered"}, 10, reports=False)
    assert (state.reported, state.over) == ({}, {})
    assert reported(state, 0, 0, 100) is None


def test_problems_and_reported_ones_are_bounded_and_the_message_says_so() -> None:
    state = SubscriptionState(looked_at=0)
    for nth in range(grouping.MAX_WAITING + 1):
        grouping.add(state, [failure(f"job-{nth}", nth)])
    assert len(state.waiting) == grouping.MAX_WAITING
    digest = reported(state, 0, 0, 1_000)
    assert digest and not digest.complete and len(digest.problems) == grouping.MAX_WAITING
    for nth in range(grouping.MAX_REPORTED + 1):
        grouping.add(state, [failure(f"other-{nth}", 2_000 + nth)])
        digest = reported(state, 0, 0, 3_000)
        assert digest and digest.complete
    assert len(state.reported) == grouping.MAX_REPORTED
    assert f"failed#other-{grouping.MAX_REPORTED}" in state.reported


def test_nothing_is_reported_while_a_message_is_on_its_way() -> None:
    state = SubscriptionState(looked_at=0, message=Notice("ntc_1", "{}", 0))
    grouping.add(state, [failure("a", 0)])
    assert not grouping.may_report(state, 0, 9_000)


def test_an_overdue_job_that_fails_later_is_two_problems() -> None:
    state = SubscriptionState(looked_at=0)
    grouping.add(state, [Problem(OVERDUE, "a", 0, 0, "run", runs=0), failure("a", 5)])
    assert list(state.waiting) == ["overdue#a", "failed#a"]


@pytest.mark.parametrize(
    ("tries", "wait_s"), [(1, 60), (2, 120), (3, 240), (6, 1_920), (7, 3_600), (50, 3_600)]
)
def test_a_message_is_tried_again_later_and_later(tries: int, wait_s: int) -> None:
    state = SubscriptionState(looked_at=0, message=Notice("ntc_1", "{}", 0))
    for _ in range(tries):
        grouping.note_delivery(state, "ntc_1", False, "Http500: answered 500", 1_000)
    assert state.message and (state.message.tries, state.message.next_at) == (tries, 1_000 + wait_s)
    assert grouping.to_send(state, 999 + wait_s) == []
    assert grouping.to_send(state, 1_000 + wait_s) == [state.message]


def test_an_address_that_fails_for_three_days_is_disabled_until_a_test_arrives() -> None:
    state = SubscriptionState(looked_at=0, message=Notice("ntc_1", "{}", 0))
    grouping.note_delivery(state, "ntc_1", False, "x" * 1_000, 100)
    grouping.note_delivery(state, "ntc_1", False, "x", 99 + grouping.DISABLED_AFTER_S)
    assert state.disabled_at is None
    grouping.note_delivery(state, "ntc_1", False, "x" * 1_000, 100 + grouping.DISABLED_AFTER_S)
    assert state.disabled_at is not None and state.last_sent and len(state.last_sent.error) == 300
    state.test = Notice("ntc_2", "{}", 0)
    assert grouping.to_send(state, 10**9) == [state.test]
    grouping.note_delivery(state, "ntc_2", True, "", 10**9)
    assert state.disabled_at is state.failing_since is state.test is None
    assert grouping.to_send(state, 10**9) == [state.message]


def test_a_result_of_an_earlier_message_changes_nothing() -> None:
    state = SubscriptionState(looked_at=0, message=Notice("ntc_2", "{}", 0))
    grouping.note_delivery(state, "ntc_1", True, "", 10)
    assert state.message and state.delivered_at is None


def test_a_state_is_read_as_it_was_written() -> None:
    state = SubscriptionState(looked_at=1.5, message=Notice("ntc_1", '{"a":"ü"}', 2.0), quiet_until=3.0)
    grouping.add(state, [failure("a", 0), failure("b", 1, by_hand=True)])
    stored = Subscription("alice", "on-call", {}, (), 0, 0, state).to_item()
    assert Subscription.from_item(stored).state == state
    later = stored["state"].replace("{", '{"later":1,', 1)
    assert Subscription.from_item({**stored, "state": later}).state == state
