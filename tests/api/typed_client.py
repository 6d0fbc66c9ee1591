"""What mypy knows of both Python clients: `make lint` checks these functions, and nothing runs them."""

from __future__ import annotations

from typing import assert_type

from minute8.client import AsyncClient, AsyncOperator, Client, Job, MadeKey, Operator, Run, TenantSummary


def blocking(minute8: Client, platform: Operator) -> None:
    assert_type(minute8.put_job("report", {}, revision=1, past=True), Job)
    assert_type(minute8.wait_for_run("execution"), Run)
    assert_type(minute8.get_webhook_secret(), str)
    assert_type(list(minute8.list_jobs(tag="a")), list[Job])
    assert_type(list(platform.list_tenants()), list[TenantSummary])
    minute8.pause_job("report", revision="1")  # type: ignore[arg-type]
    minute8.pause_job(name="report")  # type: ignore[call-arg]


async def awaiting(minute8: AsyncClient, platform: AsyncOperator) -> None:
    assert_type(await minute8.put_job("report", {}, revision=1, past=True), Job)
    assert_type(await minute8.wait_for_run("execution"), Run)
    assert_type(await minute8.get_webhook_secret(), str)
    assert_type([job async for job in minute8.list_jobs(tag="a")], list[Job])
    assert_type([tenant async for tenant in platform.list_tenants()], list[TenantSummary])
    assert_type(await platform.create_operator_key(name="deployer"), MadeKey)
    await minute8.pause_job("report", revision="1")  # type: ignore[arg-type]
    await minute8.pause_job(name="report")  # type: ignore[call-arg]
