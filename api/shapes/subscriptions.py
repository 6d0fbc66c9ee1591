"""Addresses that get messages about failures, recoveries and overdue jobs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from api.shapes.base import Instant, ResponseBody
from common.registration.subscriptions import SubscriptionDefinition


class NewSubscription(SubscriptionDefinition):
    """An address, what it gets messages about, and how they are grouped."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"target": {"kind": "http", "url": "https://hooks.example.com/minute8"}}],
        },
    )


class SentTry(ResponseBody):
    """One try of a message."""

    at: Instant
    ok: bool = Field(description="Whether the address took the message.")
    error: str = Field(description="Why it did not; empty if it did.")


class WaitingNotices(ResponseBody):
    """What waits to be reported: for the end of `delay_s`, or of the quiet after a message."""

    failed: int = Field(description="Jobs that fail.")
    overdue: int = Field(description="Jobs that are overdue.")
    too_long: int = Field(description="Jobs of which a run took longer than their alert's `longer_than_s`.")
    too_short: int = Field(description="Jobs of which a run took less than `shorter_than_s`.")
    no_success: int = Field(description="Jobs that had no success for `no_success_for_s`.")
    recovered: int = Field(description="Jobs that have recovered.")


class NoticeOnItsWay(ResponseBody):
    """The message that is being sent, or tried again."""

    id: str = Field(description="The same for all tries: the receiver's `webhook-id`.")
    made_at: Instant
    tries: int = Field(description="How often it has failed.")
    next_try_at: Instant


class SubscriptionDelivery(ResponseBody):
    """How the deliveries of a subscription went."""

    state: Literal["new", "working", "failing", "disabled"] = Field(
        description="`disabled`: it failed for three days. Nothing is sent until it is stored again or a test arrives."
    )
    last_try: SentTry | None
    last_test: SentTry | None
    test_waits: bool = Field(description="Whether a test was asked for and is not finished.")
    delivered_at: Instant | None = Field(description="When the last message was taken.")
    failing_since: Instant | None
    disabled_at: Instant | None
    quiet_until: Instant | None = Field(description="Until then no further problem is reported.")
    waiting: WaitingNotices
    message: NoticeOnItsWay | None


class SubscriptionView(ResponseBody):
    """An address that gets messages about failures, recoveries and overdue jobs."""

    name: str = Field(description="The subscription's name.")
    target: dict[str, Any] = Field(description="The webhook or topic.")
    kinds: list[str] = Field(description="What is reported.")
    job_id: str | None = Field(default=None, description="Only this job.")
    name_prefix: str | None = Field(default=None, description="Only jobs whose id or name begins so.")
    tag: str | None = Field(default=None, description="Only jobs with this tag.")
    delay_s: int = Field(description="A problem that ends within this time is not reported.")
    group_s: int = Field(description="For so long after a message no further problem is reported.")
    created_at: Instant
    updated_at: Instant
    delivery: SubscriptionDelivery


class SubscriptionList(ResponseBody):
    """All subscriptions of the tenant, by name; there are few."""

    subscriptions: list[SubscriptionView] = Field(description="By name.")
