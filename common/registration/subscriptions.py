"""What a client writes as a subscription: its validation, and storing it with an audit entry."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, TypeVar

from msgspec import Meta, Struct, to_builtins
from msgspec import field as struct_field
from msgspec.structs import replace

from common.clock import Clock, SystemClock
from common.errors import Conflict, InvalidInput
from common.ids import check_id, id_pattern
from common.jobs.ledger import require_active
from common.jobs.placeholders import SECRET_MARK
from common.limits import CALENDAR_NAME_CHARS, JOB_ID_CHARS, MAX_SUBSCRIPTIONS
from common.notices.message import test_body
from common.notices.store import Subscriptions, unchanged
from common.notices.subscription import KINDS, RECOVERIES, Notice, Subscription, SubscriptionState
from common.registration import target_definitions
from common.registration.definition import Limits, check_url
from common.registration.registry import check_allowed
from common.storage import keys
from common.storage.conflicts import retry_if_changed
from common.storage.expressions import ABSENT
from common.storage.transactions import Addition, Transaction
from common.tenants.audit import AuditedCommit
from common.tenants.rules_cache import KnownTenants
from common.tenants.webhook_secrets import WebhookSecrets
from common.timing.instants import DAY_S

NAME_CHARS: Final = CALENDAR_NAME_CHARS
_WORD_CHARS: Final = 200

Done = TypeVar("Done")


class WebhookAddress(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="http"
):
    """An HTTPS endpoint. Messages are signed with the tenant's webhook secret."""

    url: Annotated[
        str,
        Meta(
            description="The https URL that gets the messages.",
            examples=["https://hooks.example.com/minute8"],
        ),
        target_definitions.CHECKED_URL,
    ]


class TopicAddress(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="sns"
):
    """An SNS topic, standard or FIFO."""

    arn: Annotated[str, target_definitions.TOPIC]


class SubscriptionDefinition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An address, what it gets messages about, and how they are grouped."""

    target: Annotated[
        WebhookAddress | TopicAddress,
        Meta(description="A webhook or a topic; the platform has to allow it."),
    ]
    kinds: Annotated[
        list[
            Literal["failures", "recoveries", "overdue", "not_running", "too_long", "too_short", "no_success"]
        ],
        Meta(min_length=1, max_length=len(KINDS), description="What is reported."),
    ] = struct_field(default_factory=lambda: list(KINDS))
    job_id: Annotated[
        Annotated[str, Meta(pattern=id_pattern(JOB_ID_CHARS))] | None, Meta(description="Only this job.")
    ] = None
    name_prefix: Annotated[
        Annotated[str, Meta(min_length=1, max_length=_WORD_CHARS)] | None,
        Meta(description="Only jobs whose id or name begins so."),
    ] = None
    tag: Annotated[
        Annotated[str, Meta(min_length=1, max_length=_WORD_CHARS)] | None,
        Meta(description="Only jobs with this tag."),
    ] = None
    delay_s: Annotated[
        int, Meta(ge=0, le=DAY_S, description="A problem that ends within this time is not reported.")
    ] = 60
    group_s: Annotated[
        int,
        Meta(ge=0, le=DAY_S, description="For so long after a message no further problem is reported."),
    ] = 3_600


def check_subscription(definition: SubscriptionDefinition, limits: Limits) -> None:
    """Check what the shape cannot. Raises InvalidInput."""
    if set(definition.kinds) == {RECOVERIES}:
        raise InvalidInput(
            "kinds",
            "has recoveries alone, and only what was reported can recover",
            value=definition.kinds,
            accepted=f"also {', '.join(kind for kind in KINDS if kind != RECOVERIES)}",
        )
    if isinstance(definition.target, WebhookAddress):
        check_url(definition.target.url, limits)
        if SECRET_MARK in definition.target.url:
            raise InvalidInput(
                "target.url",
                "cannot name a secret",
                value=definition.target.url,
                accepted=f"{SECRET_MARK} in jobs alone",
            )


@dataclass(frozen=True, slots=True)
class SubscriptionStore:
    """Subscriptions that a tenant can change."""

    stored: Subscriptions
    rules: KnownTenants
    webhook_secrets: WebhookSecrets
    limits: Limits
    clock: Clock = field(default_factory=SystemClock)

    def put(
        self, tenant: str, name: str, definition: SubscriptionDefinition, now: float, commit: AuditedCommit
    ) -> Subscription:
        """Store a subscription or replace the whole of it; what waits to be sent is kept.

        With another filter or other kinds, what was noticed so far is forgotten. A disabled address is enabled again.
        Raises InvalidInput, Conflict, Busy, TenantSuspended; nothing is stored then.
        """
        check_id("name", name, NAME_CHARS)
        rules = require_active(self.rules.rules(tenant, now), tenant)
        check_subscription(definition, self.limits)
        fields = {name: value for name, value in to_builtins(definition).items() if value is not None}
        check_allowed(fields["target"], rules)
        if fields["target"]["kind"] == "http":
            self.webhook_secrets.ensure(tenant, now, by=commit.by)

        def attempt() -> Subscription:
            addition = Addition(self.stored.table, keys.subscriber(tenant))
            items = {subscription.name: subscription for subscription in self.stored.of_tenant(tenant)}
            old = items.get(name)
            if old is None and len(items) >= MAX_SUBSCRIPTIONS:
                raise Conflict(
                    f"there are {MAX_SUBSCRIPTIONS} subscriptions, which are the most; delete one first"
                )
            new = Subscription(
                **{**fields, "kinds": tuple(kind for kind in KINDS if kind in fields["kinds"])},
                tenant=tenant,
                name=name,
                state=SubscriptionState(looked_at=now, searched_since=now),
                created_at=old.created_at if old else int(now),
                updated_at=int(now),
                version=old.version + 1 if old else 1,
            )
            new = replace(new, state=_carried_on(old, new, now)) if old else new
            self._write(new, old, addition, now, commit)
            return new

        return self._retried(attempt, name)

    def delete(self, tenant: str, name: str, now: float, commit: AuditedCommit) -> None:
        """Delete a subscription with what it was still to send. Raises NotFound, Busy."""

        def attempt() -> None:
            old = self.stored.get(tenant, name)
            tx = Transaction(self.stored.table.client)
            tx.delete(self.stored.table, keys.subscription(tenant, name), unchanged(old))
            commit.commit(tx, tenant, "subscription.deleted", name, now, before=old.client_fields())

        self._retried(attempt, name)

    def ask_test(self, tenant: str, name: str, now: float, commit: AuditedCommit) -> Subscription:
        """Have a test message sent within two minutes. Raises NotFound, Busy."""

        def attempt() -> Subscription:
            old = self.stored.get(tenant, name)
            if old.state.test is not None:
                return old  # one is on its way
            message_id = f"ntc_{secrets.token_hex(16)}"
            test = Notice(message_id, test_body(old, message_id, now), made_at=now, next_at=now)
            new = replace(old, state=replace(old.state, test=test), version=old.version + 1)
            tx = Transaction(self.stored.table.client)
            tx.put(self.stored.table, new.to_item(), unchanged(old))
            commit.commit(tx, tenant, "subscription.tested", name, now)
            return new

        return self._retried(attempt, name)

    def _write(
        self,
        new: Subscription,
        old: Subscription | None,
        addition: Addition,
        now: float,
        commit: AuditedCommit,
    ) -> None:
        tx = Transaction(self.stored.table.client)
        tx.put(self.stored.table, new.to_item(), unchanged(old) if old else ABSENT)
        # The notifier takes a tenant without subscriptions from the list, unless this has changed.
        addition.note(tx)
        commit.commit(
            tx,
            new.tenant,
            "subscription.stored",
            new.name,
            now,
            before=old.client_fields() if old else None,
            after=new.client_fields(),
        )

    def _retried(self, attempt: Callable[[], Done], name: str) -> Done:
        """Read, decide and write again if another writer was faster: the notifier writes each few minutes."""
        return retry_if_changed(attempt, f"subscription {name!r}", sleep=self.clock.sleep)


def _carried_on(old: Subscription, new: Subscription, now: float) -> SubscriptionState:
    """The state of a replaced subscription."""
    known = old.state
    if (old.kinds, old.job_id, old.name_prefix, old.tag) != (new.kinds, new.job_id, new.name_prefix, new.tag):
        known = SubscriptionState(
            looked_at=now,
            searched_since=now,
            message=known.message,
            test=known.test,
            delivered_at=known.delivered_at,
        )
    if known.disabled_at is not None:
        known = replace(known, looked_at=now, searched_since=now)  # what happened meanwhile is not reported
    message = known.message and replace(known.message, tries=0, next_at=now)
    return replace(known, message=message, failing_since=None, disabled_at=None)
