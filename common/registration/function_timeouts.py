"""The own timeouts of Lambda functions, where the API's role may read them: how long a call's work can go on.

https://docs.aws.amazon.com/lambda/latest/api/API_GetFunctionConfiguration.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from common import telemetry
from common.clock import Clock

_KNOWN_FOR_S: Final = 600
_MAX_KNOWN: Final = 1_000


@dataclass(frozen=True, slots=True)
class FunctionTimeouts:
    """Remembers each answer, and each refusal, for ten minutes. `client` is of Lambda, and brief."""

    client: Callable[[], Any]
    clock: Clock
    _known: dict[str, tuple[int, float]] = field(default_factory=dict)

    def of(self, target: Mapping[str, Any]) -> int:
        """The timeout of the function that the target awaits, in seconds; 0: not known. Never raises.

        A function that is called with a role of the tenant's is another account's to read.
        """
        if target.get("invocation") != "RequestResponse" or target.get("role_arn"):
            return 0
        arn, now = str(target.get("arn")), self.clock.now()
        timeout_s, read_at = self._known.get(arn, (0, float("-inf")))
        if read_at + _KNOWN_FOR_S < now:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            timeout_s = self._read(arn)
            self._known[arn] = timeout_s, now
        return timeout_s

    def _read(self, arn: str) -> int:
        try:
            timeout_s = self.client().get_function_configuration(FunctionName=arn)["Timeout"]
        except Exception as error:  # noqa: BLE001  the job is registered without it
            telemetry.logger().info("timeout of a function not read", arn=arn, error=repr(error))
            return 0
        return timeout_s if isinstance(timeout_s, int) and timeout_s > 0 else 0
