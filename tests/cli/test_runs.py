"""`minute8 runs`."""

from __future__ import annotations

import pytest

from common.history.failed_runs import fingerprint
from common.runs.outcome import Outcome
from minute8.cli.commands.runs import watched
from tests.cli.conftest import Desk
from tests.worlds import ARN, job


def test_the_reason_of_each_run_that_did_not_succeed(desk: Desk) -> None:
    answers = iter(
        [Outcome(ok=True), Outcome(ok=False, permanent=True, error_type="KeyError", error="no customer 7")]
    )
    desk.office.world.target.answer = lambda event: next(answers)
    desk("jobs", "create", "minutely", "--cron", "* * * * *", "--target", ARN)
    assert desk("runs", "list", "minutely").out == "no runs yet\n"
    desk.office.world.run_until("2026-11-21T03:14:30Z")
    desk("jobs", "pause", "minutely", "--note", "broken")
    desk.office.world.run_until("2026-11-21T03:15:30Z")
    header, *rows = desk("runs", "list", "minutely").out.splitlines()
    assert header.split()[:3] == ["FIRE", "TIME", "STATUS"]
    assert rows[0].endswith("alice:minutely:20261121T031500Z")
    assert (
        rows[0].startswith("2026-11-21T03:15:00Z  30 s ago") and "skipped" in rows[0] and "broken" in rows[0]
    )
    assert "failed" in rows[1] and "KeyError: no customer 7" in rows[1]
    assert "succeeded" in rows[2]
    assert len(desk("runs", "list", "minutely", "-n", "2").out.splitlines()) == 3
    assert len(desk("runs", "list", "minutely", "--json").json) == 3


def test_runs_show_prints_attempts_and_log(desk: Desk) -> None:
    failed = Outcome(
        ok=False, error_type="ValueError", error="no [customer]", log_tail="START\nvery [bold] log\nEND\n"
    )
    desk.office.world.target.answer = lambda event: failed
    desk.office.alice("PUT", "/v1/jobs/once", job(at="2026-11-21T03:13:00Z", retry={"max_attempts": 2}))
    desk.office.world.run_until("2026-11-21T03:30:00Z")
    shown = desk("runs", "show", "alice:once:20261121T031300Z").out
    assert shown.startswith("failed ValueError: no [customer]")
    assert "attempt 1: failed 2026-11-21T03:13:00Z ValueError" in shown
    assert "attempt 2: failed" in shown
    assert "very [bold] log" in shown
    assert desk("runs", "show", "alice:once:20261121T031300Z", "--json").json["attempt"] == 2
    assert desk("runs", "show", "once", "--last").out == shown
    assert desk("runs", "show", "nothing", "--last").code == 3


def test_a_run_whose_call_timed_out_says_that_its_function_goes_on(desk: Desk) -> None:
    world = desk.office.world
    world.target.answer = lambda event: Outcome(ok=False, unanswered=True, error_type="TimedOut")
    desk.office.alice(
        "PUT", "/v1/jobs/long", job(cron="15 3 * * *", overlap="skip", retry={"max_attempts": 2})
    )
    world.run_until("2026-11-21T03:16:00Z", ticks=True)
    shown = desk("runs", "show", "alice:long:20261121T031500Z").out
    assert "its work may go on until  2026-11-21T03:30:1" in shown
    world.run_until("2026-11-21T03:48:00Z")
    assert "go on" not in desk("runs", "show", "alice:long:20261121T031500Z").out


def test_a_run_that_waits_for_its_turn_says_so_and_is_not_late(desk: Desk) -> None:
    waiting = {
        "completion": "callback",
        "callback_timeout_s": 300,
        "retry": {"max_attempts": 1},
        "concurrency": {"key": "crm", "limit": 1},
    }
    desk.office.alice("PUT", "/v1/jobs/first", job(at="2026-11-21T03:13:00Z", **waiting))
    desk.office.alice("PUT", "/v1/jobs/second", job(at="2026-11-21T03:13:10Z", **waiting))
    desk.office.world.run_until("2026-11-21T03:15:10Z")
    rows = [row.strip().split("  ") for row in desk("runs", "show", "second", "--last").out.splitlines()]
    words = {row[0].strip(): row[-1].strip() for row in rows}
    assert words["waits for its turn"] == "since 2 min"
    assert "crm is going, such as first:20261121T031300Z; it waits" in desk("runs", "list", "second").out
    desk.office.world.run_until("2026-11-21T03:19:10Z")
    rows = [row.strip().split("  ") for row in desk("runs", "show", "second", "--last").out.splitlines()]
    words = {row[0].strip(): row[-1].strip() for row in rows}
    assert words["waited for its turn"].startswith("4 min")
    assert "late by" not in words or not words["late by"].endswith("min")
    assert "waits for its turn" not in words


def test_runs_by_outcome_and_time_and_the_failures_of_all_jobs(desk: Desk) -> None:
    answers = iter(
        [Outcome(ok=True), Outcome(ok=False, permanent=True, error_type="KeyError", error="no customer 7")]
    )
    desk.office.world.target.answer = lambda event: next(answers, Outcome(ok=True))
    assert desk("failures").out == "no failures\n"
    desk.office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    desk.office.world.run_until("2026-11-21T03:15:30Z")
    assert "03:14:00Z" in desk("runs", "list", "minutely", "--status", "failed").out.splitlines()[1]
    assert len(desk("runs", "list", "minutely", "--since", "1m", "--json").json) == 1
    assert len(desk("runs", "list", "minutely", "--since", "2026-11-21T03:14:00Z", "--json").json) == 2
    assert len(desk("runs", "list", "minutely", "--until", "2026-11-21T03:14:00Z", "--json").json) == 1
    assert desk("runs", "list", "minutely", "--since", "soon").code == 2
    assert desk("runs", "list", "minutely", "--status", "bad").code == 2
    listed = desk("failures").out.splitlines()
    assert listed[1].split()[:5] == ["1", "min", "ago", "minutely", "KeyError:"]
    assert listed[1].endswith("alice:minutely:20261121T031400Z")
    assert len(desk("failures", "--json").json) == 1


def test_the_runs_of_all_jobs(desk: Desk) -> None:
    assert desk("runs", "list").out == "no runs yet\n"
    for name in ("first", "second"):
        desk.office.alice("PUT", f"/v1/jobs/{name}", job(cron="* * * * *"))
    desk.office.bob("PUT", "/v1/jobs/third", job(cron="* * * * *"))
    desk.office.world.run_until("2026-11-21T03:15:30Z")
    header, *rows = desk("runs", "list").out.splitlines()
    assert header.split()[:4] == ["FIRE", "TIME", "JOB", "STATUS"]
    assert [(row.split()[0][14:16], row.split()[4]) for row in rows] == [
        (minute, name) for minute in ("15", "14", "13") for name in ("second", "first")
    ]
    assert len(desk("runs", "list", "-n", "3", "--json").json) == 3
    assert len(desk("runs", "list", "--since", "1m", "--json").json) == 2
    assert desk("runs", "list", "--trigger", "manual", "--json").json == []


def test_a_summary_by_day(desk: Desk) -> None:
    assert desk("runs", "summary").out == "no runs\n"
    assert desk("runs", "summary", "never").code == 3
    desk.office.world.target.answer = lambda event: Outcome(
        ok=event["minute8"]["job_id"] == "good", permanent=True
    )
    for name in ("good", "bad"):
        desk.office.alice("PUT", f"/v1/jobs/{name}", job(cron="* * * * *"))
    desk.office.world.run_until("2026-11-21T03:14:30Z")
    desk("jobs", "pause", "bad")
    desk.office.world.run_until("2026-11-21T03:15:30Z")
    header, today, total = desk("runs", "summary").out.splitlines()
    assert header.split()[:8] == ["DAY", "RUNS", "DUE", "OK", "SUCCEEDED", "FAILED", "SKIPPED", "OTHER"]
    assert today.split()[:8] == ["2026-11-21", "6", "5", "60.00%", "3", "2", "1", "0"]
    assert today.split()[8:].count("s") == 8
    assert total.split()[:2] == ["all", "6"]
    shown = desk("runs", "summary", "bad", "--json").json
    assert (shown["total"]["statuses"], shown["total"]["reasons"]) == (
        {"failed": 2, "skipped": 1},
        {"paused": 1},
    )
    assert (shown["complete"], shown["from_at"]) == (True, "2026-11-15T00:00:00Z")
    assert desk("runs", "summary", "--since", "1m", "--json").json["total"]["runs"] == 2


def test_a_summary_combines_several_answers(few_at_once: None, desk: Desk) -> None:
    for name in ("a", "b", "c"):
        desk.office.alice("PUT", f"/v1/jobs/{name}", job(cron="* * * * *"))
    desk.office.world.run_until("2026-11-21T03:18:30Z")
    listed = desk("runs", "list", "-n", "100", "--json").json
    assert [run["fire_at"][14:16] for run in listed] == [
        f"{minute}" for minute in range(18, 12, -1) for _ in "abc"
    ]
    assert len({run["execution_id"] for run in listed}) == 18
    summary = desk("runs", "summary", "--json")
    assert (summary.json["total"]["runs"], summary.json["complete"], summary.err) == (18, True, "")
    part = desk("runs", "summary", "a", "--most", "1")
    words = "there are more runs (complete from 2026-11-21T03:15:01Z on)"
    assert part.err == f"minute8: {words}: minute8 runs summary a --most 10\n"


def test_watching_shows_each_change_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Outcome(ok=False, error_type="ValueError", error="not yet")
    answers = iter([Outcome(ok=True), failing, Outcome(ok=True), Outcome(ok=True), Outcome(ok=True)])
    desk.office.world.target.answer = lambda event: next(answers)
    desk.office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    desk.office.world.run_until("2026-11-21T03:13:30Z")
    moments = iter(
        ["2026-11-21T03:14:05Z", "2026-11-21T03:14:50Z", "2026-11-21T03:15:30Z", "2026-11-21T03:15:40Z"]
    )
    monkeypatch.setattr(desk.office.world.clock, "sleep", lambda _: None)
    monkeypatch.setattr(
        "minute8.cli.commands.runs.watched",
        lambda client, job_id, rounds, wait: watched(
            client, job_id, rounds, lambda: desk.office.world.run_until(next(moments))
        ),
    )
    lines = desk("runs", "watch", "minutely", "--looks", "5").out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["2026-11-21T03:14:00Z", "retrying"],
        ["2026-11-21T03:14:00Z", "succeeded"],
        ["2026-11-21T03:15:00Z", "succeeded"],
    ]
    assert "ValueError: not yet" in lines[0]


def test_failures_grouped_by_error(desk: Desk) -> None:
    desk.office.world.target.answer = lambda event: Outcome(
        ok=False, permanent=True, error_type="Boom", error=f"no customer {event['minute8']['fire_at']}"
    )
    desk.office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    desk.office.world.run_until("2026-11-21T03:15:30Z")
    lines = desk("failures", "--groups", "--since", "1h").out.splitlines()
    assert lines[0].split() == ["TIMES", "LAST", "FIRST", "JOB", "ERROR", "GROUP", "MUTED"]
    assert len(lines) == 2 and lines[1].startswith("3 ") and "minutely" in lines[1]
    desk.office.alice("PUT", "/v1/jobs/other", job(cron="0 0 1 1 *"))
    assert desk("failures", "--job", "other").out == "no failures\n"


def test_failures_are_muted_and_unmuted(desk: Desk) -> None:
    desk.office.world.target.answer = lambda event: Outcome(
        ok=False, permanent=True, error_type="Boom", error="no customer"
    )
    desk.office.alice("PUT", "/v1/jobs/minutely", job(cron="* * * * *"))
    desk.office.world.run_until("2026-11-21T03:15:30Z", ticks=True)
    group = fingerprint("Boom", "no customer")
    assert group in desk("failures", "--groups").out
    assert (
        desk("failures", "mute", "minutely", group, "--note", "known").out
        == f"minutely {group} is muted until it changes\n"
    )
    assert desk("failures", "--groups").out.splitlines()[1].endswith("until it changes")
    assert "1 job with a muted failure" in desk("overview").out
    shown = desk("failures", "muted").out.splitlines()[1]
    assert shown.split() == ["minutely", "Boom:", "no", "customer", group, "until", "it", "changes", "known"]
    answered = desk("failures", "mute", "minutely", group, "--until", "3d", "--json").json
    assert answered["until_at"] == "2026-11-24T03:15:30Z"
    refused = desk("failures", "mute", "minutely", group, "--until", "soon")
    assert refused.code == 2 and "such as 7d" in refused.err
    assert desk("failures", "unmute", "minutely", group).out == f"minutely {group} is not muted any more\n"
    assert desk("failures", "muted").out == "nothing is muted\n"
