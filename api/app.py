"""The API put together: each route behind the same guard, every error an answer."""

from __future__ import annotations

import json
import re
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from api.http.openapi import document
from api.http.problems import CONTENT_TYPE, MethodNotAllowed, NoSuchRoute, Problem, problem_of
from api.http.requests import Request, bearer, raw_body
from api.http.routing import JSON, Reply, Route
from api.routes import (
    audit,
    bulk,
    calendars,
    deletions,
    jobs,
    keys,
    manual,
    runs,
    schedules,
    summaries,
    tenant,
    tenants,
    webhooks,
)
from api.services import Services
from common import telemetry
from common.errors import Forbidden, InvalidInput, Unauthenticated, shown
from common.jobs.ledger import require_active
from common.platform.api_keys import OPERATOR
from common.platform.tenants import Credential, Role
from common.tenants.rules import ACTIVE, SUSPENDED


def openapi(services: Services, request: Request) -> Reply:
    """GET /v1/openapi.json"""
    return Reply(_document())


ROUTES: tuple[Route, ...] = (
    *jobs.ROUTES,
    *bulk.ROUTES,
    *runs.ROUTES,
    *summaries.ROUTES,
    *manual.ROUTES,
    *calendars.ROUTES,
    *schedules.ROUTES,
    *tenant.ROUTES,
    *webhooks.ROUTES,
    *keys.ROUTES,
    *tenants.ROUTES,
    *deletions.ROUTES,
    *audit.ROUTES,
    Route("GET", "/v1/openapi.json", "get_openapi", openapi, None, "This document", "OpenApi"),
)

# Who asks for what everybody may see. It can be no tenant's id.
_NOBODY = Credential(tenant="", role="read", key_id="")
_PARAMETER = re.compile(r"\{(\w+)\}")


@cache
def _document() -> dict[str, Any]:
    return document(ROUTES)


def build(services: Services) -> APIGatewayHttpResolver:
    """The resolver with all routes."""
    app = APIGatewayHttpResolver()
    for route in ROUTES:
        app.route(_PARAMETER.sub(r"<\1>", route.path), method=route.method)(_endpoint(app, services, route))

    @app.not_found
    def not_found(_: Exception) -> Response[str]:
        return _problem(_refused(app), _request_id(app))

    return app


def _endpoint(app: APIGatewayHttpResolver, services: Services, route: Route) -> Any:
    def answer(**path: str) -> Response[str]:
        request_id = _request_id(app)
        try:
            request = _request(app, services, route, path)
            return _response(route.answer(services.acting_for(request.credential), request), request_id)
        except Exception as error:  # noqa: BLE001  whatever it is, the client gets a problem document
            return _problem(error, request_id)

    # Powertools tells routes apart in its warnings by their functions' names.
    answer.__name__ = route.name
    return answer


def _request(app: APIGatewayHttpResolver, services: Services, route: Route, path: dict[str, str]) -> Request:
    """The guard: who it is, whether they may, and whether it is a request to this route at all."""
    event = app.current_event
    headers = {name.lower(): value for name, value in (event.raw_event.get("headers") or {}).items()}
    now = services.clock.now()
    credential = _NOBODY
    if route.role is not None:
        credential = services.authenticate(bearer(headers), now)
        _check_tenant(services, credential, route, route.role, now)
    query = event.raw_event.get("queryStringParameters") or {}
    known = [parameter.name for parameter in route.query]
    if unknown := sorted(set(query) - set(known)):
        raise InvalidInput(
            unknown[0], "is no parameter here", value=query[unknown[0]], accepted=", ".join(known) or "none"
        )
    return Request(
        credential=credential,
        now=now,
        # Some gateways decode the path and some do not. No id holds a %, so that decoding twice harms nothing.
        path={name: unquote(value) for name, value in path.items()},
        query=query,
        headers=headers,
        body=raw_body(
            event.raw_event.get("body"), bool(event.raw_event.get("isBase64Encoded")), route.longest_body
        ),
    )


def _check_tenant(services: Services, credential: Credential, route: Route, needed: Role, now: float) -> None:
    """Whether the key's role, its tenant's state and the rate of its requests allow the route."""
    if credential.role != OPERATOR:
        rules = services.known_tenants.rules(credential.tenant, now)
        if rules is None or rules.state not in (ACTIVE, SUSPENDED):
            raise Unauthenticated  # its tenant is gone, or never was one
        services.request_rate.take(credential.tenant, rules.quotas.requests_per_minute, now, route.weight)
        if credential.may(needed) and not (needed == "read" or route.while_suspended):
            require_active(rules, credential.tenant)
    if not credential.may(needed):
        raise Forbidden(credential.role, needed)


def _refused(app: APIGatewayHttpResolver) -> Exception:
    """Why no route took the request."""
    path, method = app.current_event.path, app.current_event.http_method
    allowed = [route.method for route in ROUTES if re.fullmatch(_PARAMETER.sub(r"[^/]+", route.path), path)]
    # A path with characters that no id can have matches here only: Powertools' patterns leave it out.
    if not allowed or method in allowed:
        return NoSuchRoute(f"nothing is at {shown(path)}")
    return MethodNotAllowed(method, sorted(allowed))


def _response(reply: Reply, request_id: str) -> Response[str]:
    empty = reply.status == HTTPStatus.NO_CONTENT
    body = _json(reply.body) if reply.content_type == JSON else str(reply.body)
    return Response(
        status_code=reply.status.value,
        content_type=None if empty else reply.content_type,
        body="" if empty else body,  # a gateway may refuse an answer whose body is None
        headers={**_headers(request_id), **reply.headers},
    )


def _problem(error: Exception, request_id: str) -> Response[str]:
    problem: Problem = problem_of(error, request_id)
    if problem.kind.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        telemetry.logger().error("request failed", request_id=request_id, exc_info=error)
    return Response(
        status_code=problem.kind.status.value,
        content_type=CONTENT_TYPE,
        body=_json(problem.body),
        headers={**_headers(request_id), **problem.headers},
    )


def _headers(request_id: str) -> dict[str, str | list[str]]:
    return {"X-Request-Id": request_id, "Cache-Control": "no-store"}


def _request_id(app: APIGatewayHttpResolver) -> str:
    return str((app.current_event.raw_event.get("requestContext") or {}).get("requestId") or "")


def _json(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
