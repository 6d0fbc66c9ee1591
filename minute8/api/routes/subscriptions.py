"""The routes of subscriptions: addresses that get messages about failures, recoveries and overdue jobs."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from common.notices.subscription import (
    FAILED,
    NO_SUCCESS,
    NOT_RUNNING,
    OVERDUE,
    TOO_LONG,
    TOO_SHORT,
    DeliveryResult,
    Subscription,
    SubscriptionState,
)
from common.registration.subscriptions import NAME_CHARS
from common.timing.instants import rfc3339
from minute8.api.http.requests import Request
from minute8.api.http.routing import Response, Routes
from minute8.api.services import Services

if TYPE_CHECKING:
    from minute8.api.shapes.definitions import NewSubscription

ROUTES = Routes()


@ROUTES.add("GET", "/v1/subscriptions", "read", response="SubscriptionList")
def list_subscriptions(services: Services, request: Request) -> Response:
    """All addresses that get messages about failures, recoveries and overdue jobs.

    One query; a tenant has 20 at most.
    """
    subscriptions = services.subscriptions.stored.of_tenant(request.tenant)
    return Response({"subscriptions": [_subscription_view(subscription) for subscription in subscriptions]})


@ROUTES.add(
    "PUT",
    "/v1/subscriptions/{name}",
    "write",
    response="SubscriptionView",
    other_status=HTTPStatus.CREATED,
)
def put_subscription(services: Services, request: Request, body: NewSubscription) -> Response:
    """Create or replace a subscription; a disabled address is enabled again.

    A webhook or an SNS topic gets messages about failed jobs, recoveries, overdue jobs and what alerts say. The
    platform has to allow the address. `conflict`: the tenant has 20 subscriptions. One query and one transaction.
    """
    stored = services.subscriptions.put(
        request.tenant, request.path["name"], body, request.now, services.store.audited
    )
    return Response(_subscription_view(stored), HTTPStatus.CREATED if stored.version == 1 else HTTPStatus.OK)


@ROUTES.add("GET", "/v1/subscriptions/{name}", "read", response="SubscriptionView")
def get_subscription(services: Services, request: Request) -> Response:
    """A subscription, and how its deliveries went.

    Its last tries, what waits to be reported, and whether the address is disabled. One read.
    """
    return Response(_subscription_view(services.subscriptions.stored.get(request.tenant, _existing(request))))


@ROUTES.add("DELETE", "/v1/subscriptions/{name}", "write", status=HTTPStatus.NO_CONTENT)
def delete_subscription(services: Services, request: Request) -> Response:
    """Delete a subscription; what waits is not sent.

    Its address gets no further message. One read and one transaction.
    """
    services.subscriptions.delete(request.tenant, _existing(request), request.now, services.store.audited)
    return Response(status=HTTPStatus.NO_CONTENT)


@ROUTES.add(
    "POST", "/v1/subscriptions/{name}/test", "write", response="SubscriptionView", status=HTTPStatus.ACCEPTED
)
def test_subscription(services: Services, request: Request) -> Response:
    """Have a test message sent, within two minutes.

    The message goes to the address even if nothing failed; `delivery.last_test` shows the result. While a test
    waits, another one is not added. One read and one transaction.
    """
    subscription = services.subscriptions.ask_test(
        request.tenant, _existing(request), request.now, services.store.audited
    )
    return Response(_subscription_view(subscription), HTTPStatus.ACCEPTED)


def _existing(request: Request) -> str:
    return request.path_id("name", "subscription", NAME_CHARS)


def _subscription_view(subscription: Subscription) -> dict[str, Any]:
    return {
        "name": subscription.name,
        **subscription.client_fields(),
        "created_at": rfc3339(subscription.created_at),
        "updated_at": rfc3339(subscription.updated_at),
        "delivery": _delivery(subscription.state),
    }


def _delivery(state: SubscriptionState) -> dict[str, Any]:
    shown = {
        "state": _delivery_state(state),
        "last_try": _delivery_view(state.last_sent),
        "last_test": _delivery_view(state.last_test),
        "test_waits": state.test is not None,
        "delivered_at": _instant(state.delivered_at),
        "failing_since": _instant(state.failing_since),
        "disabled_at": _instant(state.disabled_at),
        "quiet_until": _instant(state.quiet_until or None),
        "waiting": {
            **{
                kind: sum((problem.more or 1) * (problem.kind == kind) for problem in state.waiting.values())
                for kind in (FAILED, OVERDUE, NOT_RUNNING, TOO_LONG, TOO_SHORT, NO_SUCCESS)
            },
            "recovered": len(state.over),
        },
        "message": None,
    }
    if message := state.message:
        shown["message"] = {
            "id": message.message_id,
            "made_at": rfc3339(int(message.made_at)),
            "tries": message.tries,
            "next_try_at": rfc3339(int(message.next_at)),
        }
    return shown


def _delivery_state(state: SubscriptionState) -> str:
    if state.disabled_at is not None:
        return "disabled"
    if state.failing_since is not None:
        return "failing"
    return "working" if state.delivered_at is not None else "new"


def _delivery_view(result: DeliveryResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {"at": rfc3339(int(result.at)), "ok": result.ok, "error": result.error}


def _instant(at: float | None) -> str | None:
    return None if at is None else rfc3339(int(at))


@ROUTES.add("GET", "/v1/webhook-secret", "admin", response="WebhookSecret")
def get_webhook_secret(services: Services, request: Request) -> Response:
    """The secret that signs calls of HTTP targets; made when first asked for.

    HTTP targets and webhooks verify signatures with it, as Standard Webhooks describes. One read; the first request
    writes.
    """
    return Response(
        {"secret": services.webhook_secrets.shown(request.tenant, request.now, by=request.credential.by)}
    )


@ROUTES.add("POST", "/v1/webhook-secret/rotate", "admin", response="WebhookSecret", repeatable=False)
def rotate_webhook_secret(services: Services, request: Request) -> Response:
    """A new secret; the one before goes on signing for a day.

    Calls are signed with both secrets for 24 hours. `conflict`: three earlier secrets still sign. One read and one
    transaction.
    """
    return Response(
        {"secret": services.webhook_secrets.rotate(request.tenant, request.now, by=request.credential.by)}
    )
