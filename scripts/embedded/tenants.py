"""Functions that isolate their tenants, which ministack lacks: a process for each tenant, and its id in the context.

https://docs.aws.amazon.com/lambda/latest/dg/tenant-isolation.html
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

_REFUSAL: Final = (
    "Tenant ID configuration not specified or passed to a function when tenant isolation is not enabled."
)
# Tells a tenant's worker whose it is. Names that begin with _ are Lambda's own.
_VARIABLE: Final = "_TENANT_ID"

_tenant: ContextVar[str] = ContextVar("_tenant", default="")


def install(lambda_svc: Any, lambda_runtime: Any) -> None:
    """Into the server's modules ministack.services.lambda_svc and ministack.core.lambda_runtime."""
    invoke, execute = lambda_svc._invoke, lambda_svc._execute_function_with_config_scope
    retried, key_of = lambda_svc.invoke_async_with_retry, lambda_runtime._worker_key

    async def invoked(name: str, event: Any, headers: Any, *more: Any, **named: Any) -> Any:
        tenant = str(headers.get("x-amz-tenant-id", ""))
        config = (lambda_svc._functions.get(name) or {}).get("config") or {}
        isolates = (config.get("TenancyConfig") or {}).get("TenantIsolationMode") == "PER_TENANT"
        if isolates != bool(tenant):
            return lambda_svc.error_response_json("InvalidParameterValueException", _REFUSAL, 400)
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
