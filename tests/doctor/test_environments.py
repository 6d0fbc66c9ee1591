"""The doctor says when the environments of isolated tenants come near the account's room."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from common.platform.tenants import Tenants
from common.storage import keys
from minute8.cli.doctor import functions
from tests.worlds import ARN, World

OTHER = "arn:aws:lambda:us-east-1:123456789012:function:shared"


def deployment(world: World, isolating: tuple[str, ...]) -> Any:
    """A stage in an account with a concurrency of 10, so with room for 25 environments of tenants."""
    pages = [
        {"Functions": [{"FunctionArn": OTHER}], "NextMarker": "1"},
        {
            "Functions": [
                {"FunctionArn": arn, "TenancyConfig": {"TenantIsolationMode": "PER_TENANT"}}
                for arn in isolating
            ]
        },
    ]
    client = SimpleNamespace(
        get_account_settings=lambda: {
            "AccountLimit": {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}
        },
        list_functions=lambda Marker="0": pages[int(Marker)],
    )
    return SimpleNamespace(client=lambda _: client, function=lambda _: None, tables=lambda: world.tables)


def messages(world: World, *isolating: str) -> list[str]:
    return [finding.message for finding in functions.concurrency(deployment(world, isolating))]


@pytest.mark.parametrize(("tenants", "is_near"), [(19, False), (20, True)])
def test_it_counts_tenants_that_call_an_isolating_function(world: World, tenants: int, is_near: bool) -> None:
    target = {"kind": "lambda", "arn": f"{ARN}:live", "tenant_isolation": True}
    for number in range(25):
        tenant_id = f"t{number}"
        Tenants(world.table("tenants")).create(tenant_id, "", world.clock.now())
        spec = {"target": target if number < tenants else {**target, "tenant_isolation": False}}
        for job_id in ("a", "b"):
            text = json.dumps(spec, separators=(",", ":"))
            world.table("jobs").put({**keys.job(tenant_id, job_id), "spec": text})
    shown = messages(world, ARN)
    assert (
        any("20 pairs of tenant and function; the account has room for 25" in text for text in shown)
        == is_near
    )
    assert len(shown) == (2 if is_near else 1)
    assert len(messages(world)) == len(messages(world, OTHER)) == 1
