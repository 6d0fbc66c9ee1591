"""The embedded AWS has room for 2,500 tenants' environments per 1,000 of concurrency."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.embedded.tenants import Environments, install


def test_tenant_2501_is_throttled_and_gets_room_when_another_has_been_idle() -> None:
    environments = Environments(2_500)
    assert all(environments.takes("f", f"t{number}", now=float(number)) for number in range(2_500))
    assert not environments.takes("f", "t2500", now=599.0)
    assert environments.takes("f", "t7", now=599.0)  # it has its own
    assert not environments.takes("g", "t7", now=599.0)  # which is not the other function's
    assert environments.takes("f", "t2500", now=600.0)
    assert not environments.takes("f", "t2501", now=600.0)


def test_a_call_for_which_there_is_no_room_gets_429(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMBDA_ACCOUNT_CONCURRENCY", "1")

    async def invoke(*_: Any, **__: Any) -> int:
        return 200

    service = SimpleNamespace(
        _invoke=invoke,
        _execute_function_with_config_scope=None,
        invoke_async_with_retry=None,
        _functions={"f": {"config": {"TenancyConfig": {"TenantIsolationMode": "PER_TENANT"}}}},
        error_response_json=lambda name, _, status: (name, status),
    )
    install(service, SimpleNamespace(_worker_key=None, _PYTHON_WORKER_SCRIPT=""))

    def call(tenant: str) -> Any:
        return asyncio.run(service._invoke("f", {}, {"x-amz-tenant-id": tenant}))

    assert [call(tenant) for tenant in ("a", "b", "a", "c")] == [
        200,
        200,
        200,
        ("TooManyRequestsException", 429),
    ]
