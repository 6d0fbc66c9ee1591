"""A deployed API on an embedded AWS, and the bare handler behind the same gateway."""

from __future__ import annotations

import io
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from benchmarks import bare_api
from common.platform.tenants import Tenants
from common.storage.table import Table
from scripts.demo.stage import Stage
from scripts.embedded import Embedded, deploy, kill, start
from scripts.embedded.deployment import client

_NAME = "bare-api"
LISTED = 20
_TENANTS = (bare_api.TENANT, bare_api.MAKER)


def definition(target: str) -> dict[str, Any]:
    """A job with distant fire times: none of its executions is enqueued."""
    return {
        "schedule": {"cron": "30 2 1 1 *", "timezone": "Europe/Paris"},
        "target": {"kind": "lambda", "arn": target},
        "payload": {"customer": 42, "report": "nightly"},
        "retry": {"max_attempts": 3, "base_s": 30},
        "tags": ["nightly"],
    }


@dataclass
class Served:
    """Requests to both over one kept connection, as a client of either would send them."""

    http: httpx.Client
    keys: Mapping[str, str]
    target: str

    def __post_init__(self) -> None:
        self._number = count()

    def took_s(self, tenant: str, method: str, path: str, body: Any = None) -> float:
        """How long one request takes. `{n}` in the path is a new number each time."""
        path = path.replace("{n}", str(next(self._number)))
        headers = {"authorization": f"Bearer {self.keys[tenant]}"}
        began = time.perf_counter()
        answer = self.http.request(method, path, json=body, headers=headers)
        took_s = time.perf_counter() - began
        answer.raise_for_status()
        return took_s


@contextmanager
def served() -> Iterator[Served]:
    """Both on a new embedded AWS, with the jobs that are read."""
    with tempfile.TemporaryDirectory(prefix="minute8-bench-") as directory:
        try:
            embedded = deploy(start(Path(directory), 0, tied=True), stage="local")
            _deploy_bare(embedded)
            stage = Stage(embedded.env(), "local")
            target = stage.deploy_target()
            stage.allow(_TENANTS, target)
            assert embedded.api_url
            keys = {tenant: _key(embedded, tenant) for tenant in _TENANTS}
            with httpx.Client(base_url=embedded.api_url, timeout=60) as http:
                both = Served(http, keys, target)
                for n in range(LISTED):
                    both.took_s(bare_api.TENANT, "PUT", f"/v1/jobs/listed-{n:02}", definition(target))
                yield both
        finally:
            kill(Path(directory))


def _key(embedded: Embedded, tenant: str) -> str:
    tenants, now = Tenants(Table(client(embedded, "dynamodb"), "minute8-local-tenants")), time.time()
    tenants.edit(tenant, {"quotas": {"requests_per_minute": 1_000_000}}, now)
    return tenants.api_keys.create_key(tenant, "write", now)[0]


def _deploy_bare(embedded: Embedded) -> None:
    functions, gateway = client(embedded, "lambda"), client(embedded, "apigatewayv2")
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.write(str(bare_api.__file__), "bare_api.py")
    stock = functions.get_function_configuration(FunctionName="minute8-local-api")
    arn = functions.create_function(
        FunctionName=_NAME,
        Runtime=stock["Runtime"],
        Handler="bare_api.handle",
        Role=stock["Role"],
        MemorySize=stock["MemorySize"],
        Timeout=29,
        Code={"ZipFile": package.getvalue()},
    )["FunctionArn"]
    (api,) = [api["ApiId"] for api in gateway.get_apis()["Items"] if api["Name"] == "minute8-local-api"]
    integration = gateway.create_integration(
        ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="2.0"
    )["IntegrationId"]
    gateway.create_route(ApiId=api, RouteKey="ANY /bare/{proxy+}", Target=f"integrations/{integration}")
    functions.add_permission(
        FunctionName=_NAME,
        StatementId="gateway",
        Action="lambda:InvokeFunction",
        Principal="apigateway.amazonaws.com",
    )
