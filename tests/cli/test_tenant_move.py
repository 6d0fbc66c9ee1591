"""`minute8 tenants export` and `import`: a tenant on another stage is the same, and twice changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Desk
from tests.worlds import ARN, job

CHANGES = 2

HOOK = "https://hooks.example.com/minute8"
SCHEDULE = {
    "Name": "sync",
    "GroupName": "nightly",
    "ScheduleExpression": "rate(7 hours)",
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "Target": {"Arn": ARN, "RoleArn": "arn:aws:iam::123456789012:role/scheduler", "Input": '{"n": 1}'},
}
GROUP = {"Name": "nightly", "Tags": [{"Key": "team", "Value": "data"}]}
JOBS: list[dict[str, Any]] = [
    {"job_id": "closed", **job(cron="0 9 * * *", exclude={"calendars": ["holidays"]})},
    {"job_id": "poll", **job(every="7h")},
    {"job_id": "biweekly", **job(every="2w", timezone="Europe/Paris")},
    {"job_id": "thrice", **job(cron="0 4 * * *", max_runs=3)},
    {"job_id": "several", **job(schedules=[{"every": "9h"}, {"cron": "0 5 * * *"}])},
    {"job_id": "stopped", **job(cron="0 6 * * *"), "state": "paused", "note": "until the audit ends"},
    {"job_id": "signed", **job(cron="0 7 * * *"), "payload": {"token": "secret://token"}},
]


@pytest.fixture
def other(desk: Desk) -> Desk:
    """The terminal of another tenant, in the place of another stage."""
    return replace(desk, environment={**desk.environment, "MINUTE8_KEY": desk.office.bob.key or ""})


@pytest.fixture
def exported(desk: Desk, tmp_path: Path) -> Path:
    """The file of a tenant that has something of everything, two days after it was written."""
    desk("calendars", "put", "holidays", "--date", "2026-12-24")
    desk("secrets", "put", "token", stdin="correct horse battery")
    desk("subscriptions", "put", "on-call", "--target", HOOK, "--delay", "5m")
    lines = "".join(json.dumps(line) + "\n" for line in JOBS)
    assert desk("import", "-", stdin=lines).code == 0
    assert desk("import", "-", stdin=json.dumps([GROUP, SCHEDULE])).code == 0
    desk.office.alice(
        "PATCH", "/v1/jobs/nightly..sync", {"tags": ["eu"]}
    )  # EventBridge's API has no such tags
    desk.office.world.clock.sleep(2 * 86_400 + 77)
    file = tmp_path / "acme.ndjson"
    file.write_text(desk("tenants", "export").out)
    return file


def fires_of(desk: Desk) -> dict[str, Any]:
    jobs = desk("jobs", "list", "--json").json
    return {line["job_id"]: desk("jobs", "next", line["job_id"], "--json").json for line in jobs}


def test_a_tenant_on_another_stage_has_the_same_fire_times_and_twice_changes_nothing(
    desk: Desk, other: Desk, exported: Path
) -> None:
    assert "correct horse" not in exported.read_text()
    other("secrets", "put", "token", stdin="another value")
    plan = other("tenants", "import", str(exported), "--dry-run")
    assert (plan.code, plan.out.splitlines()[-1]) == (CHANGES, "11 to create, 1 differs")
    assert {"+ calendar holidays", "+ group nightly", "+ subscription on-call"} <= set(plan.out.splitlines())
    assert other("jobs", "list", "--json").json == []
    assert other("tenants", "import", str(exported), "--yes").code == 0
    assert fires_of(other) == fires_of(desk)
    of_other = other("tenants", "export").out.splitlines()
    assert of_other[1:] == exported.read_text().splitlines()[1:]
    again = other("tenants", "import", str(exported))
    assert (again.code, again.out.splitlines()[-1]) == (0, "1 differs")
    assert other("tenants", "import", str(exported), "--dry-run").code == 0


def test_a_secret_without_a_value_and_a_malformed_line_are_named_with_their_line(
    other: Desk, exported: Path
) -> None:
    exported.write_text(f'{exported.read_text()}{{"calendar": "holidays"}}\n[]\nnot json\n{{"group": "x"}}\n')
    refused = other("tenants", "import", str(exported), "--yes")
    assert (refused.code, refused.err) == (1, "minute8: nothing was imported: some lines are refused\n")
    for words in (
        f"! secret token  has no value here: minute8 secrets put token; {exported}:3",
        f"! calendar holidays  is in {exported}:2 too; accepted: each calendar once; {exported}:14",
        f"! no job  not a job; accepted: an object with job_id, schedule and target; {exported}:15",
        f"! no job  not JSON: it is not JSON from line 1, column 1 on; {exported}:16",
        f"! group x  tags is not as `tenants export` writes it; {exported}:17",
    ):
        assert words in refused.out.splitlines(), refused.out
    assert "! signed  " in refused.out and "no such secret" in refused.out
    assert other("calendars", "list").out == "no calendars\n"


def test_what_the_file_does_not_have_is_left_over_and_stays(other: Desk, exported: Path) -> None:
    other("secrets", "put", "token", stdin="another value")
    other("secrets", "put", "old-token", stdin="another value")
    other("import", "-", stdin=json.dumps({"job_id": "old", **job(every="1h")}))
    done = other("tenants", "import", str(exported), "--yes")
    assert done.out.splitlines()[-1] == "11 to create, 1 differs, 2 left over"
    assert "? secret old-token  is not in the file, and stays" in done.out.splitlines()
    assert "? job old  is not in the file, and stays" in done.out.splitlines()
    assert "old" in fires_of(other)


def test_jobs_wait_paused_until_the_other_stage_stops(other: Desk, exported: Path) -> None:
    other("secrets", "put", "token", stdin="another value")
    assert other("tenants", "import", str(exported), "--paused", "--yes").code == 0
    assert {line["state"] for line in other("jobs", "list", "--json").json} == {"paused"}
    assert other("tenants", "import", str(exported), "--paused", "--dry-run").code == 0
    resumed = other("tenants", "import", str(exported), "--yes")
    assert resumed.out.splitlines()[-1] == "7 to resume, 1 differs"
    paused = [line["job_id"] for line in other("jobs", "list", "--json").json if line["state"] == "paused"]
    assert paused == ["stopped"]


def test_a_changed_calendar_and_a_job_that_names_a_new_one_are_changed(
    other: Desk, exported: Path, tmp_path: Path
) -> None:
    other("secrets", "put", "token", stdin="another value")
    other("import", "-", stdin=json.dumps({"job_id": "closed", **job(cron="0 9 * * *")}))
    assert other("tenants", "import", str(exported), "--yes").code == 0
    assert other("jobs", "show", "closed", "--json").json["schedule"]["exclude"] == {
        "calendars": ["holidays"]
    }
    changed = tmp_path / "changed.ndjson"
    changed.write_text(exported.read_text().replace('["2026-12-24"]', '["2026-12-24","2026-12-25"]'))
    done = other("tenants", "import", str(changed), "--yes")
    assert "~ calendar holidays" in done.out.splitlines()
    assert other("calendars", "show", "holidays").out == "2026-12-24\n2026-12-25\n"


def test_the_operators_command_for_other_settings_is_named(desk: Desk, other: Desk, exported: Path) -> None:
    desk.office.operator(
        "PATCH", "/v1/tenants/alice", {"quotas": {"jobs": 77}, "allowed_targets": ["*.x.example"]}
    )
    file = exported.with_name("later.ndjson")
    file.write_text(desk("tenants", "export").out)
    [line] = [
        line for line in other("tenants", "import", str(file), "--dry-run").out.splitlines() if line[0] == "?"
    ]
    command = "for the operator: minute8 tenants edit bob --quota jobs=77 --allow-target '*.x.example'"
    assert line.startswith("? tenant alice  the key is of tenant bob: ") and line.endswith(command)


def test_an_address_that_the_other_stage_does_not_allow_is_named_with_its_line(
    desk: Desk, other: Desk, exported: Path
) -> None:
    other("secrets", "put", "token", stdin="another value")
    desk.office.operator("PATCH", "/v1/tenants/bob", {"allowed_targets": ["arn:aws:lambda:*:*:*"]})
    done = other("tenants", "import", str(exported), "--yes")
    assert done.code == 1
    assert f"minute8: {exported}:5: subscription on-call: " in done.err
    assert "closed" in fires_of(other)
