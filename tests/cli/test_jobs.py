"""`minute8 jobs`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import structs

from common.jobs.spec import Policies
from common.registration.definition import JobDefinition
from minute8.cli.commands import define
from tests.cli.conftest import Desk
from tests.worlds import ARN, job

LETTERS = "arn:aws:sqs:us-east-1:123456789012:dead"


def test_create_show_list_and_next(desk: Desk) -> None:
    created = desk(
        "jobs", "create", "report", "--cron", "30 4 * * *", "--tz", "Europe/Paris", "--target", ARN
    )
    assert created.code == 0, created
    assert created.out.splitlines() == [
        "report created: revision 1, active, next 2026-11-21T03:30:00Z (in 18 min)",
        "At 04:30, in Europe/Paris",
        "  2026-11-21T03:30:00Z  2026-11-21T04:30:00+01:00  in 18 min",
        "  2026-11-22T03:30:00Z  2026-11-22T04:30:00+01:00  in 1 d",
        "  2026-11-23T03:30:00Z  2026-11-23T04:30:00+01:00  in 2 d",
    ]
    shown = desk("jobs", "show", "report").out
    assert shown.splitlines()[0] == "report active"
    for words in ("in 18 min", "30 4 * * * (Europe/Paris)", ARN, "last run", "none", " 1 min "):
        assert words in shown
    listed = desk("jobs", "list").out.splitlines()
    assert listed[0].split() == ["JOB", "STATE", "NEXT", "LAST", "OUTCOMES", "SCHEDULE"]
    assert listed[1].split() == [
        "report",
        "active",
        "in",
        "18",
        "min",
        "-",
        "30",
        "4",
        "*",
        "*",
        "*",
        "(Europe/Paris)",
    ]
    times = desk("jobs", "next", "report", "-n", "2").out
    assert "2026-11-22T03:30:00Z" in times and "2026-11-22T04:30:00+01:00" in times and "in 18 min" in times


def test_json_is_what_the_api_says(desk: Desk) -> None:
    created = desk(
        "jobs", "create", "report", "--every", "90m", "--target", ARN, "--payload", '{"n": 1}', "--json"
    ).json
    assert created == desk.office.alice("GET", "/v1/jobs/report").json
    assert created["payload"] == {"n": 1}
    assert desk("jobs", "show", "report", "--json").json == created
    assert desk("jobs", "list", "--json").json == [created]
    assert desk("jobs", "next", "report", "--json").json["fires"][0]["fire_at"] == created["next_fire_at"]
    assert desk("jobs", "pause", "report", "--json").json["state"] == "paused"
    assert desk("jobs", "resume", "report", "--json").json["state"] == "active"
    assert desk("jobs", "delete", "report", "--json").json == {"job_id": "report", "deleted": True}


def test_several_jobs_are_changed_by_one_command(desk: Desk) -> None:
    """A job that is not there does not stop the others; the exit code is its own."""
    for job_id in ("a", "b"):
        desk("jobs", "create", job_id, "--cron", "0 3 * * *", "--target", ARN)
    paused = desk("jobs", "pause", "a", "gone", "nowhere", "b", "--note", "move")
    assert paused.out.count("paused: revision 2") == 2 and paused.code == 3
    assert "no job 'gone'" in paused.err and "no job 'nowhere'" in paused.err
    resumed = desk("jobs", "resume", "a", "b", "--json").json
    assert [(job["job_id"], job["state"]) for job in resumed] == [("a", "active"), ("b", "active")]
    assert desk("jobs", "skip", "a", "b").out.splitlines() == [
        f"{job_id} 2026-11-22T03:00:00Z skipped cancelled by hand" for job_id in ("a", "b")
    ]
    assert desk("jobs", "unskip", "a", "b").out.splitlines()[0] == "a 2026-11-22T03:00:00Z runs"
    assert desk("jobs", "delete", "a", "b", "--revision", "2").code == 2
    assert desk("jobs", "delete", "a", "b").out.split() == ["a", "deleted", "b", "deleted"]
    assert desk("jobs", "list", "--json").json == []


def test_a_job_from_a_file_and_from_stdin(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps(job(cron="0 3 * * *", tags=["a"])))
    (tmp_path / "payload.json").write_text('{"customer": 7}')
    created = desk(
        "jobs", "create", "report", "-f", str(tmp_path / "job.json"), "--payload", f"@{tmp_path}/payload.json", "--json"
    )  # fmt: skip
    assert (created.json["tags"], created.json["payload"]) == (["a"], {"customer": 7})
    other = desk("jobs", "edit", "other", "-f", "-", "--json", stdin=json.dumps(job(cron="0 4 * * *")))
    assert other.json["schedule"] == {"cron": "0 4 * * *"}


def test_edit_changes_what_is_named_and_keeps_the_rest(desk: Desk) -> None:
    desk.office.alice(
        "PUT", "/v1/jobs/report", job(cron="0 3 * * *", tags=["a"], payload=[1], invocation="Event")
    )
    other = ARN.replace("target", "other")
    edited = desk("jobs", "edit", "report", "--cron", "0 5 * * *", "--target", other)
    assert edited.out.startswith("report changed: revision 2, active")
    stored = desk.office.alice("GET", "/v1/jobs/report").json
    assert (stored["schedule"], stored["tags"], stored["payload"]) == ({"cron": "0 5 * * *"}, ["a"], [1])
    assert stored["target"] == {
        "kind": "lambda",
        "arn": other,
        "invocation": "Event",
        "tenant_isolation": False,
        "durable": False,
    }


@pytest.mark.parametrize("payload", [{}, {"b": {"c": None}}, None, [1]])
def test_edit_replaces_the_payload(desk: Desk, payload: object) -> None:
    before = {"a": 1, "b": {"c": 2, "d": 3}}
    words = ("--cron", "0 4 * * *", "--tz", "Europe/Paris", "--target", ARN, "--payload", json.dumps(before))
    desk("jobs", "create", "report", *words)
    edited = desk("jobs", "edit", "report", "--payload", json.dumps(payload), "--every", "1h", "--json").json
    assert (edited["payload"], edited["schedule"]) == (payload, {"every": "1h"})


def test_edit_in_an_editor(desk: Desk, tmp_path: Path) -> None:
    desk.office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    desk.environment["EDITOR"] = "sed -i 's/0 3/0 6/'"
    assert desk("jobs", "edit", "report").code == 0
    assert desk.office.alice("GET", "/v1/jobs/report").json["schedule"] == {"cron": "0 6 * * *"}
    desk.environment["EDITOR"] = "true"
    assert desk("jobs", "edit", "report").out == ""
    assert desk.office.alice("GET", "/v1/jobs/report").json["revision"] == 2
    desk.environment["EDITOR"] = "false"
    failed = desk("jobs", "edit", "report")
    assert failed.code == 2
    assert "'false' ended with 1" in failed.err
    del desk.environment["EDITOR"]
    assert "there is no terminal for an editor" in desk("jobs", "edit", "report").err


def test_edit_never_overwrites_what_another_wrote(desk: Desk) -> None:
    desk.office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    desk.office.alice("PUT", "/v1/jobs/report", job(cron="0 4 * * *"))
    late = desk("jobs", "edit", "report", "--cron", "0 5 * * *", "--revision", "1")
    assert (late.code, late.err) == (4, "minute8: job 'report' is at revision 2, the change expected 1\n")


def test_pause_with_a_note_is_seen_everywhere(desk: Desk) -> None:
    desk("jobs", "create", "minutely", "--cron", "* * * * *", "--target", ARN)
    assert "paused" in desk("jobs", "pause", "minutely", "--note", "until the move is done").out
    desk.office.world.run_until("2026-11-21T03:13:30Z")
    shown = desk("jobs", "show", "minutely").out
    assert shown.startswith("minutely paused - until the move is done")
    assert "skipped 30 s ago" in shown
    assert "until the move is done" in desk("jobs", "list").out
    assert "it is paused" in desk("jobs", "next", "minutely").out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("jobs", "show", "nothing"), 3, "no job 'nothing'"),
        (("jobs", "show", "reprot"), 3, "no job 'reprot' minute8: did you mean report?"),
        (("jobs", "create", "x", "--cron", "0", "9", "*", "*", "*"), 2, "put the cron expression in quotes"),
        (("preview", "0", "9", "*", "*", "*"), 2, "in quotes: minute8 preview '0 9 * * *'"),
        (("jobs", "next", "report", "-n", "some"), 2, "must be a whole number (got 'some')"),
        (("jobs", "next", "report", "-n", "101"), 2, "is too large (got '101'); accepted: at most 100"),
        (("jobs", "explain", "report", "2026-11-20"), 2, "accepted: 2026-11-20T00:00:00"),
        (("failures", "--job", "reprot"), 3, "did you mean report?"),
        (("runs", "show", "report"), 3, "minute8 runs show report --last"),
        (("backfill", "report", "--from", "2026-11-20", "--to", "1h"), 2, "accepted: 2026-11-20T00:00:00Z"),
        (("keys", "create", "--expires", "90"), 2, "accepted: such as 90d or 2027-02-19T00:00:00Z"),
        (("keys", "create", "--expires", "2026-12-24"), 2, "accepted: 2026-12-24T00:00:00Z"),
        (("--url", "localhost:4566/x", "jobs", "list"), 2, "write http://localhost:4566/x"),
        (("jobs", "create", "x", "--cron", "rate(5 minutes)", "--target", ARN), 2, "(--every 5m)"),
        (
            ("jobs", "create", "x", "--every", "1h", "--target", ARN, "--catch-up", "some"),
            2,
            "none, latest or all",
        ),
        (
            ("jobs", "create", "x", "--every", "1h", "--target", "https://a.example", "--header", "x"),
            2,
            "no colon",
        ),
        (
            ("jobs", "create", "x", "--at", "2026-11-21T03:00:00Z", "--target", ARN),
            2,
            "with past=true (--past)",
        ),
        (("--url", "minute8.example.com", "jobs", "list"), 2, "write https://minute8.example.com"),
        (("runs", "list", "--since", "yesterday"), 2, "accepted: 2026-11-20T00:00:00Z"),
        (("runs", "list", "--since", "2 hours ago"), 2, "accepted: 2h"),
        (("runs", "list", "--until", "2026-11-20"), 2, "accepted: 2026-11-20T00:00:00Z"),
        (("jobs", "delete", "nothing"), 3, "no job 'nothing'"),
        (("jobs", "create", "x", "--cron", "61 * * * *", "--target", ARN), 2, "schedule.cron"),
        (
            ("jobs", "create", "x", "--cron", "0 3 * * *"),
            2,
            "target: is missing; accepted: an object with a kind, and its arn or url (--target)",
        ),
        (
            ("jobs", "create", "x", "--target", ARN),
            2,
            "schedule: is missing; accepted: an object with cron, every or at (--cron, --every, --at)",
        ),
        (("jobs", "create", "x", "--cron", "0 3 * * *", "--target", "arn:x"), 2, "arn:x"),
        (("jobs", "create", "a/b", "--cron", "0 3 * * *", "--target", ARN), 2, "job_id"),
        (("jobs", "create", "x", "-f", "/nowhere.json"), 2, "/nowhere.json"),
        (("jobs", "create", "x", "--payload", "{"), 2, "payload"),
        (("jobs", "create", "report", "--cron", "0 3 * * *", "--target", ARN), 4, "exists already"),
        (("--key", "m8_wrong", "jobs", "list"), 5, "API key"),
        (("--profile", "prod", "jobs", "list"), 2, "prod"),
        (("runs", "show", "bob:report:20261121T031300Z"), 3, "no run"),
        (("runs", "list", "nothing"), 3, "no job 'nothing'"),
    ],
)
def test_refusals_have_words_and_codes(desk: Desk, words: tuple[str, ...], code: int, message: str) -> None:
    desk.office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))
    refused = desk(*words)
    assert refused.code == code, refused
    assert message in " ".join(refused.err.split()).replace("│ ", ""), refused.err
    assert refused.out == ""


def test_an_api_that_cannot_be_reached(desk: Desk) -> None:
    desk.transport.failures = [httpx.ConnectError("connection refused")] * 4
    listed = desk("jobs", "list")
    assert (listed.code, "connection refused" in listed.err) == (6, True)
    desk.transport.failures = [503] * 4
    assert desk("jobs", "list").code == 6
    desk.transport.failures = [500] * 4
    assert desk("jobs", "list").code == 1


def test_profiles(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "minute8").mkdir()
    settings = tmp_path / "minute8" / "config.toml"
    key = desk.environment["MINUTE8_KEY"]
    settings.write_text(
        f'[profiles.default]\nurl = "https://api.test"\nkey = "{key}"\n[profiles.bad]\nurl = "https://x"\n'
    )
    desk.environment |= {"MINUTE8_URL": "", "MINUTE8_KEY": ""}
    assert desk("jobs", "list").out == "no jobs\n"
    assert desk("--profile", "bad", "jobs", "list").code == 2
    settings.write_text("[profiles")
    assert desk("jobs", "list").code == 2


def test_a_change_during_the_editing_is_kept(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))

    def slowly(definition: dict[str, Any]) -> dict[str, Any]:
        desk.office.alice("PUT", "/v1/jobs/report", job(cron="0 4 * * *"))
        return definition | {"name": "Report"}

    monkeypatch.setattr(define, "edited_in_editor", slowly)
    assert desk("jobs", "edit", "report").code == 4
    assert desk.office.alice("GET", "/v1/jobs/report").json["schedule"] == {"cron": "0 4 * * *"}


def test_another_timing_takes_the_old_ones_place_and_the_zone_stays(desk: Desk) -> None:
    sent = job(cron="0 3 * * *", timezone="Europe/Paris", start_at="2026-01-01T00:00:00Z", catch_up="all")
    desk.office.alice("PUT", "/v1/jobs/report", sent)

    def edited(*words: str) -> Any:
        return desk("jobs", "edit", "report", *words, "--json").json["schedule"]

    start = {"start_at": "2026-01-01T00:00:00Z"}
    assert edited("--cron", "0 4 * * *") == {"cron": "0 4 * * *", "timezone": "Europe/Paris"} | start
    assert edited("--tz", "Asia/Tokyo") == {"cron": "0 4 * * *", "timezone": "Asia/Tokyo"} | start
    assert edited("--every", "90m") == {"every": "90m"} | start
    assert (
        edited("--at", "2026-12-01T00:00:00", "--tz", "Asia/Tokyo")
        == {
            "at": "2026-12-01T00:00:00",
            "timezone": "Asia/Tokyo",
        }
        | start
    )
    assert desk.office.alice("GET", "/v1/jobs/report").json["catch_up"] == "all"


def test_lists_of_what_is_wanted(desk: Desk) -> None:
    for name, tags in (("a", ["red"]), ("b", [])):
        desk.office.alice("PUT", f"/v1/jobs/{name}", job(cron="0 3 * * *", tags=tags))
    desk("jobs", "pause", "b")
    assert [listed_job["job_id"] for listed_job in desk("jobs", "list", "--tag", "red", "--json").json] == [
        "a"
    ]
    assert [
        listed_job["job_id"] for listed_job in desk("jobs", "list", "--state", "paused", "--json").json
    ] == ["b"]
    assert [listed_job["job_id"] for listed_job in desk("jobs", "list", "--prefix", "b", "--json").json] == [
        "b"
    ]
    assert desk("jobs", "list", "--target", "arn:none").out == "no jobs\n"
    assert desk("jobs", "list", "--state", "lost").code == 2


def test_every_field_of_a_job_is_an_option(desk: Desk) -> None:
    words = [
        *("--cron", "0 3 * * *", "--tz", "Europe/Paris", "--start-at", "2026-01-01T00:00:00Z"),
        *("--end-at", "2027-01-01T00:00:00Z", "--jitter", "5", "--exclude-date", "2026-12-24"),
        *("--target", "https://hooks.example.com/x", "--method", "PUT", "--header", "x-team: a: b"),
        *("--no-envelope", "--max-attempts", "5", "--retry-base", "1", "--retry-factor", "1.5"),
        *("--retry-cap", "60", "--retry-max-age", "600", "--payload", "7", "--name", "Report", "--tag", "a"),
        *(
            "--tag",
            "b",
            "--timeout",
            "30",
            "--start-deadline",
            "60",
            "--catch-up",
            "all",
            "--overlap",
            "skip",
        ),
        *(
            "--pause-after-failures",
            "3",
            "--on-crash",
            "fail",
            "--owner",
            "me",
            "--runbook",
            "https://x.example",
            "--after-completion",
            "delete",
        ),
        *("--per-second", "5", "--tolerance", "300", "--pace-key", "crm"),
        *("--dead-letter", "arn:aws:sqs:us-east-1:123456789012:dead"),
        *("--longer-than", "600", "--completion", "callback", "--callback-timeout", "600"),
        *("--concurrency-key", "crm", "--concurrency", "2"),
    ]
    created = desk("jobs", "create", "report", *words, "--json").json
    defaults = {field.name: field.default for field in structs.fields(JobDefinition)} | {"tags": []}
    assert [name for name, default in defaults.items() if created[name] == default] == []
    assert created["target"] == {
        "kind": "http",
        "url": "https://hooks.example.com/x",
        "method": "PUT",
        "headers": {"x-team": "a: b"},
        "envelope": False,
    }
    assert created["retry"] == {"max_attempts": 5, "base_s": 1, "factor": 1.5, "cap_s": 60, "max_age_s": 600}
    assert created["schedule"]["exclude"] == {"dates": ["2026-12-24"]}
    assert created["schedule"]["pace"] == {"per_second": 5, "tolerance_s": 300, "key": "crm"}
    edited = desk("jobs", "edit", "report", "--target", ARN, "--envelope", "--json").json
    assert edited["target"] == {
        "kind": "lambda",
        "arn": ARN,
        "invocation": "RequestResponse",
        "tenant_isolation": False,
        "durable": False,
    }
    assert edited["retry"] == created["retry"]


def test_an_operation_of_aws_with_what_stops_it(desk: Desk) -> None:
    operation = "arn:aws:scheduler:::aws-sdk:batch:submitJob"
    stop = {
        "arn": "arn:aws:scheduler:::aws-sdk:batch:terminateJob",
        "parameters": {"jobId": "{{started}}", "reason": "stopped"},
    }
    role = "arn:aws:iam::123456789012:role/batch"
    words = ("--target", operation, "--role-arn", role, "--started", "jobId", "--stop", json.dumps(stop))
    payload = ("--payload", '{"JobName": "a", "JobQueue": "b", "JobDefinition": "c"}')
    desk("jobs", "create", "report", "--every", "1h", *words, *payload)
    stored = desk.office.alice("GET", "/v1/jobs/report").json["target"]
    expected = {"kind": "aws_operation", "arn": operation, "role_arn": role, "started": "jobId", "stop": stop}
    assert stored == expected
    # Another kind of target has none of it.
    assert desk("jobs", "edit", "report", "--target", ARN).code == 0
    edited = desk.office.alice("GET", "/v1/jobs/report").json["target"]
    assert edited["kind"] == "lambda" and "stop" not in edited and "started" not in edited


def test_output_of_show_can_be_sent_back(desk: Desk) -> None:
    desk("jobs", "create", "report", "--every", "1h", "--target", ARN, "--paused", "--note", "later")
    shown = desk("jobs", "show", "report", "--json")
    copied = desk("jobs", "create", "copy", "-f", "-", "--json", stdin=shown.out).json
    assert (copied["state"], copied["note"]) == ("paused", "later")
    same = desk("jobs", "edit", "report", "-f", "-", "--json", stdin=shown.out).json
    kept = ("schedule", "target", "retry", "state", "note")
    assert {name: same[name] for name in kept} == {name: shown.json[name] for name in kept}


def test_show_tells_the_whole_job(desk: Desk) -> None:
    shown_as: dict[str, tuple[object, str]] = {
        "name": ("Rent", "name Rent"),
        "tags": (["money", "eu"], "tags money, eu"),
        "timeout_s": (90, "time limit 1 min 30 s"),
        "completion": ("callback", "completion by a callback within 2 h"),
        "callback_timeout_s": (7_200, "completion by a callback within 2 h"),
        "retry": ({"max_attempts": 7}, "max_attempts 7"),
        "start_deadline_s": (600, "start deadline 10 min"),
        "catch_up": ("all", "catch-up all"),
        "overlap": ("skip", "overlap skip"),
        "pause_after_failures": (5, "pause after 5 failures"),
        "on_crash": ("fail", "on crash fail"),
        "after_completion": ("delete", "after completion delete"),
        "dead_letter": (LETTERS, f"dead letter {LETTERS}"),
        "alert": ({"longer_than_s": 3_600}, "alert longer_than_s 3600"),
        "concurrency": ({"key": "database", "limit": 2}, "concurrency key database, limit 2"),
        "owner": ("team-a", "owner team-a"),
        "runbook": ("https://x.example", "runbook https://x.example"),
    }
    assert shown_as.keys() == set(Policies.__struct_fields__)
    schedule = {"cron": "0 3 * * *", "end_at": "2027-01-01T00:00:00Z", "exclude": {"dates": ["2026-12-24"]}}
    fields = {name: value for name, (value, _) in shown_as.items()}
    definition = {"schedule": schedule, "target": {"kind": "lambda", "arn": ARN}, **fields}
    created = desk.office.alice("PUT", "/v1/jobs/report", definition)
    assert created.status == 201, created.json
    shown = " ".join(desk("jobs", "show", "report").out.split())
    for words in (*(words for _, words in shown_as.values()), "2026-12-24"):
        assert words in shown


def test_another_server_is_named_as_such(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def serves(status: int) -> None:
        def answer(request: httpx.Request) -> httpx.Response:
            return httpx.Response(status, html="<html>Welcome</html>", request=request)

        monkeypatch.setattr(desk.transport, "handle_request", answer)

    for status, code in ((200, 6), (404, 3)):
        serves(status)
        listed = desk("jobs", "list")
        assert (listed.code, "but not as Minute8's API; is the address right?" in listed.err) == (code, True)
        assert "<html>" not in listed.err


def test_a_target_that_is_neither_an_arn_nor_a_url_is_refused(desk: Desk) -> None:
    refused = desk("jobs", "create", "report", "--every", "1h", "--target", "foo")
    assert refused.code == 2
    assert "neither an ARN nor a URL" in " ".join(refused.err.split())


def test_a_payload_that_is_not_json_is_refused_without_the_words_of_the_parser(desk: Desk) -> None:
    words = ("--every", "1h", "--target", ARN, "--payload")
    for payload, why in (("{", "not JSON from line 1"), ("@nowhere", "No such file")):
        refused = desk("jobs", "create", "report", *words, payload)
        message = " ".join(refused.err.replace("│", " ").split())
        assert (refused.code, why in message, "Errno" in message, "char" in message) == (
            2,
            True,
            False,
            False,
        )


def test_delete_takes_yes(desk: Desk) -> None:
    desk("jobs", "create", "report", "--every", "1h", "--target", ARN)
    assert desk("jobs", "delete", "report", "--yes").code == 0


def test_several_schedules_take_the_place_of_one_and_back(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "two.json").write_text('[{"cron": "0 5 * * *"}, {"every": "2h", "payload_patch": {"a": 1}}]')
    options = ("--cron", "0 4 * * *", "--tz", "Europe/Paris", "--exclude-date", "2026-12-24", "--spread", "5")
    desk("jobs", "create", "report", *options, "--target", ARN)
    several = desk("jobs", "edit", "report", "--schedules", f"@{tmp_path}/two.json", "--json").json
    assert several["schedule"] == {
        "schedules": json.loads((tmp_path / "two.json").read_text()),
        "spread_s": 5,
    }
    shown = desk("jobs", "show", "report")
    assert (shown.code, "0 5 * * * (UTC); every 2h" in shown.out) == (0, True), shown
    again = desk("jobs", "edit", "report", "--cron", "0 4 * * *", "--json").json
    assert again["schedule"] == {"cron": "0 4 * * *", "spread_s": 5}
    ahead = desk(
        "preview", "--schedules", '[{"cron": "0 5 * * *"}, {"cron": "0 6 * * *"}]', "-n", "2", "--json"
    )
    assert len(json.loads(ahead.out)["fires"]) == 2
    wrong = desk("jobs", "edit", "report", "--schedules", "0 5 * * *")
    assert (wrong.code, "--schedules is neither JSON nor @file" in wrong.err) == (2, True)


def test_a_start_deadline_that_catch_up_never_meets_is_said(desk: Desk) -> None:
    created = desk(
        "jobs", "create", "sync", "--cron", "0 3 * * *", "--target", ARN, "--start-deadline", "300"
    )
    assert (
        "! catch_up runs what was missed by over 600 s, and start_deadline_s of 300 skips it" in created.out
    )
    options = ("--every", "1h", "--catch-up", "none", "--start-deadline", "300", "--target", ARN)
    fits = desk("jobs", "create", "none", *options)
    assert "catch_up runs" not in fits.out


def test_a_created_job_says_that_a_clock_change_skips_its_time(desk: Desk) -> None:
    local = ("--at", "2027-03-14T02:30", "--tz", "America/New_York")
    warning = "! On 2027-03-14, 02:00 -> 03:00 (1h forward) the time it names is skipped: it fires at"
    for answer in (desk("jobs", "create", "gap", *local, "--target", ARN), desk("preview", *local)):
        assert warning in answer.out
    of_several = json.dumps([{"at": "2027-03-14T02:30", "timezone": "America/New_York"}, {"every": "1d"}])
    assert warning in desk("preview", "--schedules", of_several).out
