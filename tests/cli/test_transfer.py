"""`minute8 import` and `minute8 export`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
import pytest
from botocore.exceptions import ClientError

from common.errors import Busy
from common.jobs.store import JobStore
from common.platform.tenants import Tenants
from minute8.cli.commands import transfer
from minute8.cli.options import ExitCode
from minute8.eventbridge.moving.account import Account
from scripts.demo import workload
from tests.cli.conftest import Desk
from tests.worlds import ARN, job

ROLE = "arn:aws:iam::123456789012:role/scheduler"

CRONTAB = "CRON_TZ=Europe/Paris\n30 2 * * * backup\n*/5 * * * * poll\n"


def test_a_crontab_is_imported_once_and_again(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "crontab").write_text(CRONTAB)
    words = ("import", str(tmp_path / "crontab"), "--target", ARN)
    dry = desk(*words, "--dry-run")
    assert (dry.code, dry.out.splitlines()[-1]) == (0, "2 new - nothing was imported")
    assert desk.office.alice("GET", "/v1/jobs").json["jobs"] == []
    done = desk(*words)
    assert (done.code, done.out.splitlines()[-1]) == (0, "2 new")
    jobs = desk.office.alice("GET", "/v1/jobs").json["jobs"]
    assert [stored["schedule"] for stored in jobs] == [
        {"cron": "30 2 * * *", "timezone": "Europe/Paris"},
        {"cron": "*/5 * * * *", "timezone": "Europe/Paris"},
    ]
    assert desk(*words).out == "2 same\n"
    (tmp_path / "crontab").write_text(CRONTAB.replace("30 2", "45 2"))
    again = desk(*words)
    assert again.out.splitlines()[-1] == "1 changed, 1 same"
    assert "schedule" in again.out.splitlines()[1]
    assert [stored["revision"] for stored in desk.office.alice("GET", "/v1/jobs").json["jobs"]] == [2, 1]


def test_of_a_long_crontab_a_part_is_shown_with_what_is_refused_first(desk: Desk) -> None:
    lines = "".join(f"{n % 60} 3 * * * task {n}\n" for n in range(3_000)) + "61 3 * * * never\n"
    words = ("import", "-", "--target", ARN, "--dry-run")
    shown = desk(*words, stdin=lines).out.splitlines()
    assert len(shown) < 1_500 and shown[1].startswith("line 3001") and "refused" in shown[1]
    hidden = 3_001 - sum(line.startswith("line ") for line in shown)
    assert shown[-2:] == [
        f"and {hidden} more, which --json shows",
        "3000 new, 1 refused - nothing was imported",
    ]
    assert len(desk(*words, "--json", stdin=lines).json) == 3_001


def test_a_removed_line_of_a_crontab_is_named_as_left_over(desk: Desk) -> None:
    lines = [f"0 {hour} * * * backup\n" for hour in (3, 4, 5)]
    words = ("import", "-", "--target", ARN)
    desk(*words, stdin="".join(lines))
    stored_jobs = desk.office.alice("GET", "/v1/jobs").json["jobs"]
    [left_over_id] = [stored["job_id"] for stored in stored_jobs if stored["schedule"]["cron"] == "0 3 * * *"]
    again = desk(*words, stdin="".join(lines[1:]))
    assert (again.code, again.out.splitlines()[-1]) == (0, "2 same, 1 left over")
    assert f"minute8 jobs delete {left_over_id}" in again.out.replace("\n", " ")
    desk("jobs", "delete", left_over_id)
    assert desk(*words, stdin="".join(lines[1:])).out == "2 same\n"


def test_a_file_of_another_scheduler_is_refused_with_the_right_command(desk: Desk) -> None:
    refused = desk("import", "-", stdin='resource "aws_scheduler_schedule" "x" {}')
    assert (refused.code, refused.out) == (1, "")
    assert "Terraform" in refused.err and "minute8 import eventbridge:" in refused.err


def test_nothing_is_imported_where_something_cannot_be(desk: Desk) -> None:
    lines = [
        {"job_id": "good", **job(cron="0 3 * * *")},
        {"job_id": "bad", **job(cron="61 3 * * *")},
        {"job_id": "worse", **job(cron="0 3 * * *"), "color": "red"},
        {"job_id": "a/b", **job(cron="0 3 * * *")},
        {"job_id": "twice", **job(cron="0 4 * * *")},
        {"job_id": "twice", **job(cron="0 4 * * *")},
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    refused = desk("import", "-", stdin=text)
    assert (refused.code, refused.out.splitlines()[-1]) == (2, "1 new, 5 refused - nothing was imported")
    for words in ("line 2", "61", "color", "a/b", "there 2 times"):
        assert words in refused.out
    assert desk.office.alice("GET", "/v1/jobs").json["jobs"] == []
    imported = desk("import", "-", "--skip-invalid", "--json", stdin=text)
    assert (imported.code, [step["action"] for step in imported.json]) == (0, ["new"] + ["refused"] * 5)
    assert [stored["job_id"] for stored in desk.office.alice("GET", "/v1/jobs").json["jobs"]] == ["good"]
    assert desk.office.alice("GET", "/v1/jobs/good").json["schedule"] == {"cron": "0 3 * * *"}


def test_refusals_by_the_api_are_shown(desk: Desk) -> None:
    reads = {**desk.environment, "MINUTE8_KEY": desk.office.alice_reads.key or ""}
    writes, desk.environment = desk.environment, reads
    imported = desk("import", "-", "--target", ARN, stdin=CRONTAB)
    assert (imported.code, imported.out) == (5, "")
    assert "'write'" in imported.err
    desk.environment = writes
    Tenants(desk.office.world.table("tenants")).edit(
        "alice", {"quotas": {"jobs": 1}}, desk.office.world.clock.now()
    )
    imported = desk("import", "-", "--target", ARN, stdin=CRONTAB)
    assert (imported.code, imported.out.splitlines()[-1]) == (2, "1 new, 1 refused - nothing was imported")
    assert "quota jobs: 1 of 1 are in use" in imported.out
    imported = desk("import", "-", "--target", ARN, "--skip-invalid", stdin=CRONTAB)
    assert (imported.code, imported.out.splitlines()[-1]) == (0, "1 new, 1 refused")
    assert len(desk.office.alice("GET", "/v1/jobs").json["jobs"]) == 1


def test_an_import_ends_with_the_request_in_which_a_job_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minute8.cli.commands.transfer._JOBS_IN_REQUEST", 2)
    lines = [json.dumps({"job_id": f"job-{n}", **job(cron=f"{n} 3 * * *")}) for n in (1, 2, 3, 61, 5, 62, 7)]
    imported = desk("import", "-", stdin="\n".join(lines))
    assert (imported.code, imported.out.splitlines()[-1]) == (
        2,
        "5 new, 2 refused - imported up to line 2, the rest was checked",
    )
    stored_jobs = desk.office.alice("GET", "/v1/jobs").json["jobs"]
    assert [stored["job_id"] for stored in stored_jobs] == ["job-1", "job-2"]
    mended = "\n".join(lines).replace("61 3", "11 3").replace("62 3", "12 3")
    assert desk("import", "-", stdin=mended).out.splitlines()[-1] == "5 new, 2 same"


def test_a_long_crontab_is_imported_with_each_job_in_a_request_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minute8.cli.commands.transfer._JOBS_TOLD", 1_000)
    quotas = {"quotas": {"jobs": 5_000, "requests_per_minute": 60_000}}
    desk.office.operator("PATCH", "/v1/tenants/alice", quotas)
    lines = "".join(f"{n % 60} 3 * * * task {n}\n" for n in range(2_500))
    done = desk("import", "-", "--target", ARN, stdin=lines)
    assert (done.code, done.out.splitlines()[-1]) == (0, "2500 new")
    bulk_requests = [request for request in desk.transport.requests if request.method == "POST"]
    assert [len(request.read().splitlines()) for request in bulk_requests] == [1_000, 1_000, 500]
    assert done.err.splitlines() == ["1,000 of 2,500 jobs", "2,000 of 2,500 jobs"]


def test_what_stays_busy_is_named_beside_what_is_done(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = JobStore.change_all

    def change_all(self: JobStore, tenant: str, changes: Any, *rest: Any) -> Any:
        if any(name.startswith("busy") for name in changes):
            raise Busy("its shard is written too often")
        return store(self, tenant, changes, *rest)

    monkeypatch.setattr(JobStore, "change_all", change_all)
    monkeypatch.setattr(transfer, "_JOBS_IN_REQUEST", 2)
    jobs = [{"job_id": name, **job(cron="0 4 * * *")} for name in ("a", "b", "busy-c", "busy-d", "e")]
    import_of_all = desk("import", "-", "--skip-invalid", stdin="\n".join(map(json.dumps, jobs)))
    assert import_of_all.code == ExitCode.UNREACHABLE
    assert "2 new, 2 refused" in import_of_all.out and "busy-d" in import_of_all.out
    assert "2 of 2 lines were refused as busy each time; send them again" in import_of_all.err
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    applied = desk("apply", str(tmp_path), "--yes")
    assert applied.code == ExitCode.FAILED
    # One transaction would have written all three.
    assert [line.split(":")[1].strip() for line in applied.err.splitlines()] == ["busy-c", "busy-d", "e"]


def test_a_suspended_job_is_created_paused_and_one_that_is_there_keeps_its_state(desk: Desk) -> None:
    text = json.dumps({"job_id": "a", **job(cron="0 3 * * *"), "state": "paused", "note": "moving"})
    imported = desk("import", "-", stdin=text)
    assert "paused" in imported.out
    assert imported.out.splitlines()[-1] == "1 new"
    shown = desk.office.alice("GET", "/v1/jobs/a").json
    assert (shown["state"], shown["note"]) == ("paused", "moving")
    desk("jobs", "resume", "a")
    assert desk("import", "-", stdin=text.replace("0 3", "0 4")).out.splitlines()[-1] == "1 changed"
    assert desk.office.alice("GET", "/v1/jobs/a").json["state"] == "active"
    assert desk("import", "-", stdin=text.replace("paused", "dormant")).code == 2


def test_an_export_can_be_imported(desk: Desk) -> None:
    for name, sent in {
        "a": job(cron="30 2 * * *", timezone="Europe/Paris", tags=["x"], payload={"é\u2028": [1.5, None]}),
        "b": job(every="90m", retry={"max_attempts": 7}, catch_up="all", jitter_s=30),
        "c": job(at="2027-01-01T00:00:00Z", invocation="Event", exclude={"dates": ["2027-01-02"]}),
    }.items():
        desk.office.alice("PUT", f"/v1/jobs/{name}", sent)
    exported = desk("export").out
    assert exported.count("\n") == 3
    assert desk("import", "-", stdin=exported).out == "3 same\n"
    desk.environment["MINUTE8_KEY"] = desk.office.bob.key or ""
    assert desk("import", "-", stdin=exported).out.splitlines()[-1] == "3 new"
    assert desk("export").out == exported


def test_odd_files(desk: Desk) -> None:
    assert desk("import", "/nowhere").code == 2
    assert desk("import", "-", "--format", "xml", stdin="").code == 2
    assert desk("import", "-", stdin="").out == "no jobs found\n"


def test_real_jobs_are_imported_in_few_requests(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minute8.cli.commands.transfer._JOBS_IN_REQUEST", 20)
    real = list(workload.real_workload(ARN))[::15]
    assert len(real) == 46
    text = "\n".join(
        json.dumps({"job_id": f"{source_job.job_id[:120]}.{n}", **source_job.definition})
        for n, source_job in enumerate(real)
    )
    done = desk("import", "-", stdin=text)
    assert (done.code, done.out.splitlines()[-1]) == (0, "46 new")
    assert len(desk.transport.requests) == 3
    assert desk("import", "-", stdin=text).out == "46 same\n"
    assert len(desk.transport.requests) == 3 + 3
    assert desk.office.alice("GET", "/v1/tenant").json["usage"]["jobs"] == 46


def test_an_import_takes_a_one_off_that_is_past_if_asked_to(desk: Desk) -> None:
    text = json.dumps({"job_id": "once", **job(at="2026-11-20T00:00:00Z")})
    refused = desk("import", "-", stdin=text)
    assert (refused.code, "is past, so the job would never fire" in refused.out) == (2, True)
    assert desk("import", "-", "--past", stdin=text).out.splitlines()[-1] == "1 new"
    assert desk("import", "-", stdin=text).out == "1 same\n"


@pytest.fixture
def scheduler(on_moto: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """EventBridge Scheduler with 120 schedules, more than one page, and one in another group."""
    client = boto3.client("scheduler", region_name="us-east-1")
    events = boto3.client("events", region_name="us-east-1")
    monkeypatch.setattr(transfer, "account", lambda: Account(client, events))
    client.create_schedule_group(Name="billing", Tags=[{"Key": "team", "Value": "money"}])
    settings = {"FlexibleTimeWindow": {"Mode": "OFF"}, "Target": {"Arn": ARN, "RoleArn": ROLE}}
    for n in range(120):
        client.create_schedule(Name=f"report-{n}", ScheduleExpression=f"cron({n % 60} 2 * * ? *)", **settings)
    client.create_schedule(
        Name="invoices",
        GroupName="billing",
        ScheduleExpression="rate(2 hours)",
        StartDate=datetime(2026, 12, 1, tzinfo=UTC),
        State="DISABLED",
        **settings,
    )
    return client


def test_the_schedules_of_an_account_are_imported(desk: Desk, scheduler: Any) -> None:
    dry = desk("import", "eventbridge:", "--dry-run")
    assert (dry.code, dry.out.splitlines()[-1]) == (0, "122 new - nothing was imported")
    assert desk("import", "eventbridge:").out.splitlines()[-1] == "122 new"
    invoices = desk.office.alice("GET", "/v1/jobs/billing..invoices").json
    assert (invoices["state"], invoices["target"]["arn"]) == ("paused", ARN)
    assert invoices["schedule"] == {
        "every": "2h",
        "anchor": "2026-12-01T00:00:00Z",
        "start_at": "2026-12-01T00:00:00Z",
    }
    assert desk.office.alice("GET", "/v1/jobs/report-7").json["schedule"]["cron"] == "7 2 * * *"
    assert desk("import", "eventbridge:").out.splitlines()[-1] == "122 same"


def test_an_accounts_groups_and_rules_are_imported_too(desk: Desk, scheduler: Any) -> None:
    events = boto3.client("events", region_name="us-east-1")
    events.put_rule(Name="nightly", ScheduleExpression="cron(0 3 * * ? *)")
    events.put_targets(Rule="nightly", Targets=[{"Id": "1", "Arn": ARN}])
    events.put_rule(Name="pattern", EventPattern='{"source": ["x"]}')
    plan = {
        step["from"]: step["action"] for step in desk("import", "eventbridge", "--dry-run", "--json").json
    }
    assert (len(plan), plan["group billing"], plan["rule nightly/1"]) == (123, "new", "new")
    assert desk("import", "eventbridge").out.splitlines()[-1] == "123 new"
    assert desk.office.alice("GET", "/v1/jobs/nightly.1").json["schedule"]["cron"] == "0 3 * * *"
    group = desk.office.alice("GET", "/eventbridge/schedule-groups/billing").json
    tags = f"/eventbridge/tags/{quote(group['Arn'], safe='')}"
    assert desk.office.alice("GET", tags).json == {"Tags": [{"Key": "team", "Value": "money"}]}
    scheduler.tag_resource(
        ResourceArn=scheduler.get_schedule_group(Name="billing")["Arn"], Tags=[{"Key": "a", "Value": "b"}]
    )
    assert desk("import", "eventbridge").out.splitlines()[-1] == "1 changed, 122 same"
    assert desk("import", "eventbridge").out == "123 same\n"


def test_an_account_is_moved_without_running_twice(desk: Desk, scheduler: Any) -> None:
    plan = desk("import", "eventbridge:", "--paused", "--dry-run", "--json").json
    assert {step["why"] for step in plan} == {"group", "paused"}
    assert desk("import", "eventbridge:", "--paused").code == 0
    assert {job["state"] for job in desk.office.alice("GET", "/v1/jobs").json["jobs"]} == {"paused"}
    assert desk("import", "eventbridge:").out == "122 same\n", "an import resumes nothing"
    assert desk("jobs", "resume-all", "--all", "--yes").code == 0
    assert desk.office.alice("GET", "/v1/jobs/report-7").json["state"] == "active"


def test_an_account_is_not_read_twice(desk: Desk, scheduler: Any, tmp_path: Path) -> None:
    requests: list[str] = []
    scheduler.meta.events.register("before-call.scheduler.GetSchedule", lambda **_: requests.append("get"))
    copy = tmp_path / "copy"
    words = ("import", "eventbridge:", "--copy", str(copy))
    assert desk(*words, "--dry-run").code == 0
    assert len(requests) == 121
    # The reading ended in the middle of a line.
    copy.write_text("".join(copy.read_text().splitlines(keepends=True)[:100]) + '{"Arn": "arn')
    assert desk(*words).out.splitlines()[-1] == "122 new"
    assert len(requests) == 121 + 21
    assert desk(*words).out == "122 same\n"
    assert len(requests) == 121 + 21
    assert desk("import", "-", "--copy", str(copy), stdin="").code == 2


def test_a_group_of_an_account_is_imported_alone(desk: Desk, scheduler: Any) -> None:
    assert desk("import", "eventbridge:billing").out.splitlines()[-1] == "2 new"


def test_nothing_is_imported_of_an_account_that_cannot_be_read(desk: Desk, scheduler: Any) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetSchedule")

    scheduler.meta.events.register("before-call.scheduler.GetSchedule", refuse)
    refused = desk("import", "eventbridge:")
    assert (refused.code, "AccessDeniedException" in refused.err) == (ExitCode.NOT_ALLOWED, True)
    assert desk.office.alice("GET", "/v1/jobs").json["jobs"] == []


def test_schedules_go_to_another_deployment_and_come_back(desk: Desk, scheduler: Any, tmp_path: Path) -> None:
    desk("import", "eventbridge:")
    desk.office.alice("PUT", "/v1/jobs/own", job(every=90))
    export = desk("export", "eventbridge")
    assert export.code == ExitCode.INVALID
    assert "own: refused: schedule.every" in export.err
    assert export.err.splitlines()[-1] == "121 schedules, 1 group, 1 refused"
    assert json.loads(export.out.splitlines()[0]) == {
        "Name": "billing",
        "Tags": [{"Key": "team", "Value": "money"}],
    }
    desk.office.alice("DELETE", "/v1/jobs/own")
    assert desk("import", "-", stdin=desk("export", "eventbridge").out).out == "122 same\n"
    for form in ("cli", "terraform", "cloudformation"):
        assert desk("export", "eventbridge", "--format", form, "--output", str(tmp_path / form)).code == 0
    assert [path.name for path in sorted((tmp_path / "terraform").iterdir())] == ["groups.tf", "schedules.tf"]
    for words in (
        ("eventbridge", "--format", "cli"),
        ("--output", "x"),
        ("nothing",),
        ("jobs", "--format", "cli"),
    ):
        assert desk("export", *words).code == 2
