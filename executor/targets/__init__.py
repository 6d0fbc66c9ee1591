"""The kinds of target, one file each; this table lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from common.runs import Outcome
from executor.targets import lambda_function


@dataclass(frozen=True, slots=True)
class Kind:
    """How a kind of target is called, and whether the call tells how the work ended.

    `call(target, event, timeout_s)` returns the outcome and raises nothing that a target can cause.
    """

    call: Callable[[Mapping[str, Any], Mapping[str, Any], float], Outcome]
    is_awaited: Callable[[Mapping[str, Any]], bool]


KINDS: Mapping[str, Kind] = {
    "lambda": Kind(lambda_function.call, lambda_function.is_awaited),
}
