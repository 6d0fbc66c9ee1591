"""Functions that isolate their tenants, which ministack lacks: a process for each tenant, and its id in the context.

The account has room for a number of tenants' processes; a call for the next tenant is throttled.
https://docs.aws.amazon.com/lambda/latest/dg/tenant-isolation.html
"""

from __future__ import annotations

import os
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

_REFUSAL: Final = (
    "Tenant ID configuration not specified or passed to a function when tenant isolation is not enabled."
)
# Tells a tenant's worker whose it is. Names that begin with _ are Lambda's own.
_VARIABLE: Final = "_TENANT_ID"

# https://docs.aws.amazon.com/lambda/latest/dg/tenant-isolation-troubleshooting.html
_PER_1000, _ACCOUNT = 2_500, 1_000
# AWS does not say how long an environment that serves nobody stays.
_IDLE_S: Final = 600.0

_tenant: ContextVar[str] = ContextVar("_tenant", default="")


@dataclass
class Environments:
    """The environments of tenants that an account has: at most so many, each gone when it served nobody for a while."""

    most: int
    _used_at: dict[tuple[str, str], float] = field(default_factory=dict)

    @classmethod
    def of_account(cls) -> Environments:
        concurrency = int(os.environ.get("LAMBDA_ACCOUNT_CONCURRENCY") or 0) or _ACCOUNT
        return cls(concurrency * _PER_1000 // 1_000)

    def takes(self, function: str, tenant: str, now: float) -> bool:
        """Whether the tenant has an environment of the function, or gets one."""
        environment = (function, tenant)
        if environment not in self._used_at and len(self._used_at) >= self.most:
            self._used_at = {other: at for other, at in self._used_at.items() if at > now - _IDLE_S}
            if len(self._used_at) >= self.most:
                return False
        self._used_at[environment] = now
        return True


def install(lambda_svc: Any, lambda_runtime: Any) -> None:
    """Into the server's modules ministack.services.lambda_svc and ministack.core.lambda_runtime."""
    invoke, execute = lambda_svc._invoke, lambda_svc._execute_function_with_config_scope
    environments = Environments.of_account()
    retried, key_of = lambda_svc.invoke_async_with_retry, lambda_runtime._worker_key

    async def invoked(name: str, event: Any, headers: Any, *more: Any, **named: Any) -> Any:
        tenant = str(headers.get("x-amz-tenant-id", ""))
        config = (lambda_svc._functions.get(name) or {}).get("config") or {}
        isolates = (config.get("TenancyConfig") or {}).get("TenantIsolationMode") == "PER_TENANT"
        if isolates != bool(tenant):
            return lambda_svc.error_response_json("InvalidParameterValueException", _REFUSAL, 400)
        if tenant and not environments.takes(name, tenant, time.monotonic()):
            return lambda_svc.error_response_json("TooManyRequestsException", "Rate exceeded", 429)
        token = _tenant.set(tenant)
        try:
            return await invoke(name, event, headers, *more, **named)
        finally:
            _tenant.reset(token)

    def of_tenant(record: dict[str, Any]) -> dict[str, Any]:
        if not (tenant := _tenant.get()):
            return record
        config = record["config"]
        variables = {**config.get("Environment", {}).get("Variables", {}), _VARIABLE: tenant}
        return {**record, "config": {**config, "Environment": {"Variables": variables}}}

    def worker_key(name: str, config: dict[str, Any], qualifier: str) -> str:
        tenant = config.get("Environment", {}).get("Variables", {}).get(_VARIABLE, "")
        return str(key_of(name, config, f"{qualifier}@{tenant}" if tenant else qualifier))

    lambda_svc._invoke = invoked
    lambda_svc._execute_function_with_config_scope = lambda record, event: execute(of_tenant(record), event)
    lambda_svc.invoke_async_with_retry = lambda record, event: retried(of_tenant(record), event)
    lambda_runtime._worker_key = worker_key
    script = lambda_runtime._PYTHON_WORKER_SCRIPT
    stated = f'"identity": None, "tenant_id": os.environ.get("{_VARIABLE}"),'
    lambda_runtime._PYTHON_WORKER_SCRIPT = script.replace('"identity": None,', stated)
