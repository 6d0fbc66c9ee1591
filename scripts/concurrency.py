"""The concurrency that a stage has for itself. `make deploy` asks the account, and gives the answer as parameters.

AWS keeps a hundred unreserved: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from common.config import OFF

# An account with less has none to give away: a new one can have 10.
SMALLEST_ACCOUNT: Final = 1_000
LEFT_UNRESERVED: Final = 100
# The most that a queue's mapping takes.
_MAX_EXECUTORS: Final = 1_000
_FUNCTIONS: Final = ("executor", "api")


@dataclass(frozen=True, slots=True)
class Account:
    """The concurrency of an account in a region. `free`: what no function of others has reserved."""

    quota: int
    free: int


def account_of(client: Any, stage: str) -> Account:
    """What the account has. Raises what the client raises."""
    limit = client.get_account_settings()["AccountLimit"]
    own = sum(_reserved(client, f"minute8-{stage}-{name}") for name in _FUNCTIONS)
    return Account(limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"] + own)


def _reserved(client: Any, function: str) -> int:
    try:
        answer = client.get_function_concurrency(FunctionName=function)
    except client.exceptions.ResourceNotFoundException:
        return 0
    return int(answer.get("ReservedConcurrentExecutions", 0))


def parameters_for(account: Account, chosen: Collection[str]) -> dict[str, str]:
    """The parameters that depend on the account, without those that somebody has `chosen`. Pure.

    Half of a large account is the executor's own, if it is free, and a tenth the API's. The queue starts no more
    executors than there can be. Provisioned pollers may: with them the executor gets no part of its own.
    """
    params = {"accountConcurrency": str(account.quota)}
    free = account.free - LEFT_UNRESERVED
    shares = {
        "executorReservedConcurrency": min(account.quota // 2, _MAX_EXECUTORS),
        "apiReservedConcurrency": account.quota // 10,
    }
    if "maximumPollers" in chosen:
        del shares["executorReservedConcurrency"]
        params["executorReservedConcurrency"] = OFF
    for name, share in shares.items():
        fits = account.quota >= SMALLEST_ACCOUNT and share <= free
        params[name] = str(share) if fits and name not in chosen else OFF
        free -= share if params[name] != OFF else 0
    own = params["executorReservedConcurrency"]
    most = max(free, account.free // 2, 2) if own == OFF else int(own)
    params["maximumConcurrency"] = str(min(most, _MAX_EXECUTORS))
    return {name: value for name, value in params.items() if name not in chosen}


def described(account: Account, params: dict[str, str]) -> str:
    """What the stage gets, for who deploys it."""
    own, ceiling = (params.get(f"{name}ReservedConcurrency", OFF) for name in _FUNCTIONS)
    words = [f"the executor has {own} for itself"] if own != OFF else []
    words += [f"the API has at most {ceiling}"] if ceiling != OFF else []
    shared = "the functions share what others have not reserved"
    return f"Of the account's concurrency of {account.quota}, {' and '.join(words) or shared}"
