"""The routes of the secret that signs calls of HTTP targets. Only admin keys may read it."""

from __future__ import annotations

from api.http.requests import Request
from api.http.routing import Reply, Route
from api.services import Services


def get(services: Services, request: Request) -> Reply:
    """GET /v1/webhook-secret"""
    return Reply(
        {"secret": services.webhook_secrets.ensure(request.tenant, request.now, by=request.credential.by)}
    )


def rotate(services: Services, request: Request) -> Reply:
    """POST /v1/webhook-secret/rotate"""
    return Reply(
        {"secret": services.webhook_secrets.rotate(request.tenant, request.now, by=request.credential.by)}
    )


ROUTES = (
    Route(
        "GET", "/v1/webhook-secret", "get_webhook_secret", get, "admin",
        "The secret that signs calls of HTTP targets; made when first asked for", "WebhookSecret",
    ),
    Route(
        "POST", "/v1/webhook-secret/rotate", "rotate_webhook_secret", rotate, "admin",
        "A new secret; the one before goes on signing for a day", "WebhookSecret",
    ),
)  # fmt: skip
