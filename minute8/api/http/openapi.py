"""The OpenAPI document, from the routes and the shapes."""

from __future__ import annotations

import inspect
from http import HTTPStatus
from typing import Any

from common.declared import schemas
from common.errors import (
    AlreadyExists,
    Busy,
    Conflict,
    Forbidden,
    KeyReused,
    NotFound,
    QuotaExceeded,
    RateExceeded,
    RequestUnderWay,
    RevisionMismatch,
    TenantSuspended,
    Unauthenticated,
)
from common.ids import TENANT_ID_CHARS, id_pattern
from common.limits import CALENDAR_NAME_CHARS, JOB_ID_CHARS, NONCE_CHARS
from common.platform.api_keys import OPERATOR
from common.platform.dead_letters import QUEUES
from common.registration.bulk import BulkRefused, Unfinished
from minute8.api.http.problems import CONTENT_TYPE as PROBLEM
from minute8.api.http.problems import (
    KINDS,
    IssuerUnreachable,
    Kind,
    Malformed,
    MethodNotAllowed,
    NoSuchRoute,
    TooLarge,
    UnsupportedMediaType,
)
from minute8.api.http.routing import JSON, NDJSON, Handler, Route, Routes

_REF = "#/components/schemas/{name}"
# What each parameter is, and its pattern. Any other text is not found, or refused.
_PATH_PARAMETERS = {
    "job_id": ("The job's id.", id_pattern(JOB_ID_CHARS)),
    "execution_id": ("The run's execution id, `tenant:job:fire time:revision`.", "^[^:/]+:[^:/]+:[^/]+$"),
    "name": ("The calendar's name.", id_pattern(CALENDAR_NAME_CHARS)),
    "backfill_id": ("The backfill's id.", id_pattern(NONCE_CHARS)),
    "tenant_id": ("The tenant's id.", id_pattern(TENANT_ID_CHARS)),
    "key_id": ("The key's id, which is not the key.", "^[0-9a-f]{16}$"),
    "fingerprint": ("The fingerprint of the error.", "^[0-9a-f]{12}$"),
    "queue": ("The queue.", f"^({'|'.join(QUEUES)})$"),
}
_DESCRIPTION = """A multi-tenant cron: jobs, and the runs that they have made.

The tenant is the API key's. An operation's `x-minute8-role` is the role that the key needs: `read`, `write` and `admin`
may each do what those before them may; `operator` keys are the platform's, and do what no tenant's key does and nothing
else.

Instants are RFC 3339 in UTC and their names end in `_at`; durations are seconds and their names end in `_s`. Unknown
fields and parameters are refused. Refusals are problem documents (RFC 9457) with a stable
`type`, the field, its value, and what would be accepted."""
_SERVER = {
    "url": "https://{address}",
    "description": "A deployment. `make deploy` and `make up` print its address.",
    "variables": {
        "address": {
            "default": "abc.execute-api.eu-west-1.amazonaws.com",
            "description": "The API's host, and its base path if there is one.",
        }
    },
}
_SECURITY = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "m8_…",
        "description": "A key of a tenant, or a token (JWT).",
    },
    "operator_key": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "m8_…",
        "description": "A key of the platform's own.",
    },
}


def document(routes: Routes) -> dict[str, Any]:
    """OpenAPI 3.1."""
    from minute8.api.shapes import SHAPES

    request_shapes = {route.body for route in routes if route.body}
    response_shapes = {route.response for route in routes if route.response in SHAPES} | {"Problem"}
    names = sorted(request_shapes | response_shapes)
    _, components = schemas([SHAPES[name] for name in names], _REF)
    for name in names:
        if examples := vars(SHAPES[name]).get("examples"):
            components[name]["examples"] = examples
    for schema in components.values():
        kind = schema.get("properties", {}).get("kind", {"description": ""})
        kind.setdefault("description", schema["description"].partition(".")[0] + ".")
    named = {name: {"$ref": _REF.format(name=name)} for name in names}
    paths: dict[str, dict[str, Any]] = {}
    for route, handler in routes.items():
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, handler, named)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Minute8",
            "version": "1",
            "description": _DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [_SERVER],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": _SECURITY,
        },
    }


def _operation(route: Route, handler: Handler, named: dict[str, Any]) -> dict[str, Any]:
    summary, _, description = (inspect.getdoc(handler) or "").partition("\n")
    operation: dict[str, Any] = {
        "operationId": handler.__name__,
        "summary": summary.removesuffix("."),
        "description": f"{description.strip()}\n\n{_terms(route)}",
        "tags": [(route.path.split("/")[2:3] or ["version"])[0].removesuffix(".json")],
        "responses": _responses(route, summary.removesuffix("."), named),
    }
    if parameters := _parameters(route):
        operation["parameters"] = parameters
    if route.body:
        content = {route.body_type: {"schema": named[route.body]}}
        if route.body_type == NDJSON:  # generators of clients know arrays better than NDJSON
            content[JSON] = {"schema": {"type": "array", "items": named[route.body]}}
        operation["requestBody"] = {"content": content, "required": not route.body_optional}
    if route.role is not None:
        operation["security"] = [{"operator_key" if route.role == OPERATOR else "key": []}]
        operation["x-minute8-role"] = route.role
    return operation


def _terms(route: Route) -> str:
    """What each request of the route needs and costs, and how it can be refused."""
    if route.role is None:
        needs, costs = "no key", "It is not counted."
    elif route.role == OPERATOR:
        needs, costs = "an operator key", "It is not counted."
    else:
        needs = f"a key or token with the role `{route.role}`" + (
            "" if route.role == "admin" else " or higher"
        )
        counted = "one request" if route.weight == 1 else f"{route.weight} requests"
        costs = f"It counts as {counted}, or as more by what it costs."
        if route.role == "read" or route.while_suspended:
            costs += " A suspended tenant may call it."
    names = ", ".join(f"`{kind.name}`" for kind in _refusals(route))
    return f"Needs {needs}. {costs}\n\nProblems: {names}."


def _refusals(route: Route) -> list[Kind]:
    """How the route can refuse a request."""
    return [kind for error, kind in KINDS.items() if _is_possible(error, route)]


def _is_possible(error: type[Exception], route: Route) -> bool:
    """Whether the route can refuse a request for this reason."""
    writes = route.method != "GET" and route.role != "read"
    of_tenant = route.role not in (None, OPERATOR)
    conditions: dict[type[Exception], bool] = {
        Unauthenticated: route.role is not None or route.body == "Callback",  # which has a token
        Forbidden: route.role is not None,
        RateExceeded: of_tenant,
        IssuerUnreachable: of_tenant,
        TenantSuspended: of_tenant and route.role != "read" and not route.while_suspended,
        QuotaExceeded: of_tenant and writes,
        Malformed: bool(route.body),
        TooLarge: bool(route.body),
        UnsupportedMediaType: bool(route.body),
        NotFound: writes or "{" in route.path,
        Conflict: writes,
        Busy: writes or route.role is not None,
        AlreadyExists: route.method == "POST" and route.body in ("NewJob", "NewTenant"),
        RevisionMismatch: route.if_match or route.if_none_match,
        RequestUnderWay: route.idempotency_key,
        KeyReused: route.idempotency_key,
        BulkRefused: route.body_type == NDJSON,
        Unfinished: route.body_type == NDJSON,
        NoSuchRoute: False,
        MethodNotAllowed: False,
    }
    return conditions.get(error, True)


def _parameters(route: Route) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_PARAMETERS[name][0],
            "schema": {"type": "string", "pattern": _PATH_PARAMETERS[name][1]},
        }
        for name in route.parameters
    ]
    parameters += [
        {"name": query.name, "in": "query", "description": query.description, "schema": dict(query.schema)}
        for query in route.query
    ]
    if route.if_match:
        parameters.append(
            {
                "name": "If-Match",
                "in": "header",
                "description": "Only if this is still the current revision.",
                "schema": {"type": "string", "pattern": r'^((W/)?"\d{1,18}"|\d{1,18})$', "examples": ['"7"']},
            }
        )
    if route.is_revalidated:
        parameters.append(
            {
                "name": "If-None-Match",
                "in": "header",
                "description": "The `ETag` of an earlier answer: 304 without a body if it would be the same.",
                "schema": {"type": "string", "examples": ['W/"0a1b2c3d4e5f607182"']},
            }
        )
    if route.if_none_match:
        parameters.append(
            {
                "name": "If-None-Match",
                "in": "header",
                "description": "`*`: only if it does not exist yet.",
                "schema": {"type": "string", "enum": ["*"]},
            }
        )
    if route.idempotency_key:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "Sent again with the same key and body within a day, it is answered as the first time.",
                "schema": {
                    "type": "string",
                    "pattern": r'^("[ !#-\[\]-~]{1,255}"|[!#-\[\]-~]{1,255})$',
                    "examples": ['"8e03978e-40d5-43e8-bc93-6894a57f9324"'],
                },
            }
        )
    return parameters


def _responses(route: Route, summary: str, named: dict[str, Any]) -> dict[str, Any]:
    done: dict[str, Any] = {"description": summary}
    if route.response:
        done["content"] = {route.response_type: {"schema": named.get(route.response, {"type": "object"})}}
    if route.response_type == NDJSON:
        link = "The next page: the same request with a `cursor`, `rel` is `next`. Missing on the last page."
        done["headers"] = {"Link": {"description": link, "schema": {"type": "string"}}}
    responses = {str(route.status.value): done}
    if route.other_status is not None:
        responses[str(route.other_status.value)] = done
    if route.is_revalidated:
        responses["304"] = {"description": "The answer that If-None-Match names is still the same"}
    statuses: dict[HTTPStatus, list[Kind]] = {}
    for kind in _refusals(route):
        statuses.setdefault(kind.status, []).append(kind)
    for status, kinds in sorted(statuses.items()):
        responses[str(status.value)] = {
            "description": " / ".join(kind.title for kind in kinds),
            "content": {PROBLEM: {"schema": named["Problem"]}},
        }
    return responses
