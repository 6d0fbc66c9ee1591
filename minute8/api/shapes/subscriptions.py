"""Addresses that get messages about failures, recoveries and overdue jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from minute8.api.shapes.base import Instant, ResponseBody


class SentTry(ResponseBody):
    """One try of a message."""

    at: Instant
    ok: Annotated[bool, Meta(description="Whether the address took the message.")]
    error: Annotated[str, Meta(description="Why it did not; empty if it did.")]


class WaitingNotices(ResponseBody):
    """What waits to be reported: for the end of `delay_s`, or of the quiet after a message."""

    failed: Annotated[int, Meta(description="Jobs that fail.")]
    overdue: Annotated[int, Meta(description="Jobs that are overdue.")]
    not_running: Annotated[int, Meta(description="Jobs that do not run, and addresses that are off.")]
    too_long: Annotated[
        int, Meta(description="Jobs of which a run took longer than their alert's `longer_than_s`.")
    ]
    too_short: Annotated[int, Meta(description="Jobs of which a run took less than `shorter_than_s`.")]
    no_success: Annotated[int, Meta(description="Jobs that had no success for `no_success_for_s`.")]
    recovered: Annotated[int, Meta(description="Jobs that have recovered.")]


class NoticeOnItsWay(ResponseBody):
    """The message that is being sent, or tried again."""

    id: Annotated[str, Meta(description="The same for all tries: the receiver's `webhook-id`.")]
    made_at: Instant
    tries: Annotated[int, Meta(description="How often it has failed.")]
    next_try_at: Instant


class SubscriptionDelivery(ResponseBody):
    """How the deliveries of a subscription went."""

    state: Annotated[
        Literal["new", "working", "failing", "disabled"],
        Meta(
            description="`disabled`: it failed for three days. Nothing is sent until it is stored again "
            "or a test arrives."
        ),
    ]
    last_try: SentTry | None
    last_test: SentTry | None
    test_waits: Annotated[bool, Meta(description="Whether a test was asked for and is not finished.")]
    delivered_at: Annotated[Instant | None, Meta(description="When the last message was taken.")]
    failing_since: Instant | None
    disabled_at: Instant | None
    quiet_until: Annotated[Instant | None, Meta(description="Until then no further problem is reported.")]
    waiting: WaitingNotices
    message: NoticeOnItsWay | None


class SubscriptionView(ResponseBody, kw_only=True):
    """An address that gets messages about failures, recoveries and overdue jobs."""

    name: Annotated[str, Meta(description="The subscription's name.")]
    target: Annotated[dict[str, Any], Meta(description="The webhook or topic.")]
    kinds: Annotated[list[str], Meta(description="What is reported.")]
    job_id: Annotated[str | None, Meta(description="Only this job.")] = None
    name_prefix: Annotated[str | None, Meta(description="Only jobs whose id or name begins so.")] = None
    tag: Annotated[str | None, Meta(description="Only jobs with this tag.")] = None
    delay_s: Annotated[int, Meta(description="A problem that ends within this time is not reported.")]
    group_s: Annotated[int, Meta(description="For so long after a message no further problem is reported.")]
    created_at: Instant
    updated_at: Instant
    delivery: SubscriptionDelivery


class SubscriptionList(ResponseBody):
    """All subscriptions of the tenant, by name; there are few."""

    subscriptions: Annotated[list[SubscriptionView], Meta(description="By name.")]
