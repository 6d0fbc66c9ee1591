"""The API over real HTTP: the deployed function behind the gateway, the command as a process, and the client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from minute8.client import (
    Client,
    Minute8Problem,
    Operator,
    QuotaExceeded,
    RevisionMismatch,
    TenantSuspended,
)
from scripts import newcomer
from scripts.embedded import Embedded
from tests.waiting import wait_until

pytestmark = pytest.mark.embedded

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def environment(embedded: Embedded) -> dict[str, str]:
    """The environment of a terminal: AWS credentials and the API's address."""
    return newcomer.environment_of(embedded, "test")


@pytest.fixture(scope="module")
def minute8(environment: dict[str, str]) -> Command:
    """Runs the command as a process, with more in its environment if need be."""

    def run(*words: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "minute8", *words],
            cwd=ROOT,
            env=os.environ | environment | more,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, (words, done)
        return done

    return run


@pytest.fixture(scope="module")
def key(environment: dict[str, str], minute8: Command) -> str:
    """A key of the tenant `dora`, who may call the sample target."""
    minute8("tenants", "create", "dora", "--allow-target", environment["TARGET"])
    return minute8("keys", "create", "dora", "--role", "write").stdout.strip()


@pytest.fixture(scope="module")
def client(environment: dict[str, str], key: str) -> Iterator[Client]:
    with Client(environment["MINUTE8_URL"], key) as opened:
        yield opened


@pytest.fixture(scope="module", autouse=True)
def revoked(environment: dict[str, str], key: str, minute8: Command) -> Iterator[Client]:
    """A client whose key is revoked before the first test, so that the last one need not wait a minute for it."""
    created = json.loads(minute8("keys", "create", "dora", "--role", "read", "--json").stdout)
    with Client(environment["MINUTE8_URL"], created["key"]) as opened:
        # On a busy machine the first requests may end in 502.
        wait_until(lambda: status_for(opened) == 200, lambda: status_for(opened))
        minute8("keys", "revoke", "dora", created["key_id"])
        yield opened


def definition(environment: dict[str, str], **fields: Any) -> dict[str, Any]:
    target = {"kind": "lambda", "arn": environment["TARGET"]}
    return {"schedule": {"cron": "0 9 * * 1"}, "target": target, **fields}


def test_the_newcomers_session_happens_as_the_docs_tell_it(environment: dict[str, str]) -> None:
    documented = newcomer.documented_steps()
    happened = list(newcomer.play(documented, environment))
    assert [step.normal for step in happened] == [step.normal for step in documented]


def test_a_run_is_watched_from_its_start_to_its_end(
    environment: dict[str, str], client: Client, key: str, minute8: Command
) -> None:
    client.create_job(definition(environment, payload={"duration_s": 4}), "watched")
    run = client.run_job("watched")["execution_id"]
    command = [
        sys.executable,
        "-m",
        "minute8",
        "runs",
        "watch",
        "watched",
        "--every",
        "1",
        "--looks",
        "120",
        "--json",
    ]
    changes = []
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | environment | {"MINUTE8_KEY": key},
        stdout=subprocess.PIPE,
        text=True,
    ) as watching:
        assert watching.stdout
        for line in watching.stdout:
            changes.append(json.loads(line))
            if changes[-1]["status"] == "succeeded":
                break
        watching.terminate()
    assert {change["execution_id"] for change in changes} == {run}
    assert changes[-1]["status"] == "succeeded"


def test_the_runs_of_all_jobs_and_their_summary(
    environment: dict[str, str], client: Client, key: str, minute8: Command
) -> None:
    """The function queries many jobs at once, under its own role."""
    execution_ids = set()
    for n in range(40):
        client.create_job(definition(environment), f"many-{n:02}")
        execution_ids.add(client.run_job(f"many-{n:02}")["execution_id"])
    client.delete_job("many-07")
    listed = list(client.list_runs())
    assert execution_ids <= {run["execution_id"] for run in listed}
    fire_times = [run["fire_at"] for run in listed]
    assert fire_times == sorted(fire_times, reverse=True)
    pages = [client.list_runs_page(limit=25)]
    while cursor := pages[-1]["next_cursor"]:
        pages.append(client.list_runs_page(limit=25, cursor=cursor))
    assert execution_ids <= {run["execution_id"] for page in pages for run in page["runs"]}
    shown = json.loads(minute8("runs", "summary", "--json", MINUTE8_KEY=key).stdout)
    assert (shown["total"]["runs"], shown["complete"]) == (len(listed), True)
    assert minute8("runs", "summary", MINUTE8_KEY=key).stdout.startswith("DAY")


def test_another_tenants_job_is_not_found(
    environment: dict[str, str], client: Client, minute8: Command
) -> None:
    client.create_job(definition(environment), "private")
    minute8("tenants", "create", "eve")
    foreign = minute8("keys", "create", "eve", "--role", "admin").stdout.strip()
    shown = minute8("jobs", "show", "private", MINUTE8_KEY=foreign, code=3)
    assert "private" in shown.stderr and shown.stdout == ""
    assert minute8("jobs", "list", "--json", MINUTE8_KEY=foreign).stdout == "[]\n"
    minute8("jobs", "delete", "private", MINUTE8_KEY=foreign, code=3)
    forged = minute8("jobs", "list", MINUTE8_KEY=foreign[:-1] + ("a" if foreign[-1] != "a" else "b"), code=5)
    assert forged.stdout == ""
    assert client.get_job("private")["job_id"] == "private"


def test_bodies_and_paths_pass_the_gateway_unchanged(environment: dict[str, str], client: Client) -> None:
    """Headers both ways, a path with colons, a query, and text that is not ASCII."""
    job = client.create_job(definition(environment, name="Früh ☀ & 100 %"), "carried")
    assert client.get_job("carried")["name"] == "Früh ☀ & 100 %"
    assert (
        client.patch_job("carried", {"name": "b"}, revision=job["revision"])["revision"]
        == job["revision"] + 1
    )
    with pytest.raises(Minute8Problem) as stale:
        client.patch_job("carried", {"name": "c"}, revision=job["revision"])
    assert stale.value.status == 412
    assert stale.value.request_id
    for n in range(3):
        client.create_job(definition(environment, tags=["pages"]), f"page-{n}")
    first = client.list_jobs_page(tag="pages", limit=2)
    rest = client.list_jobs_page(tag="pages", limit=2, cursor=first["next_cursor"])
    assert [job["job_id"] for page in (first, rest) for job in page["jobs"]] == [
        "page-0",
        "page-1",
        "page-2",
    ]
    run = client.run_job("carried")["execution_id"]
    assert ":" in run and client.get_run(run)["execution_id"] == run


def test_a_list_comes_compressed_and_an_unchanged_one_not_at_all(
    environment: dict[str, str], client: Client, key: str
) -> None:
    for n in range(4):
        client.create_job(
            {**definition(environment), "schedule": {"at": "2099-01-01T00:00:00Z"}}, f"rare-{n}"
        )
    url, credential = f"{environment['MINUTE8_URL']}/v1/jobs", {"Authorization": f"Bearer {key}"}
    plain = httpx.get(url, headers={**credential, "Accept-Encoding": "identity"})
    short = httpx.get(url, headers=credential)
    assert short.json() == plain.json() == client.list_jobs_page()
    assert short.headers["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain.headers
    assert short.num_bytes_downloaded * 2 < plain.num_bytes_downloaded
    known = httpx.get(url, headers={**credential, "If-None-Match": short.headers["ETag"]})
    assert (known.status_code, known.content) == (304, b"")
    assert client.list_jobs_page() == short.json()


def test_the_platform_needs_no_table_once_it_has_a_key(environment: dict[str, str], minute8: Command) -> None:
    operator = minute8("operator-keys", "create", "--name", "laptop").stdout.strip()
    # A request to a table would fail now.
    platform = {"MINUTE8_OPERATOR_KEY": operator, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    minute8("tenants", "create", "frank", "--allow-target", environment["TARGET"], **platform)
    admin = minute8("keys", "create", "frank", "--role", "admin", **platform).stdout.strip()
    minute8("quotas", "set", "frank", "jobs=1", **platform)
    with Client(environment["MINUTE8_URL"], admin) as frank:
        frank.create_job(definition(environment), "one")
        with pytest.raises(QuotaExceeded):
            frank.create_job(definition(environment), "two")
        assert frank.create_key("read")["key_id"] in minute8("keys", "list", "frank", **platform).stdout
        with Operator(environment["MINUTE8_URL"], operator) as api:
            seen = api.get_tenant("frank")
            assert (seen["usage"]["jobs"], seen["quotas"]["jobs"]) == (1, 1)
            with pytest.raises(RevisionMismatch):
                api.patch_tenant("frank", {"name": "Frank"}, revision=seen["revision"] + 1)
        minute8("tenants", "suspend", "frank", "--note", "unpaid", **platform)
        with pytest.raises(TenantSuspended):
            frank.patch_job("one", {"timeout_s": 5})
    audited = json.loads(minute8("audit", "frank", "--json", **platform).stdout)
    assert {entry["action"] for entry in audited if entry["by"].startswith("operator:")} == {
        "tenant.created",
        "tenant.changed",
        "tenant.suspended",
        "key.created",
    }
    refused = minute8("jobs", "list", MINUTE8_KEY=operator, code=5)
    assert "'operator'" in refused.stderr


def test_the_example_gives_each_customer_a_job(
    environment: dict[str, str], client: Client, key: str, tmp_path: Path
) -> None:
    customers = tmp_path / "customers.csv"
    customers.write_text("id,timezone\nacme,Europe/Paris\nglobex,Asia/Tokyo\nnowhere,Europe/Nowhere\n")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/job_per_customer.py"), str(customers), environment["TARGET"]],
        env=os.environ | environment | {"MINUTE8_KEY": key, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.startswith("nowhere: ")) == (1, True), done
    assert [job["job_id"] for job in client.list_jobs(tag="nightly-report")] == [
        "report-acme",
        "report-globex",
    ]


def test_a_program_of_eventbridge_scheduler_moves_by_two_variables(
    environment: dict[str, str], client: Client, minute8: Command, tmp_path: Path
) -> None:
    """boto3's program, unchanged; a schedule of it fires, and its history is there."""
    pair = json.loads(minute8("keys", "create", "dora", "--aws", "--json").stdout)
    moved = {
        "AWS_ENDPOINT_URL_SCHEDULER": f"{environment['MINUTE8_URL']}/eventbridge",
        "AWS_ACCESS_KEY_ID": pair["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": pair["key"],
    }
    customers, role = tmp_path / "customers.csv", "arn:aws:iam::000000000000:role/scheduler"
    customers.write_text("id,timezone\nacme,Europe/Paris\nglobex,Asia/Tokyo\n")
    program = [sys.executable, str(ROOT / "examples/schedule_per_customer.py"), str(customers)]
    done = subprocess.run(
        [*program, environment["TARGET"], role],
        env=os.environ | environment | moved,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "report-acme\nreport-globex\n"), done
    scheduler = boto3.client(
        "scheduler",
        endpoint_url=moved["AWS_ENDPOINT_URL_SCHEDULER"],
        region_name="us-east-1",
        aws_access_key_id=pair["access_key_id"],
        aws_secret_access_key=pair["key"],
    )
    group = scheduler.get_schedule_group(Name="reports")["Arn"]
    assert scheduler.list_tags_for_resource(ResourceArn=group)["Tags"] == [
        {"Key": "team", "Value": "reports"}
    ]
    scheduler.untag_resource(ResourceArn=group, TagKeys=["team", "another +/ä"])
    assert scheduler.list_tags_for_resource(ResourceArn=group)["Tags"] == []
    soon = datetime.now(UTC) + timedelta(seconds=5)
    scheduler.create_schedule(
        Name="soon",
        GroupName="reports",
        ScheduleExpression=f"at({soon:%Y-%m-%dT%H:%M:%S})",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": environment["TARGET"], "RoleArn": role, "Input": '{"customer": "acme"}'},
    )
    wait_until(
        lambda: len(list(client.list_runs_of_job("reports..soon"))) == 1,
        lambda: list(client.list_runs_of_job("reports..soon")),
    )
    assert "reports..soon" in minute8("runs", "list", MINUTE8_KEY=key_of(minute8)).stdout
    scheduler.delete_schedule_group(Name="reports")
    after_the_last_run_the_name_is_free(scheduler, environment["TARGET"], role)
    a_group_of_sixty_is_deleted_without_a_tick(scheduler, environment["TARGET"], role)
    assert [job["job_id"] for job in client.list_jobs() if job["job_id"].startswith("reports")] == []


# Seconds of a crowded machine. A tick is up to ten minutes away.
IN_TIME_S = 60


def after_the_last_run_the_name_is_free(scheduler: Any, target: str, role: str) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=3)
    once = {
        "Name": "once",
        "ScheduleExpression": f"at({soon:%Y-%m-%dT%H:%M:%S})",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "Target": {"Arn": target, "RoleArn": role, "Input": "{}"},
        "ActionAfterCompletion": "DELETE",
    }
    began_at = time.monotonic()
    scheduler.create_schedule(**once)
    wait_until(
        lambda: not scheduler.list_schedules(NamePrefix="once")["Schedules"], lambda: "the schedule is left"
    )
    assert time.monotonic() - began_at < IN_TIME_S
    scheduler.create_schedule(**{**once, "ActionAfterCompletion": "NONE"})


def a_group_of_sixty_is_deleted_without_a_tick(scheduler: Any, target: str, role: str) -> None:
    scheduler.create_schedule_group(Name="large")
    for number in range(60):
        scheduler.create_schedule(
            Name=f"n{number}",
            GroupName="large",
            ScheduleExpression="rate(1 day)",
            StartDate=datetime.now(UTC) + timedelta(days=1),
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": target, "RoleArn": role},
        )
    began_at = time.monotonic()
    scheduler.delete_schedule_group(Name="large")
    wait_until(
        lambda: not scheduler.list_schedule_groups(NamePrefix="large")["ScheduleGroups"],
        lambda: "the group is left",
    )
    assert time.monotonic() - began_at < IN_TIME_S


def key_of(minute8: Command) -> str:
    return minute8("keys", "create", "dora", "--role", "read").stdout.strip()


def test_a_revoked_key_is_refused_within_a_minute(revoked: Client) -> None:
    give_up_at = time.monotonic() + 60
    while (status := status_for(revoked)) != 401:
        assert time.monotonic() < give_up_at, status
        time.sleep(1)


def status_for(reader: Client) -> int:
    """How the API answers."""
    try:
        reader.get_own_tenant()
    except Minute8Problem as refused:
        return refused.status
    return 200
