"""The API: every route passes the same checks, and every error becomes an answer."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from common import telemetry
from common.errors import InvalidInput
from common.platform.api_keys import Credential
from common.version import VERSION
from minute8.api import console
from minute8.api.http.paging import check_range
from minute8.api.http.problems import CONTENT_TYPE, KINDS, Problem, problem_of
from minute8.api.http.refusals import log_refused
from minute8.api.http.representation import compressed, etag_of, is_known
from minute8.api.http.requests import Request, bearer, raw_body
from minute8.api.http.routing import JSON, Response, Route, Routes
from minute8.api.routes import (
    bulk,
    calendars,
    expected,
    failures,
    jobs,
    manual,
    overview,
    platform,
    platform_overview,
    runs,
    secrets,
    subscriptions,
    tenants,
    upcoming,
)
from minute8.api.services import Services

Event = dict[str, Any]
"""What API Gateway sends and takes, payload format 2.0."""

ROUTES = Routes(
    jobs.ROUTES
    | bulk.ROUTES
    | runs.ROUTES
    | failures.ROUTES
    | expected.ROUTES
    | upcoming.ROUTES
    | overview.ROUTES
    | manual.ROUTES
    | calendars.ROUTES
    | secrets.ROUTES
    | subscriptions.ROUTES
    | tenants.ROUTES
    | platform.ROUTES
    | platform_overview.ROUTES
)


@ROUTES.add("GET", "/v1", None, response="Version")
def get_version(services: Services, request: Request) -> Response:
    """The version.

    The version of Minute8 that answers, as `minute8 --version` prints the command's. No read.
    """
    return Response({"version": VERSION})


@ROUTES.add("GET", "/v1/openapi.json", None, response="OpenApi")
def get_openapi(services: Services, request: Request) -> Response:
    """This document.

    OpenAPI 3.1, made from the routes and shapes of the version that answers. No read.
    """
    return Response(_document())


@cache
def _document() -> dict[str, Any]:
    from minute8.api.http.openapi import document  # only this route needs it

    return document(ROUTES)


# The base path of EventBridge Scheduler's API, whose clients sign their requests.
EVENTBRIDGE: Final = "/eventbridge/"

# Browsers ask this host over https alone for a year. (Over http, as on a laptop, they pass it over.)
_HTTPS_ALONE: Final = {"Strict-Transport-Security": "max-age=31536000"}
# The credential of a request to a public route. Its empty tenant cannot be an id.
_NOBODY = Credential(tenant="", role="read", key_id="")


def resolve(services: Services, event: Event) -> Event:
    """The answer to a request, which is charged to its tenant. Never raises."""
    accepts = str((event.get("headers") or {}).get("accept-encoding", ""))
    answer = compressed(_resolved(services, event, accepts), accepts)
    return {**answer, "headers": {**answer["headers"], **_HTTPS_ALONE}}


def _resolved(services: Services, event: Event, accepts: str) -> Event:
    request_id, credential, route = _request_id(event), _NOBODY, None
    try:
        method, place = event["requestContext"]["http"]["method"], _path(event)
        if console.is_asked_for(place):
            return console.answer(method, place, accepts, issuer_pages=services.issuer_pages)
        with services.weighed():
            if place.startswith(EVENTBRIDGE):
                from minute8.eventbridge.api import endpoint  # only its own clients need it

                return endpoint.answer(services, event, place.removeprefix(EVENTBRIDGE))
            route, path = ROUTES.find(method, place)
            now = services.clock.now()
            if route.role is not None:
                credential = services.authenticate(bearer(_headers_of(event)), now)
            return _routed(services, event, route, path, credential, now)
    except Exception as error:  # noqa: BLE001  the client gets a problem document for any error
        problem = problem_of(error, request_id)
        if route:
            log_refused(credential, f"{route.method} {route.path}", problem.kind.status)
        return _refusal(problem, error, request_id)


def resolve_for(services: Services, credential: Credential, event: Event) -> Event:
    """The answer to a request of somebody whom the calling process knows. Raises what is no refusal."""
    request_id = _request_id(event)
    try:
        with services.weighed():
            route, path = ROUTES.find(event["requestContext"]["http"]["method"], _path(event))
            return _routed(services, event, route, path, credential, services.clock.now())
    except tuple(KINDS) as refusal:
        return _refusal(problem_of(refusal, request_id), refusal, request_id)


def _routed(
    services: Services, event: Event, route: Route, path: dict[str, str], credential: Credential, now: float
) -> Event:
    """What the route answers to the request."""
    request = _request(services, event, route, path, credential, now)
    reply = ROUTES.answer(route, services.acting_for(request.credential), request)
    return _response(route, reply, _request_id(event), request.headers.get("if-none-match"))


def _request_id(event: Event) -> str:
    return str((event.get("requestContext") or {}).get("requestId") or "")


def _headers_of(event: Event) -> dict[str, str]:
    return {name.lower(): value for name, value in (event.get("headers") or {}).items()}


def _path(event: Event) -> str:
    """The path of a request, without the gateway's stage."""
    stage = event["requestContext"].get("stage", "$default")
    return str(event["rawPath"] if stage == "$default" else event["rawPath"].removeprefix(f"/{stage}"))


def _request(
    services: Services,
    event: Event,
    route: Route,
    path: dict[str, str],
    credential: Credential,
    now: float,
) -> Request:
    """Authorize the request, and check that the route accepts it."""
    if route.role is not None:
        services.admit(
            credential,
            route.role,
            now,
            weight=route.weight,
            while_suspended=route.while_suspended,
        )
    query = event.get("queryStringParameters") or {}
    known = [parameter.name for parameter in route.query]
    if unknown := sorted(set(query) - set(known)):
        raise InvalidInput(
            unknown[0],
            "is not a known parameter",
            value=query[unknown[0]],
            accepted=", ".join(known) or "none",
        )
    check_range(query)
    return Request(
        credential=credential,
        now=now,
        # Some gateways decode the path and others do not. No id contains %, so decoding twice is harmless.
        path={name: unquote(value) for name, value in path.items()},
        query=query,
        headers=_headers_of(event),
        body=raw_body(event.get("body"), bool(event.get("isBase64Encoded")), route.max_body_bytes),
        shape=route.body,
        body_type=route.body_type,
        body_optional=route.body_optional,
    )


def _response(route: Route, reply: Response, request_id: str, known: str | None) -> Event:
    headers = {**_headers(request_id), **reply.headers}
    if reply.status == HTTPStatus.NO_CONTENT:
        return _answer(reply.status, headers, "")  # some gateways refuse an answer whose body is None
    body = _json(reply.body) if reply.content_type == JSON else str(reply.body)
    if route.is_revalidated:
        headers["ETag"] = etag_of(body if reply.version is None else reply.version)
        if known is not None and is_known(headers["ETag"], known):
            return _answer(HTTPStatus.NOT_MODIFIED, headers, "")
    return _answer(reply.status, {"Content-Type": reply.content_type, **headers}, body)


def _refusal(problem: Problem, error: Exception, request_id: str) -> Event:
    if problem.kind.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        telemetry.logger().error("request failed", request_id=request_id, exc_info=error)
    headers = {"Content-Type": CONTENT_TYPE, **_headers(request_id), **problem.headers}
    return _answer(problem.kind.status, headers, _json(problem.body))


def _answer(status: HTTPStatus, headers: dict[str, str], body: str) -> Event:
    return {"statusCode": status.value, "headers": headers, "body": body, "isBase64Encoded": False}


def _headers(request_id: str) -> dict[str, str]:
    return {"X-Request-Id": request_id, "Cache-Control": "no-store"}


def _json(body: Any) -> str:
    return msgspec.json.encode(body).decode()
