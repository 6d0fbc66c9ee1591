"""The runbook is followed: each page's commands, and nothing else, repair what was broken."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import zip_longest
from time import monotonic, time

import httpx
import pytest

from minute8.client import Client
from minute8.client.errors import QuotaExceeded, TenantSuspended, Unavailable
from scripts.cloudwatch.alarms import composite_state, state_of
from scripts.cloudwatch.metrics import Metrics
from scripts.embedded import Embedded
from tests.alarms import template
from tests.end_to_end.leaving import remove_dead_letters
from tests.runbook.faults import FAULTS, Fault
from tests.runbook.pages import commands
from tests.runbook.site import Site
from tests.waiting import keep_clear_of_the_rule, wait_until

pytestmark = [pytest.mark.embedded, pytest.mark.release]


@pytest.fixture(scope="module")
def site(embedded: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The deployed stage, well: without what other tests left."""
    site = Site(embedded, tmp_path_factory.mktemp("shell"))
    site.stage.tick()

    def is_well() -> bool:
        remove_dead_letters(embedded)
        return site.problems() == {}

    wait_until(is_well, site.problems)  # a cold API may not answer in time
    return site


def rounds() -> list[list[Fault]]:
    """Faults that can be made at once: of each part the first, then of each part the second, and so on."""
    parts: dict[str, list[Fault]] = {}
    for fault in FAULTS:
        if fault.page != "canary":  # The stage `test` has no canary; `make chaos` deploys it with one.
            parts.setdefault(fault.part, []).append(fault)
    return [[fault for fault in faults if fault] for faults in zip_longest(*parts.values())]


@pytest.mark.parametrize("faults", rounds(), ids=lambda faults: "+".join(fault.page for fault in faults))
def test_pages_repair_their_faults(site: Site, faults: list[Fault]) -> None:
    if any(fault.part == "ticks" for fault in faults):
        keep_clear_of_the_rule(60)  # a tick repairs planned_until before the doctor looks
    for fault in faults:
        fault.breaks(site)
    broken = {check for fault in faults for check in fault.checks}
    wait_until(lambda: site.problems().keys() >= broken, site.problems)  # IAM's delay
    # Nobody works without the API.
    first = sorted(faults, key=lambda fault: fault.part != "api")
    printed = [site.follow(fault.page, checks=fault.checks) for fault in first]
    wait_until(lambda: without_dead_letters(site), lambda: (printed, site.problems()))


def test_executions_are_late(site: Site) -> None:
    """One executor takes ten messages at a time, and here it holds each batch for six seconds."""
    began_at, target = time(), site.stage.deploy_target()
    site.client("lambda").put_function_concurrency(
        FunctionName=site.named("executor"), ReservedConcurrentExecutions=1
    )
    with client_of(site, "crowd", target) as tenant, ThreadPoolExecutor(4) as pool:
        tenant.create_job({**yearly(target), "payload": {"duration_s": 6}}, "slow")
        list(pool.map(lambda _: tenant.run_job("slow"), range(11)))
    assert "its reserved concurrency is 1" in site.follow("burn-slow", "First look")
    wait_until(
        lambda: {"lateness", "burn-slow"} <= would_ring(site, began_at), lambda: would_ring(site, began_at)
    )
    printed = site.follow("lateness", "Fix", "Verify", checks={"function executor"})
    printed += site.follow("burn-slow", "Verify")
    # A poll that is throttled counts as a receive, so a message may have been given up meanwhile.
    wait_until(lambda: without_dead_letters(site), lambda: (printed, site.problems()))


def without_dead_letters(site: Site) -> bool:
    """Whether nothing is wrong any more. What was given up is sent again by its own page."""
    problems = site.problems()
    if "dead letters executions" in problems:
        site.follow("dead-letters", checks={"dead letters executions"})
    return problems == {}


def would_ring(site: Site, since: float) -> set[str]:
    """The alarms that the executor's log makes ring, if it goes on so for ten minutes."""
    metrics, now = Metrics(), 1_800.0
    for event in site.stage.log_of(site.named("executor"), since):
        for minute in (now - 600, now - 300):
            metrics.add_log([event["message"]], minute)
    alarms = template.alarms(site.name)
    states = {
        f"minute8-{site.name}-{name}": state_of(alarm, metrics, now)
        for name, alarm in alarms.items()
        if "AlarmRule" not in alarm
    }
    for name, alarm in alarms.items():
        if "AlarmRule" in alarm:
            states[f"minute8-{site.name}-{name}"] = composite_state(alarm["AlarmRule"], states)
    return {name.removeprefix(f"minute8-{site.name}-") for name, state in states.items() if state == "ALARM"}


def test_a_table_throttles(site: Site) -> None:
    """Then the API is slow, and a tick is slow or fails."""
    site.client("dynamodb").update_table(
        TableName=site.named("due"),
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 2, "WriteCapacityUnits": 2},
    )
    site.know(TABLE="due")
    target = site.stage.deploy_target()
    with client_of(site, "slow", target) as tenant, ThreadPoolExecutor(5) as pool:
        tick = pool.submit(took, site.stage.tick)
        jobs = [pool.submit(took, lambda: tenant.create_job(yearly(target))) for _ in range(4)]
        assert "2 reads and 2 writes a second" in site.follow("table-throttles", "First look")
        assert max(job.result() for job in jobs) > 3
        printed = site.follow("table-throttles", "Fix", "Verify")
        assert tick.exception() or tick.result() > 5
    printed += site.follow("tick-duration") + site.follow("api-latency")
    wait_until(lambda: site.problems() == {}, lambda: (printed, site.problems()))


def took(call: Callable[[], object]) -> float:
    """The seconds that a call takes; what the API gives up has taken them as well."""
    began = monotonic()
    with suppress(Unavailable):
        call()
    return monotonic() - began


def client_of(site: Site, tenant: str, target: str, **rules: object) -> Client:
    """A new tenant that may call the target, as its admin."""
    site.tenants.create(tenant, "", 0, {"allowed_targets": [target], **rules})
    key = site.tenants.api_keys.create_key(tenant, "admin", 0)[0]
    return Client(site.url, key)


def yearly(target: str) -> dict[str, object]:
    return {
        "schedule": {"cron": "0 0 1 1 *"},
        "target": {"kind": "lambda", "arn": target},
        "retry": {"max_attempts": 1},
    }


def test_a_target_is_down(site: Site) -> None:
    target = site.stage.deploy_target()
    site.know(TARGET=target)
    block, release = commands("target-down", site.name, "Fix")
    with client_of(site, "targets-down", target) as tenant:
        tenant.create_job(yearly(target), "calls")

        def ends() -> tuple[str, str]:
            run = tenant.wait_for_run(tenant.run_job("calls")["execution_id"], 60)
            return run["status"], run.get("reason") or ""

        assert ends() == ("succeeded", "")
        assert target in site.follow("target-down", "First look") + site.run(block)
        wait_until(lambda: ends() == ("skipped", "blocked"), "no run was skipped")
        site.run(release)
        wait_until(lambda: ends() == ("succeeded", ""), "no run was made")
    assert "nothing is blocked" in site.follow("target-down", "Verify")


def test_a_key_has_leaked(site: Site) -> None:
    with client_of(site, "leaky", "*") as tenant:
        leaked = tenant.create_key("write", name="in a public repository")
        site.know(TENANT="leaky", KEY_ID=leaked["key_id"])

        def answer() -> int:
            headers = {"authorization": f"Bearer {leaked['key']}"}
            return httpx.get(f"{site.url}/v1/jobs", headers=headers, timeout=30).status_code

        printed = site.follow("leaked-key")
        assert f"{leaked['key_id']} revoked" in printed and "key.revoked" in printed
        # At once, since no process has seen the key before. tests/platform hold how long one may remember it.
        assert answer() == 401


def test_a_flood(site: Site) -> None:
    site.know(TENANT="flooding")
    lower, suspend, resume, restore = commands("flood", site.name, "Fix")
    with client_of(site, "flooding", "*") as tenant:
        job = yearly(site.stage.deploy_target())
        site.follow("flood", "First look")
        site.run(lower)
        assert site.tenants.get("flooding").quotas.requests_per_minute == 60
        site.run(suspend)
        with pytest.raises(TenantSuspended):
            tenant.create_job(job, "more")
        site.run(resume)
        site.run(restore)

        def is_accepted() -> bool:
            with suppress(TenantSuspended):  # the API knows within 15 s
                return bool(tenant.create_job(job, "more"))
            return False

        wait_until(is_accepted, "it is still suspended")
    assert site.tenants.get("flooding").quotas.requests_per_minute > 60
    assert "active" in site.follow("flood", "Verify")


def test_a_quota_is_exhausted(site: Site) -> None:
    site.know(TENANT="full")
    with client_of(site, "full", "*", quotas={"jobs": 1}) as tenant:
        job = yearly(site.stage.deploy_target())
        tenant.create_job(job, "first")
        with pytest.raises(QuotaExceeded):
            tenant.create_job(job, "second")
        site.follow("quota-exhausted")
        tenant.create_job(job, "second")


def test_a_tenant_was_deleted_by_mistake(site: Site) -> None:
    target = site.stage.deploy_target()
    site.know(TENANT="mistaken", NEW="mistaken-2", PATTERN=target)
    with client_of(site, "mistaken", target) as tenant:
        for name in ("first", "second"):
            tenant.create_job(yearly(target), name)
        site.know(MINUTE8_KEY=tenant.create_key("read")["key"])
    site.run("minute8 export > jobs.ndjson")
    site.run("minute8 tenants delete mistaken --yes")
    printed = site.follow("tenant-deleted")
    assert "2 jobs" in printed or "mistaken is" in printed
    assert {job.job_id for job in site.stage.registered(["mistaken-2"])} == {"first", "second"}
