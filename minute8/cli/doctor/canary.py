"""The canary (docs/service-levels.md): a stage that has its function has its tenant and its job, due each minute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from common.config import config
from common.deployment import Deployment as Stores
from common.errors import AlreadyExists, NotFound
from common.jobs.job import ACTIVE, Job, exists
from common.jobs.store import JobStore
from common.platform.findings import Finding, Repair, failed, not_checked, ok, repairable
from common.platform.tenants import Tenants
from common.registration.definition import Limits, build_job, old_if_same, parse_definition
from common.tenants.allowed_targets import CANARY_TENANT
from common.tenants.audit import AWS
from minute8.cli.doctor.deployment import Deployment

# The same as in minute8/canary/handler.py, which is not in the wheel.
JOB_ID: Final = "canary"
_NAME: Final = "Minute8's own canary: one run a minute, see docs/service-levels.md"


def canary(deployment: Deployment) -> Iterator[Finding]:
    """Whether the job is there, runs, and calls the function, which is not in every stage."""
    try:
        state, problem = _state(deployment), _problem(deployment)
    except deployment.client("dynamodb").exceptions.ResourceNotFoundException:
        yield not_checked("a table is missing; its own check says which")
        return
    if state != ACTIVE:
        yield failed(f"its tenant is {state}", f"minute8 tenants resume {CANARY_TENANT}", page="canary")
    elif problem:
        repair = Repair("register the canary's job, or delete it", lambda: register(deployment))
        yield repairable(problem, repair, page="canary")
    else:
        yield ok("its job is due each minute" if _function(deployment) else "this stage has none")


def register(deployment: Deployment) -> str:
    """Make the stage's canary what its function says; returns what it did. Raises Minute8Error, ClientError."""
    arn, store = _function(deployment), _store(deployment)
    if arn is None:
        try:
            store.delete(CANARY_TENANT, JOB_ID)
        except NotFound:
            return "off"
        return "off: its job is deleted"
    if not _problem(deployment):
        return "registered already"
    _allow(deployment, arn)
    timeout_s = int((deployment.function("executor") or {})["Timeout"])
    limits = Limits.of_executor(timeout_s, payload_formats={})
    if store.change(CANARY_TENANT, JOB_ID, partial(_job, arn, limits)).state != ACTIVE:
        store.resume(CANARY_TENANT, JOB_ID)
    return f"registered, and due each minute: {CANARY_TENANT}/{JOB_ID}"


def definition(arn: str) -> dict[str, Any]:
    """The job. It is not tried again: the next one is due before that would say more."""
    return {
        "name": "Runs each minute, to notice when jobs do not",
        "schedule": {"cron": "* * * * *", "spread_s": 0},
        "target": {"kind": "lambda", "arn": arn},
        "retry": {"max_attempts": 1},
        "catch_up": "none",
        "start_deadline_s": 300,
    }


def _job(arn: str, limits: Limits, old: Job | None, now: float) -> Job:
    new = build_job(CANARY_TENANT, JOB_ID, parse_definition(definition(arn), limits), old, now, limits)
    return old_if_same(old, new) if old and exists(old) else new


def _problem(deployment: Deployment) -> str:
    """What is not as the function says; empty: nothing."""
    arn = _function(deployment)
    try:
        job = _store(deployment).get(CANARY_TENANT, JOB_ID)
    except NotFound:
        return f"{CANARY_TENANT}/{JOB_ID} is not registered: nothing notices that no job runs" if arn else ""
    if arn is None:
        return f"{CANARY_TENANT}/{JOB_ID} is left, and its function is not"
    if job.state != ACTIVE:
        return f"its job is {job.state}"
    if job.spec.schedule != definition(arn)["schedule"] or job.spec.target["arn"] != arn:
        return "its job has another schedule or target"
    try:
        is_allowed = _tenants(deployment).get(CANARY_TENANT).allowed_targets == [arn]
    except NotFound:
        return f"its tenant {CANARY_TENANT} does not exist"
    return "" if is_allowed else "its tenant may call something else than its function"


def _state(deployment: Deployment) -> str:
    """Of the tenant; one that does not exist stops nothing yet."""
    try:
        return _tenants(deployment).get(CANARY_TENANT).state
    except NotFound:
        return ACTIVE


def _function(deployment: Deployment) -> str | None:
    functions = deployment.client("lambda")
    name = f"canary-{deployment.named()}"
    try:
        return str(functions.get_function_configuration(FunctionName=name)["FunctionArn"])
    except functions.exceptions.ResourceNotFoundException:
        return None


def _allow(deployment: Deployment, arn: str) -> None:
    """The tenant may call the one function. Its runs are kept for two days."""
    now = deployment.clock.now()
    settings = {"allowed_targets": [arn], "retention_days": 2}
    try:
        _tenants(deployment).create(CANARY_TENANT, _NAME, now, settings)
    except AlreadyExists:
        _tenants(deployment).edit(CANARY_TENANT, settings, now)


def _tenants(deployment: Deployment) -> Tenants:
    return Tenants(deployment.tenants_table(), deployment.clock)


def _store(deployment: Deployment) -> JobStore:
    queue, clock = deployment.executions(), deployment.clock
    stored = Stores(config(), tables=deployment.tables(), queue=queue, clock=clock).stored_jobs
    return replace(stored, by=AWS)
