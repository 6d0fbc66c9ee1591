"""What Lambda says of the functions that jobs call, where the API's role may read it.

https://docs.aws.amazon.com/lambda/latest/api/API_GetFunctionConfiguration.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from common import telemetry
from common.cache import Cache
from common.clock import Clock
from common.errors import InvalidInput

_KNOWN_FOR_S: Final = 600
_MAX_KNOWN: Final = 1_000
_NOTHING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Functions:
    """Remembers each answer, and each refusal, for ten minutes. `client` is of Lambda, and brief."""

    client: Callable[[], Any]
    clock: Clock
    _known: Cache[str, Mapping[str, Any]] = field(default_factory=lambda: Cache(_KNOWN_FOR_S, _MAX_KNOWN))

    def timeout_s(self, target: Mapping[str, Any]) -> int:
        """The timeout of the function that the target awaits, in seconds; 0: not known. Never raises."""
        if target.get("invocation") != "RequestResponse":
            return 0
        timeout_s = self._of(target).get("Timeout")
        return timeout_s if isinstance(timeout_s, int) and timeout_s > 0 else 0

    def check(self, target: Mapping[str, Any]) -> None:
        """Whether the target says of its function what the function is. Raises InvalidInput."""
        if not (function := self._of(target)):
            return
        isolates = (function.get("TenancyConfig") or {}).get("TenantIsolationMode") == "PER_TENANT"
        if isolates != bool(target.get("tenant_isolation")):
            raise InvalidInput(
                "target.tenant_isolation",
                f"the function {'isolates' if isolates else 'does not isolate'} its tenants",
                value=bool(target.get("tenant_isolation")),
                accepted=str(isolates).lower(),
            )
        if target.get("durable") and not function.get("DurableConfig"):
            raise InvalidInput(
                "target.durable", "the function is not durable", value=True,
                accepted="false; or a function that was created with a DurableConfig",
            )  # fmt: skip

    def _of(self, target: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is known of the target's function; empty: nothing. With a role it is another account's to read."""
        if target.get("kind") != "lambda" or target.get("role_arn"):
            return _NOTHING
        arn, now = str(target.get("arn")), self.clock.now()
        if known := self._known.get(arn, now):
            return known.value
        function = self._read(arn)
        self._known.put(arn, function, now)
        return function

    def _read(self, arn: str) -> Mapping[str, Any]:
        try:
            answer = self.client().get_function_configuration(FunctionName=arn)
        except (BotoCoreError, ClientError) as error:  # the job is registered without it
            telemetry.logger().info("function not read", arn=arn, error=repr(error))
            return _NOTHING
        return {name: answer.get(name) for name in ("Timeout", "TenancyConfig", "DurableConfig")}
