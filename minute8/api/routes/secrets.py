"""The routes of secrets: values that jobs name, and that no route returns."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from common.errors import InvalidInput
from common.ids import SECRET_NAME_CHARS
from common.tenants.secrets import Secret
from common.timing.instants import rfc3339
from minute8.api.http.requests import Request
from minute8.api.http.routing import A_THOUSAND_JOBS, Response, Routes
from minute8.api.services import Services

if TYPE_CHECKING:
    from minute8.api.shapes.secrets import NewSecret

ROUTES = Routes()


@ROUTES.add(
    "PUT",
    "/v1/secrets/{name}",
    "write",
    response="SecretView",
    other_status=HTTPStatus.CREATED,
    body="NewSecret",
)
def put_secret(services: Services, request: Request) -> Response:
    """Store a secret, or replace its value.

    Jobs name it as `secret://name`. No route returns the value. Calls use a new value within a minute. `conflict`: the
    tenant has 100 secrets, or the deployment keeps none. One call of KMS, one read and one transaction.
    """
    try:
        body: NewSecret = request.shaped()
    except InvalidInput as error:
        for problem in (error, *error.also):
            problem.value = ""  # it can be the secret, in a wrong place
        raise
    secret = services.secrets.put(request.tenant, request.path["name"], body.value, request.now)
    return Response(_view(secret), HTTPStatus.CREATED if secret.revision == 1 else HTTPStatus.OK)


@ROUTES.add("GET", "/v1/secrets", "read", response="SecretList")
def list_secrets(services: Services, request: Request) -> Response:
    """List secrets.

    All names, and when each value was last put; never a value. One query.
    """
    return Response({"secrets": [_view(secret) for secret in services.secrets.listed(request.tenant)]})


@ROUTES.add("DELETE", "/v1/secrets/{name}", "write", status=HTTPStatus.NO_CONTENT, weight=A_THOUSAND_JOBS)
def delete_secret(services: Services, request: Request) -> Response:
    """Delete a secret that no job names.

    `conflict`: a job names it; the problem lists three of them. Put another value to take the present one out of use.
    It reads the tenant's jobs, and takes one transaction.
    """
    name = request.path_id("name", "secret", SECRET_NAME_CHARS)
    services.secrets.delete(request.tenant, name, request.now)
    return Response(status=HTTPStatus.NO_CONTENT)


def _view(secret: Secret) -> dict[str, Any]:
    return {
        "name": secret.name,
        "revision": secret.revision,
        "created_at": rfc3339(secret.created_at),
        "updated_at": rfc3339(secret.updated_at),
    }
