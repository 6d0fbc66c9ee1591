"""`minute8 apply`: the jobs become what the files say; twice changes nothing; export is its inverse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from common.registration.definition import Limits, parse_definition
from common.registration.schedule_text import parse_schedule
from common.registration.target_definitions import stored
from common.timing.excluded_days import Dates
from minute8.cli.commands.apply import differing, with_defaults
from minute8.cli.fire_changes import consequences, move_of
from minute8.cli.job_files import BadFile, read_files, yaml_entries, yaml_text
from tests.cli.conftest import Desk
from tests.worlds import ARN, at, job

CHANGES = 2
COMPARED_FIRES = 50

NOW = at("2026-11-21T03:12:00Z")
TWO = f"""
- job_id: report   # the nightly one
  schedule: {{cron: "0 4 * * *", timezone: Europe/Paris}}
  target: {{kind: lambda, arn: "{ARN}"}}
  payload: {{day: 2026-11-21, time: 10:30, yes: "no"}}
- job_id: poll
  schedule: {{every: 10m}}
  target: {{kind: lambda, arn: "{ARN}"}}
  state: paused
  note: not yet
"""


def jobs_of(desk: Desk) -> dict[str, Any]:
    return {stored["job_id"]: stored for stored in desk.office.alice("GET", "/v1/jobs").json["jobs"]}


def test_a_plan_is_shown_and_then_made_and_twice_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text(TWO)
    plan = desk("apply", str(tmp_path), "--dry-run")
    assert plan.code == CHANGES
    assert plan.out.splitlines() == [
        "+ report",
        "    At 04:00, in Europe/Paris",
        "    50 fire times until 2027-01-10T03:00:00Z appear: "
        "2026-11-22T03:00:00Z, 2026-11-23T03:00:00Z, 2026-11-24T03:00:00Z …",
        "+ poll  paused",
        "    Every 10m of elapsed time, in step with 2026-11-21T03:12:00Z",
        "2 to create",
    ]
    assert jobs_of(desk) == {}
    assert desk("apply", str(tmp_path)).code == 0
    created = jobs_of(desk)
    assert created["report"]["payload"] == {"day": "2026-11-21", "time": "10:30", "yes": "no"}
    assert (created["poll"]["state"], created["poll"]["note"]) == ("paused", "not yet")
    for _ in range(2):
        again = desk("apply", str(tmp_path), "--dry-run")
        assert (again.code, again.out) == (0, "no changes\n")
        assert desk("apply", str(tmp_path)).code == 0
    assert jobs_of(desk) == created


def test_a_change_is_shown_with_its_consequences(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(TWO)
    desk("apply", str(file))
    file.write_text(TWO.replace('"0 4 * * *"', '"0 4,5 * * *"').replace("state: paused", "state: active"))
    plan = desk("apply", str(file), "--dry-run", "--json")
    report, poll = plan.json
    assert (plan.code, report["action"], poll["action"]) == (2, "change", "resume")
    assert report["fields"] == [{"field": "schedule.cron", "before": "0 4 * * *", "after": "0 4,5 * * *"}]
    assert (report["vanish"], len(report["appear"])) == ([], 25)
    assert poll["fields"] == [{"field": "state", "before": "paused", "after": "active"}]
    assert len(poll["appear"]) == COMPARED_FIRES
    desk("apply", str(file))
    assert jobs_of(desk)["poll"]["state"] == "active"
    assert desk("apply", str(file), "--dry-run").code == 0


def test_a_job_that_never_fires_is_named_by_the_plan(desk: Desk, tmp_path: Path) -> None:
    schedule = '{cron: "0 4 * * *", end_at: 2026-11-21T03:30:00Z}'
    text = f'- {{job_id: over, schedule: {schedule}, target: {{kind: lambda, arn: "{ARN}"}}}}'
    (tmp_path / "jobs.yaml").write_text(text)
    plan = desk("apply", str(tmp_path), "--dry-run")
    assert "It fires never again: no fire time is left." in plan.out
    assert desk.office.world.events == [], "it is only a plan"
    assert "It fires never again" in desk("apply", str(tmp_path)).out
    assert jobs_of(desk)["over"]["job_id"] == "over"


def test_pruning_deletes_what_no_file_has(desk: Desk, tmp_path: Path) -> None:
    for name in ("old-1", "other"):
        desk.office.alice("PUT", f"/v1/jobs/{name}", job(cron="0 12 * * *"))
    (tmp_path / "jobs.yaml").write_text(TWO)
    assert desk("apply", str(tmp_path)).code == 0
    assert desk("apply", str(tmp_path), "--dry-run").code == 0, "without --prune others stay"
    plan = desk("apply", str(tmp_path), "--prune-prefix", "old", "--dry-run")
    assert (plan.code, plan.out.splitlines()[0], plan.out.splitlines()[-1]) == (
        2,
        "- old-1  0 12 * * * (UTC)",
        "1 to delete",
    )
    assert desk("apply", str(tmp_path), "--prune", stdin="n\n").code == 1
    assert set(jobs_of(desk)) == {"report", "poll", "old-1", "other"}
    assert desk("apply", str(tmp_path), "--prune", "--yes").code == 0
    assert set(jobs_of(desk)) == {"report", "poll"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.yaml",
            "- job_id: a\n  schedule: {cron: 61 * * * *}\n  target: {kind: sqs}\n",
            "nothing was applied",
        ),
        ("a.yaml", "a: [", "not YAML"),
        ("a.yaml", "just text", "not a job"),
        ("a.yaml", "- {schedule: {every: 1h}}", "not a job"),
        ("a.yaml", "- {job_id: a, state: gone}", 'state "gone"'),
        ("a.yaml", TWO + TWO, "is in"),
        ("a.json", "{", "cannot be read"),
        ("a.json", '{"job_id": "a", "job_id": "b"}', "appears twice"),
        ("a.txt", "x", "not a job"),
        ("a.yaml", "", "no jobs"),
    ],
)
def test_an_invalid_file_changes_nothing_and_has_its_own_exit_code(
    desk: Desk, tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    refused = desk("apply", str(tmp_path / name), "--dry-run")
    assert (refused.code, message in refused.err + refused.out) == (1, True), refused
    assert jobs_of(desk) == {}


def test_all_malformed_and_refused_entries_are_named_with_their_lines(desk: Desk, tmp_path: Path) -> None:
    good = json.dumps({"job_id": "good", **job(cron="0 3 * * *")})
    bad = json.dumps({"job_id": "bad", **job(cron="61 3 * * *")})
    (tmp_path / "a.json").write_text(f'[\n{good},\n\n{{"schedule": {{\n"every": "1h"}}}},\n{good}]')
    (tmp_path / "b.ndjson").write_text(f'\n{bad}\n{{"job_id": "c", "state": "off"}}\n')
    (tmp_path / "c.yaml").write_text("# jobs\n- 5\n- job_id: d\n  state: gone\n---\njust text\n")
    plan = desk("apply", str(tmp_path))
    assert plan.code == 1 and jobs_of(desk) == {}
    refused = [line for line in plan.out.splitlines() if line.startswith("!")]
    not_a_job = "! no job  not a job; accepted: an object with job_id, schedule and target"
    assert [line.removeprefix("! no job  ").split("/")[-1] for line in refused] == [
        "a.json:4", "a.json:6", "b.ndjson:3", "c.yaml:2", "c.yaml:3", "c.yaml:6", "b.ndjson:2",
    ]  # fmt: skip
    assert (
        refused[0].startswith(not_a_job) and "a.json:2 too" in refused[1] and refused[6].startswith("! bad")
    )
    assert plan.out.endswith("1 to create, 7 refused\n")


def test_a_one_off_that_is_past_is_applied_if_asked_for(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "once.json"
    file.write_text(json.dumps({"job_id": "once", **job(at="2026-11-20T00:00:00Z")}))
    refused = desk("apply", str(file))
    assert (refused.code, "--past" in refused.out, jobs_of(desk)) == (1, True, {})
    assert desk("apply", str(file), "--past").code == 0
    assert desk("apply", str(file), "--dry-run").out == "no changes\n"


def test_output_of_show_and_export_is_applied_without_a_change(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text(TWO)
    desk("apply", str(tmp_path))
    before = jobs_of(desk)
    for file, text in (
        ("export.yaml", desk("export", "--format", "yaml").out),
        ("export.ndjson", desk("export").out),
        ("show.json", desk("jobs", "show", "poll", "--json").out),
    ):
        (tmp_path / "sub").mkdir(exist_ok=True)
        path = tmp_path / "sub" / file
        path.write_text(text)
        assert desk("apply", str(path), "--dry-run").out == "no changes\n", file
    assert desk("apply", "-", "--dry-run", stdin=desk("export", "--format", "yaml").out).code == 0
    assert jobs_of(desk) == before
    assert desk("export", "--format", "toml").code == 2


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(_JSON)
def test_any_payload_survives_yaml(payload: Any) -> None:
    text = yaml_text({"job_id": "a", "payload": payload})
    assert yaml_entries(text) == [(1, {"job_id": "a", "payload": payload})]


@given(
    st.sampled_from(["2026-11-21", "10:30", "0o7", "012", "1_000", "on", "~", "1e3", "0x1F", ".5", "=", "<<"])
)
def test_a_text_that_looks_like_something_else_survives_yaml(text: str) -> None:
    assert yaml_entries(yaml_text({"job_id": text}))[0][1]["job_id"] == text
    assert yaml.safe_load(yaml_text({"job_id": text}))[0]["job_id"] == text, "with other readers, too"


def no_dates(name: str) -> Dates:
    return Dates(())


CRONS = ("0 4 * * *", "*/10 * * * *", "0 4,5 * * *", "0 0 29 2 *", "*/7 3 * * 1")


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(CRONS), st.sampled_from(CRONS))
def test_consequences_are_the_difference_of_both(old: str, new: str) -> None:
    before, after = (parse_schedule({"cron": cron}, job_key="a/b", now=NOW) for cron in (old, new))
    changes = consequences(before, after, NOW, no_dates)
    appear, vanish = changes.appear, changes.vanish
    assert consequences(after, before, NOW, no_dates) == replace(changes, appear=vanish, vanish=appear)
    assert not set(appear) & set(vanish)
    assert len(appear) <= COMPARED_FIRES and len(vanish) <= COMPARED_FIRES
    assert (appear, vanish) == ((), ()) if old == new else appear or vanish
    created = consequences(None, after, NOW, no_dates)
    assert (len(created.appear), created.compared_until) == (COMPARED_FIRES, created.appear[-1])


def test_a_change_behind_the_next_fire_times_is_shown() -> None:
    daily = {"cron": "0 4 * * *"}
    before, after = (
        parse_schedule(daily | bound, job_key="a/b", now=NOW)
        for bound in ({}, {"end_at": "2027-06-01T00:00:00Z"})
    )
    changes = consequences(before, after, NOW, no_dates)
    assert changes.vanish[0] == at("2027-06-01T04:00:00Z")
    assert (changes.appear, changes.compared_until) == ((), changes.vanish[-1])
    assert consequences(before, before, NOW, no_dates).vanish == ()


def test_a_plan_leaves_out_the_dates_of_calendars_and_knows_the_last_run(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"

    def plan(**schedule: Any) -> tuple[list[str], list[str]]:
        file.write_text(json.dumps({"job_id": "report", **job(), "schedule": schedule}))
        (step,) = desk("apply", str(file), "--dry-run", "--json").json
        appear, vanish = ([text[8:16] for text in step[name]] for name in ("appear", "vanish"))
        return appear, vanish

    desk("calendars", "put", "closed", "--date", "2026-11-22", "--date", "2026-11-24")
    daily = {"cron": "0 4 * * *", "end_at": "2026-11-26T00:00:00Z"}
    closed = {"exclude": {"calendars": ["closed"]}}
    assert plan(**daily, **closed) == (["21T04:00", "23T04:00", "25T04:00"], [])
    desk("apply", str(file))
    assert plan(**daily) == (["22T04:00", "24T04:00"], [])
    assert plan(cron="20 * * * *", max_runs=3)[0] == ["21T03:20", "21T04:20", "21T05:20"]
    desk("apply", str(file))
    desk.office.world.run_until("2026-11-21T03:50:00Z")
    # One of three has come. A fourth lets three be left.
    changed = plan(cron="40 * * * *", max_runs=4)
    assert changed == (["21T04:40", "21T05:40", "21T06:40"], ["21T04:20", "21T05:20"])


@pytest.mark.parametrize(
    "target",
    [
        {"kind": "lambda", "arn": ARN},
        {"kind": "http", "url": "https://a.example/"},
        {"kind": "event_bus", "arn": "arn:aws:events:us-east-1:123456789012:event-bus/default"},
        {"kind": "sqs", "arn": "arn:aws:sqs:us-east-1:123456789012:jobs"},
        {
            "kind": "step_functions",
            "arn": "arn:aws:states:us-east-1:123456789012:stateMachine:nightly",
        },
    ],
)
def test_the_defaults_of_a_plan_are_the_apis(target: dict[str, Any]) -> None:
    definition = parse_definition({"schedule": {"every": "1h"}, "target": target}, Limits())
    assert with_defaults("target", target) == stored(definition.target)
    assert with_defaults("retry", None) == to_builtins(definition.retry)


def test_a_difference_is_named_by_its_path() -> None:
    before = {"a": {"b": 1, "c": 2}, "payload": {"x": 1}, "same": 1, "flag": 1}
    after = {"a": {"b": 1, "c": 3}, "payload": {"x": 2}, "same": 1, "flag": True}
    assert differing(before, after) == (("a.c", 2, 3), ("payload", {"x": 1}, {"x": 2}), ("flag", 1, True))


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.json", "c/d.yml", "ignored.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"job_id": path.stem}))
    assert [written.job_id for written in read_files([str(tmp_path)])[0]] == ["a", "b", "d"]
    with pytest.raises(BadFile, match=r"nowhere cannot be read: No such file or directory$"):
        read_files(["nowhere"])
    with pytest.raises(BadFile, match="no jobs"):
        (tmp_path / "empty").mkdir()
        read_files([str(tmp_path / "empty")])


@pytest.mark.parametrize(
    ("before", "after", "move"),
    [
        ((10, 20, 30), (12, 22, 32), (10, 12)),
        ((10, 20, 30), (12, 22), (10, 12)),
        ((20, 30, 40), (12, 22, 32), (20, 22)),  # now is between 10 and 12
        ((10, 20, 30), (8, 18, 28), (10, 8)),
        ((10,), (99,), (10, 99)),
        ((10, 20, 30), (12, 23, 32), None),
        ((10, 20, 30), (12,), None),
        ((), (12, 22), None),
        ((10, 20), (), None),
    ],
)
def test_fire_times_that_all_move_by_the_same_are_told_as_one(
    before: tuple[int, ...], after: tuple[int, ...], move: tuple[int, int] | None
) -> None:
    assert move_of(after, before) == move


def repeated(nth: int) -> str:
    return ", ".join([f"*b{nth - 1}"] * 9)


@pytest.mark.parametrize(
    "text",
    [
        "b0: &b0 [1, 1]\n" + "".join(f"b{n}: &b{n} [{repeated(n)}]\n" for n in range(1, 9)),
        "b0: &b0 {k: 1}\n" + "".join(f"b{n}: &b{n} {{<<: [{repeated(n)}]}}\n" for n in range(1, 9)),
        "a: &a [*a]\n",
    ],
)
def test_aliases_that_repeat_without_end_are_refused(text: str) -> None:
    """Such a file of a pull request took the command's processor for hours."""
    with pytest.raises(ValueError, match=r"aliases repeat|nests too deeply|merge keys"):
        yaml_entries(text)
