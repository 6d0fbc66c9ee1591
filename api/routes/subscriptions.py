"""The routes of subscriptions: addresses that get messages about failures, recoveries and overdue jobs."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from api.http.requests import Request
from api.http.routing import Reply, Route
from api.services import Services
from common.notices.state import FAILED, OVERDUE, Sent, State
from common.notices.subscription import Subscription
from common.registration.subscriptions import NAME_CHARS
from common.timing.instants import rfc3339


def list_all(services: Services, request: Request) -> Reply:
    """GET /v1/subscriptions"""
    found = services.subscriptions.stored.of_tenant(request.tenant)
    return Reply({"subscriptions": [_view(one) for one in found]})


def put(services: Services, request: Request) -> Reply:
    """PUT /v1/subscriptions/{name}"""
    stored = services.subscriptions.put(
        request.tenant, request.path["name"], request.object(), request.now, services.store.audited
    )
    return Reply(_view(stored), HTTPStatus.CREATED if stored.version == 1 else HTTPStatus.OK)


def get(services: Services, request: Request) -> Reply:
    """GET /v1/subscriptions/{name}"""
    return Reply(_view(services.subscriptions.stored.get(request.tenant, _existing(request))))


def delete(services: Services, request: Request) -> Reply:
    """DELETE /v1/subscriptions/{name}"""
    services.subscriptions.delete(request.tenant, _existing(request), request.now, services.store.audited)
    return Reply(status=HTTPStatus.NO_CONTENT)


def test(services: Services, request: Request) -> Reply:
    """POST /v1/subscriptions/{name}/test"""
    asked = services.subscriptions.ask_test(
        request.tenant, _existing(request), request.now, services.store.audited
    )
    return Reply(_view(asked), HTTPStatus.ACCEPTED)


def _existing(request: Request) -> str:
    return request.path_id("name", "subscription", NAME_CHARS)


def _view(subscription: Subscription) -> dict[str, Any]:
    return {
        "name": subscription.name,
        **subscription.given(),
        "created_at": rfc3339(subscription.created_at),
        "updated_at": rfc3339(subscription.updated_at),
        "delivery": _delivery(subscription.state),
    }


def _delivery(state: State) -> dict[str, Any]:
    shown = {
        "state": _word(state),
        "last_try": _sent(state.last_sent),
        "last_test": _sent(state.last_test),
        "test_waits": state.test is not None,
        "delivered_at": _instant(state.delivered_at),
        "failing_since": _instant(state.failing_since),
        "disabled_at": _instant(state.disabled_at),
        "quiet_until": _instant(state.quiet_until or None),
        "waiting": {
            "failed": sum(one.kind == FAILED for one in state.waiting.values()),
            "overdue": sum(one.kind == OVERDUE for one in state.waiting.values()),
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


def _word(state: State) -> str:
    if state.disabled_at is not None:
        return "disabled"
    if state.failing_since is not None:
        return "failing"
    return "working" if state.delivered_at is not None else "new"


def _sent(result: Sent | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {"at": rfc3339(int(result.at)), "ok": result.ok, "error": result.error}


def _instant(at: float | None) -> str | None:
    return None if at is None else rfc3339(int(at))


ROUTES = (
    Route(
        "GET", "/v1/subscriptions", "list_subscriptions", list_all, "read",
        "All addresses that get messages about failures, recoveries and overdue jobs", "SubscriptionList",
    ),
    Route(
        "GET", "/v1/subscriptions/{name}", "get_subscription", get, "read",
        "A subscription, and how its deliveries went", "SubscriptionView",
    ),
    Route(
        "PUT", "/v1/subscriptions/{name}", "put_subscription", put, "write",
        "Create or replace a subscription; a disabled address is enabled again", "SubscriptionView",
        also=HTTPStatus.CREATED, takes="NewSubscription",
    ),
    Route(
        "DELETE", "/v1/subscriptions/{name}", "delete_subscription", delete, "write",
        "Delete a subscription; what waits is not sent", "", HTTPStatus.NO_CONTENT,
    ),
    Route(
        "POST", "/v1/subscriptions/{name}/test", "test_subscription", test, "write",
        "Have a test message sent, within two minutes", "SubscriptionView", HTTPStatus.ACCEPTED,
    ),
)  # fmt: skip
