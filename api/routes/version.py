"""The version that answers. It needs no key, as the OpenAPI document needs none."""

from __future__ import annotations

from api.http.requests import Request
from api.http.routing import Reply, Route
from api.services import Services
from common.version import VERSION


def version(services: Services, request: Request) -> Reply:
    """GET /v1"""
    return Reply({"version": VERSION})


ROUTES = (Route("GET", "/v1", "get_version", version, None, "The version", "Version"),)
