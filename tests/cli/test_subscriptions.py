"""`minute8 subscriptions`."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from common.notices import grouping
from common.notices.store import Subscriptions
from tests.cli.conftest import Desk

HOOK = "https://hooks.example.com/minute8"


def test_put_list_show_and_delete(desk: Desk) -> None:
    assert desk("subscriptions", "list").out == "no subscriptions\n"
    put = desk(
        *("subscriptions", "put", "on-call", "--target", HOOK, "--kind", "failures", "--tag", "money"),
        *("--delay", "5m", "--group", "0"),
    )
    assert put.out == f"on-call reports failures to {HOOK}\n"
    shown = desk("subscriptions", "show", "on-call").json
    assert (shown["tag"], shown["delay_s"], shown["group_s"]) == ("money", 300, 0)
    topic = "arn:aws:sns:us-east-1:123456789012:alerts"
    assert desk("subscriptions", "put", "topic", "--target", topic, "--json").json["target"] == {
        "kind": "sns",
        "arn": topic,
    }
    listed = desk("subscriptions", "list").out
    assert HOOK in listed and topic in listed and "new" in listed
    assert desk("subscriptions", "delete", "on-call").out == "on-call is deleted\n"
    assert desk("subscriptions", "show", "on-call").code == 3


def test_the_result_of_a_test_is_the_exit_code(desk: Desk) -> None:
    desk("subscriptions", "put", "on-call", "--target", HOOK)
    stored, clock = Subscriptions(desk.office.world.table("jobs")), desk.office.world.clock
    waits = desk("subscriptions", "test", "on-call")
    assert (waits.code, "will be sent" in waits.out) == (0, True)
    for ok, error, code in ((True, "", 0), (False, "Http500: answered 500", 1)):
        subscription = stored.get("alice", "on-call")
        if subscription.state.test is None:
            desk("subscriptions", "test", "on-call", "--no-wait")
            subscription = stored.get("alice", "on-call")
        test = subscription.state.test
        assert test
        sleep = clock.sleep

        def answered(
            seconds: float,
            message_id: str = test.message_id,
            ok: bool = ok,
            error: str = error,
            sleep: Callable[[float], None] = sleep,
        ) -> None:
            sleep(seconds)
            now = stored.get("alice", "on-call")
            grouping.note_delivery(now.state, message_id, ok, error, clock.now())
            stored.save(replace(now))

        clock.sleep = answered  # type: ignore[method-assign]
        done = desk("subscriptions", "test", "on-call")
        clock.sleep = sleep  # type: ignore[method-assign]
        assert (done.code, error in done.err) == (code, True)
