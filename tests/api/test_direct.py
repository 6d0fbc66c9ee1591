"""`minute8.direct`: the client's methods on the tables. Each route answers as it does over HTTP."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from minute8 import client as http_client
from minute8 import direct
from minute8.api import handler
from minute8.api.services import Services
from minute8.client import (
    Forbidden,
    InvalidInput,
    NotFound,
    QuotaExceeded,
    RevisionMismatch,
    TenantSuspended,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from minute8.direct import in_process
from tests.api.calls import Office
from tests.api.walk import Call, calls_of_document
from tests.worlds import World, job

REPORT = job(cron="30 2 * * *")
IDENTITY = "assumed-role/billing/i-0123"
OF_A_KEY = rf"\b[0-9a-f]{{16}}\b|direct:{IDENTITY}"


class Session:
    """A session of boto3's as far as `direct` uses it itself."""

    region_name = "us-east-1"

    def client(self, service: str) -> Any:
        assert service == "sts", service
        arn = f"arn:aws:sts::123456789012:{IDENTITY}"
        return SimpleNamespace(get_caller_identity=lambda: {"Arn": arn})


@pytest.fixture
def session(office: Office, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(in_process, "_services", lambda session, stage: handler._services())
    return Session()


def client(session: Session, **more: Any) -> direct.Client:
    return direct.Client(session, more.pop("tenant", "alice"), stage="test", **more)


def test_a_job_from_its_creation_to_its_run(session: Session, world: World) -> None:
    with client(session) as minute8:
        assert minute8.put_job("report", job(cron="20 3 * * *"))["revision"] == 1
        assert minute8.pause_job("report", "holiday")["state"] == "paused"
        assert minute8.resume_job("report")["state"] == "active"
        assert [listed["job_id"] for listed in minute8.list_jobs(q="repo")] == ["report"]
        assert minute8.next_fires("report")["fires"][0]["fire_at"] == "2026-11-21T03:20:00Z"
        world.run_until("2026-11-21T03:30:00Z", ticks=True)
        [run] = minute8.list_runs_of_job("report")
        assert run["status"] == "succeeded"
        assert minute8.expected_of_job(
            "report", from_at="2026-11-21T03:18:00Z", until_at="2026-11-21T03:25:00Z"
        )
        assert minute8.explain_job("report", "2026-11-21T03:20:00Z")["status"] == "on_time"
        minute8.delete_job("report")
        with pytest.raises(NotFound):
            minute8.get_job("report")


def test_the_asynchronous_client_does_the_same(session: Session) -> None:
    async def many() -> list[str]:
        async with direct.AsyncClient(session, "alice", stage="test") as minute8:
            await asyncio.gather(*(minute8.put_job(f"report-{n}", REPORT) for n in range(20)))
            return [listed["job_id"] async for listed in minute8.list_jobs()]

    assert sorted(asyncio.run(many())) == sorted(f"report-{n}" for n in range(20))


@pytest.mark.parametrize("call", [call for call in calls_of_document() if call.method == "GET"], ids=str)
def test_a_route_answers_as_over_http(settled: Office, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "_services", lambda session, stage: handler._services())
    over_http = settled.alice(call.method, call.url)
    transport = in_process.InProcess(in_process.Caller(Session(), "test", "alice", "write", None))
    answered = transport.handle_request(httpx.Request(call.method, f"http://minute8.direct{call.url}"))
    assert answered.status_code == over_http.status
    assert answered.headers["content-type"] == over_http.headers["content-type"]
    if over_http.status < 400:
        assert re.sub(OF_A_KEY, "KEY", answered.text) == re.sub(OF_A_KEY, "KEY", over_http.text)


def test_refusals_are_the_clients_exceptions(session: Session, office: Office) -> None:
    minute8 = client(session)
    with pytest.raises(InvalidInput) as refusal:
        minute8.put_job("report", job(cron="30 25 * * *"))
    assert refusal.value.errors[0]["field"] == "schedule.cron"
    assert refusal.value.request_id
    minute8.put_job("report", REPORT)
    with pytest.raises(RevisionMismatch) as mismatch:
        minute8.patch_job("report", {"timeout_s": 9}, revision=7)
    assert mismatch.value.current_revision == 1
    with pytest.raises(NotFound):
        client(session, tenant="bob").get_job("report")
    with pytest.raises(Forbidden):
        list(minute8.list_keys())
    with pytest.raises(Forbidden):
        client(session, role="read").pause_job("report")
    with pytest.raises(Forbidden):
        minute8.call("GET", "/v1/tenants")
    with pytest.raises(Unauthenticated):
        client(session, tenant="nobody").get_job("report")


def test_quotas_and_suspensions_hold(session: Session, office: Office) -> None:
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"jobs": 1}})
    office.world.clock.sleep(60)  # what this process knows of the rules is read again
    minute8 = client(session)
    minute8.put_job("one", REPORT)
    with pytest.raises(QuotaExceeded) as refusal:
        minute8.put_job("two", REPORT)
    assert refusal.value.quota["name"] == "jobs"
    office.operator("POST", "/v1/tenants/alice/suspend", {"note": "unpaid"})
    office.world.clock.sleep(60)
    with pytest.raises(TenantSuspended):
        minute8.delete_job("one")


def test_requests_are_counted_with_those_over_http(session: Session, office: Office) -> None:
    office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": 3}})
    office.world.clock.sleep(60)
    minute8 = client(session, sleep=lambda wait_s: None)
    for _ in range(3):
        minute8.get_own_tenant()
    with pytest.raises(Unavailable) as refusal:
        minute8.get_own_tenant()
    assert refusal.value.name == "rate-exceeded"
    assert office.alice("GET", "/v1/tenant").problem == "rate-exceeded"


@pytest.mark.parametrize(("actor", "by"), [(None, f"direct:{IDENTITY}"), ("billing-7", "direct:billing-7")])
def test_the_audit_names_the_actor(session: Session, office: Office, actor: str | None, by: str) -> None:
    client(session, actor=actor).put_job("report", REPORT)
    [entry] = office.alice_admin("GET", "/v1/audit?subject=report").json["entries"]
    assert (entry["by"], entry["action"]) == (by, "job.created")


@pytest.mark.parametrize(
    "wrong",
    [
        {"tenant": ""},
        {"tenant": "../bob"},
        {"tenant": "a#b"},
        {"role": "admin"},
        {"role": "operator"},
        {"actor": ""},
        {"actor": "a b"},
        {"actor": "x" * 201},
        {"actor": "a\nb"},
    ],
)
def test_a_caller_that_cannot_be_one_is_refused(session: Session, wrong: dict[str, str]) -> None:
    [field] = wrong
    with pytest.raises(ValueError, match=f"^{field}: "):
        client(session, **wrong)


@pytest.mark.parametrize(
    "failure",
    [
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetItem"),
        EndpointConnectionError(endpoint_url="https://dynamodb"),
    ],
)
def test_what_aws_refuses_is_unreachable_and_names_the_cause(
    session: Session, failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> Any:
        raise failure

    monkeypatch.setattr(Services, "admit", failing)
    with pytest.raises(Unreachable, match="stage 'test' in us-east-1 cannot be used") as unreachable:
        client(session).get_job("report")
    assert unreachable.value.__cause__ is failure


def test_a_fault_of_minute8_is_not_hidden(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(Services, "admit", broken)
    with pytest.raises(ZeroDivisionError):
        client(session).get_job("report")


def test_every_method_of_the_client_is_there() -> None:
    for local, remote in (
        (direct.Client, http_client.Client),
        (direct.AsyncClient, http_client.AsyncClient),
    ):
        assert [name for name in dir(remote) if not hasattr(local, name)] == []


def test_the_settings_are_those_of_the_deployed_api(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = []
    variables = {
        **{f"{name}_TABLE": f"minute8-prod-{name.lower()}" for name in ("JOBS", "DUE", "TENANTS", "RUNS")},
        "EXECUTIONS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/minute8-prod-executions",
        "EXECUTOR_TIMEOUT_S": "77",
        "STAGE": "prod",
    }

    class OfProd(Session):
        def client(self, service: str, **_: Any) -> Any:
            def configuration(FunctionName: str, Qualifier: str) -> Any:
                functions.append((FunctionName, Qualifier))
                return {"Environment": {"Variables": variables}}

            return SimpleNamespace(get_function_configuration=configuration)

    session = OfProd()
    monkeypatch.setattr(in_process.aws, "tuned", lambda built: built)
    services = in_process._services(session, "prod")
    assert in_process._services(session, "prod") is services
    assert functions == [("minute8-prod-api", "live")]
    assert services.limits.longest_timeout_s == 67
    assert services.store.jobs.name == "minute8-prod-jobs"
