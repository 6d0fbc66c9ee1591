"""`minute8 tenants`, `keys`, `operator-keys` and `quotas`: the same over the API and on the tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from common.planning.execution import Execution
from common.storage import aws, keys
from minute8.cli.commands import restored
from tests.api.calls import Caller
from tests.cli.conftest import Desk
from tests.worlds import ARN, at, job


@pytest.fixture(params=["over the API", "on the tables"])
def either(desk: Desk, request: pytest.FixtureRequest) -> Desk:
    """The operator's terminal: with an operator key, or with AWS credentials."""
    del desk.environment["MINUTE8_KEY"]
    if request.param == "over the API":
        desk.environment["MINUTE8_OPERATOR_KEY"] = cast(str, desk.office.operator.key)
        del desk.environment["TENANTS_TABLE"]
    return desk


@pytest.fixture
def admin(desk: Desk) -> Desk:
    """A terminal of alice's admin, without access to the tables."""
    desk.environment["MINUTE8_KEY"] = cast(str, desk.office.alice_admin.key)
    desk.environment["TENANTS_TABLE"] = "test-nothing"
    return desk


def test_from_a_tenant_to_its_first_call_and_the_end_of_its_key(either: Desk) -> None:
    assert "carol created" in either("tenants", "create", "carol", "--name", "Carol & Co").out
    created = either("keys", "create", "carol", "--role", "read", "--name", "dashboard", "--expires", "90d")
    key = created.out.strip()
    assert re.fullmatch(r"m8_[0-9A-Za-z]{49}", key)
    assert "read for carol, until 2027-02-19T03:12:00Z (in 90 d)" in created.err
    caller = Caller(key)
    assert caller("GET", "/v1/tenant").json["name"] == "Carol & Co"
    listed = either("keys", "list", "carol").out
    key_id = listed.splitlines()[1].split()[0]
    assert "active" in listed and "dashboard" in listed and key not in listed
    shown = either("tenants", "show", "carol").out
    assert shown.startswith("carol (Carol & Co)") and key_id in shown
    assert "revoked" in either("keys", "revoke", "carol", key_id).out
    either.office.world.clock.sleep(31)
    assert caller("GET", "/v1/tenant").status == 401
    assert "revoked" in either("keys", "list", "carol").out


def test_no_key_is_stored_or_shown_again(either: Desk) -> None:
    created = either("keys", "create", "alice", "--json").json
    assert created["role"] == "write" and created["state"] == "active" and created["expires_at"] is None
    stored = str(either.office.stored())
    assert created["key"] not in stored and created["key"][8:] not in stored
    for output in (either("keys", "list", "alice", "--json"), either("tenants", "show", "alice", "--json")):
        assert created["key"] not in output.out and created["key_id"] in output.out


def test_the_list_of_tenants(either: Desk) -> None:
    assert [tenant["tenant_id"] for tenant in either("tenants", "list", "--json").json] == ["alice", "bob"]
    either("tenants", "suspend", "alice", "--note", "not paid")
    rows = [line.split() for line in either("tenants", "list").out.splitlines()]
    assert rows[1:] == [
        ["alice", "suspended", "now", "Alice", "not", "paid"],
        ["bob", "active", "now", "Bob"],
    ]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("tenants", "create", "alice"), 4, "exists already"),
        (("tenants", "create", "a/b"), 2, "tenant_id"),
        (("tenants", "create", "a#b"), 2, "tenant_id"),
        (("tenants", "create", "x" * 65), 2, "tenant_id"),
        (("tenants", "create", "аlice"), 2, "tenant_id"),
        (("tenants", "create", "x", "--name", "x" * 201), 2, "name"),
        (("tenants", "show", "nobody"), 3, "nobody"),
        (("keys", "create", "nobody"), 3, "nobody"),
        (("keys", "create", "alice", "--role", "king"), 2, "king"),
        (("keys", "create", "alice", "--expires", "soon"), 2, "soon"),
        (("keys", "create", "alice", "--expires", "2020-01-01T00:00:00Z"), 2, "past"),
        (("keys", "list", "nobody"), 3, "nobody"),
        (("keys", "revoke", "alice", "nothing"), 3, "nothing"),
        (("keys", "revoke", "nobody", "nothing"), 3, "nobody"),
        (("keys", "revoke", "alice", "nothing", "else"), 2, "key's id"),
        (("tenants", "edit", "alice"), 2, "nothing to change"),
        (("tenants", "edit", "nobody", "--name", "x"), 3, "nobody"),
        (("tenants", "edit", "alice", "--allow-target", "https://x/"), 2, "allowed_targets.0"),
        (("tenants", "edit", "alice", "--allow-target", "*", "--allow-nothing"), 2, "exclude"),
        (("tenants", "suspend", "nobody"), 3, "nobody"),
        (("tenants", "resume", "nobody"), 3, "nobody"),
        (("quotas", "show", "nobody"), 3, "nobody"),
        (("quotas", "set", "alice", "jobs"), 2, "jobs=100"),
        (("quotas", "set", "alice", "jobs=many"), 2, "many"),
        (("quotas", "set", "alice", "moons=1"), 2, "moons"),
        (("operator-keys", "create", "--expires", "2020-01-01T00:00:00Z"), 2, "past"),
        (("operator-keys", "revoke", "nothing"), 3, "nothing"),
        (("audit", "nobody"), 3, "nobody"),
        (("audit", "alice", "--until", "soon"), 2, "soon"),
    ],
)
def test_refusals_store_nothing(either: Desk, words: tuple[str, ...], code: int, message: str) -> None:
    before = either.office.stored()
    refused = either(*words)
    assert (refused.code, message in refused.err, refused.out) == (code, True, ""), refused
    assert either.office.stored() == before


def test_another_tenants_key_cannot_be_revoked(either: Desk) -> None:
    key_id = either("keys", "list", "bob", "--json").json[0]["key_id"]
    assert either("keys", "revoke", "alice", key_id).code == 3
    assert either("keys", "list", "bob", "--json").json[0]["state"] == "active"


def test_a_tenant_is_changed_by_what_the_options_name(either: Desk) -> None:
    words = ("tenants", "edit", "alice", "--quota", "jobs=7", "--quota", "payload_bytes=9")
    assert "alice is changed" in either(*words, "--retention-days", "90").out
    changed = either("tenants", "edit", "alice", "--allow-target", "*.alice.example", "--json").json
    assert (changed["quotas"]["jobs"], changed["quotas"]["payload_bytes"]) == (7, 9)
    assert (changed["retention_days"], changed["allowed_targets"]) == (90, ["*.alice.example"])
    assert changed["name"] == "Alice" and changed["revision"] == 3
    assert either("tenants", "edit", "alice", "--allow-nothing", "--json").json["allowed_targets"] == []
    shown = either("tenants", "show", "alice").out
    assert "may call nothing" in shown and "kept for 90 days" in shown


def test_a_tenant_is_suspended_and_resumed(either: Desk) -> None:
    suspended = either("tenants", "suspend", "alice", "--note", "unpaid", "--json").json
    assert (suspended["state"], suspended["note"]) == ("suspended", "unpaid")
    assert "suspended: unpaid" in either("tenants", "show", "alice").out
    assert either("quotas", "show", "alice").out.startswith("alice is suspended: unpaid\n")
    assert "alice is resumed" in either("tenants", "resume", "alice").out
    assert "Alice), active, created" in either("tenants", "show", "alice").out


def test_quotas_next_to_what_is_used(either: Desk) -> None:
    either.office.alice("PUT", "/v1/jobs/report", {**_JOB, "schedule": {"every": 3600}})
    shown = either("quotas", "set", "alice", "jobs=3", "executions_per_day=24").out
    rows = [line.split() for line in shown.splitlines()]
    assert rows[1:3] == [["jobs", "3", "1", "33", "%"], ["executions_per_day", "24", "24", "100", "%"]]
    assert either("quotas", "show", "alice").out == shown
    shown = either("quotas", "show", "alice", "--json").json
    assert (shown["quotas"]["jobs"], shown["usage"]["jobs"]) == (3, 1)
    assert either("quotas", "set", "alice", "jobs=default", "--json").json["quotas"]["jobs"] == 10_000


def test_the_platforms_own_keys(either: Desk) -> None:
    created = either("operator-keys", "create", "--name", "deployer", "--expires", "90d")
    assert "operator, over all tenants, until 2027-02-19" in created.err
    key = Caller(created.out.strip())
    assert key("GET", "/v1/tenants").status == 200
    (row,) = [line for line in either("operator-keys", "list").out.splitlines() if "deployer" in line]
    assert "revoked" in either("operator-keys", "revoke", row.split()[0]).out
    either.office.world.clock.sleep(31)
    assert key("GET", "/v1/tenants").status == 401


def test_both_answer_the_same(desk: Desk) -> None:
    words = [
        ("tenants", "list", "--json"),
        ("tenants", "show", "alice", "--json"),
        ("tenants", "show", "alice"),
        ("keys", "list", "alice", "--json"),
        ("quotas", "show", "alice"),
        ("operator-keys", "list", "--json"),
        ("audit", "alice", "--json"),
        ("audit", "alice", "--action", "key.created", "--since", "2h", "-n", "2"),
        ("audit", "--platform", "--json"),
    ]
    on_tables = [desk(*command) for command in words]
    requests_before = len(desk.transport.requests)
    desk.environment["MINUTE8_OPERATOR_KEY"] = cast(str, desk.office.operator.key)
    assert [desk(*command) for command in words] == on_tables
    assert len(desk.transport.requests) >= requests_before + len(words)


def test_the_audit_goes_on_over_pages_also_on_the_tables(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minute8.cli.platform_tables._ENTRIES_IN_PAGE", 2)
    of_alice = desk("audit", "alice", "--json").json
    assert len(of_alice) >= 5
    assert len({entry["entry_id"] for entry in of_alice}) == len(of_alice)


def test_a_stage_is_of_the_tables_also_with_an_operator_key(desk: Desk) -> None:
    desk.environment["MINUTE8_OPERATOR_KEY"] = cast(str, desk.office.operator.key)
    assert desk("tenants", "list", "--stage", "test").code == 0
    assert desk.transport.requests == []


def test_the_operator_key_of_a_profile(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "minute8").mkdir()
    lines = [
        "[profiles.default]",
        'url = "https://api.test"',
        f'operator_key = "{desk.office.operator.key}"',
        "[profiles.nowhere]",
        f'operator_key = "{desk.office.operator.key}"',
    ]
    (tmp_path / "minute8" / "config.toml").write_text("\n".join(lines))
    assert desk("tenants", "list").code == 0
    assert len(desk.transport.requests) == 1
    refused = desk("--profile", "nowhere", "tenants", "list")
    assert (refused.code, "MINUTE8_URL" in refused.err) == (2, True)


def test_a_tenants_key_does_not_do_for_the_platform(desk: Desk) -> None:
    desk.environment["MINUTE8_OPERATOR_KEY"] = cast(str, desk.office.alice_admin.key)
    refused = desk("tenants", "list")
    assert (refused.code, "'operator'" in refused.err) == (5, True)


def test_an_admin_sees_to_its_own_keys(admin: Desk) -> None:
    created = admin("keys", "create", "--role", "admin", "--name", "next")
    assert "admin for your tenant" in created.err
    new = Caller(created.out.strip())
    assert new("GET", "/v1/tenant").json["tenant_id"] == "alice"
    (row,) = [line for line in admin("keys", "list").out.splitlines() if "next" in line]
    assert "revoked" in admin("keys", "revoke", row.split()[0]).out
    assert new("GET", "/v1/tenant").status == 401
    states = [key["state"] for key in admin("keys", "list", "--json").json if key["name"] == "next"]
    assert states == ["revoked"]


def test_only_an_admin_creates_keys(desk: Desk) -> None:
    refused = desk("keys", "create", "--role", "read")
    assert (refused.code, "'admin'" in refused.err) == (5, True)


def test_a_tenant_looks_at_its_own_quotas(desk: Desk) -> None:
    desk.office.alice("PUT", "/v1/jobs/report", {**_JOB, "schedule": {"every": 60}})
    shown = desk("quotas").out
    assert [line.split()[0] for line in shown.splitlines()[1:3]] == ["jobs", "executions_per_day"]
    assert "1,440" in shown and "0 %" in shown
    assert desk("quotas", "show").out == shown
    assert desk("quotas", "--json").json["usage"] == {"jobs": 1, "executions_per_day": 1440}


_JOB = {"target": {"kind": "lambda", "arn": ARN}}


@pytest.mark.parametrize("over_the_api", [True, False])
def test_a_target_is_held_and_released_in_one_command_each(desk: Desk, over_the_api: bool) -> None:
    stage: tuple[str, ...] = ("--stage", "test")
    if over_the_api:
        desk.environment["MINUTE8_OPERATOR_KEY"] = desk.office.operator.key or ""
        stage = ()
    assert desk("blocks", "list", *stage).out == "nothing is blocked\n"
    assert "outage" in desk("blocks", "add", "hooks.example.com", "--note", "outage", *stage).out
    (blocked,) = desk("blocks", "list", "--json", *stage).json
    assert (blocked["pattern"], blocked["note"], blocked["blocked_at"]) == (
        "hooks.example.com",
        "outage",
        "2026-11-21T03:12:00Z",
    )
    assert desk("blocks", "release", "other.example.com", *stage).code == 3
    assert desk("blocks", "release", "hooks.example.com", *stage).out == "nothing is blocked\n"
    assert desk("blocks", "add", "two words", *stage).code == 2


@pytest.mark.parametrize("over_the_api", [True, False])
def test_executions_without_a_record_are_listed_and_run_once(
    desk: Desk, over_the_api: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage: tuple[str, ...] = ("--stage", "test")
    if over_the_api:
        desk.environment["MINUTE8_OPERATOR_KEY"] = desk.office.operator.key or ""
        stage = ()
    desk.environment["EXECUTIONS_QUEUE_URL"] = "queue"
    world = desk.office.world
    monkeypatch.setattr(aws, "sqs", lambda: world.sqs)
    assert desk("unrecorded", "list", *stage).out == "every planned execution has a record\n"
    world.registry.create("alice", "late", job(cron="* * * * *", start_deadline_s=3_600))
    world.run_until("2026-11-21T03:16:00Z")  # 3:13 to 3:16 have run
    executions = [
        Execution("alice", "late", at(f"2026-11-21T03:{m}:00Z"), at(f"2026-11-21T03:{m}:00Z"), 1)
        for m in (13, 20, 21, 22)
    ]
    world.unrecorded.add(executions, world.clock.now())
    world.clock.move_to(at("2026-11-21T03:45:00Z"))
    listed = desk("unrecorded", "list", "--json", *stage).json
    assert [execution["due_at"][11:16] for execution in listed] == ["03:20", "03:21", "03:22"]
    assert {execution["sent_at"] for execution in listed} == {None}
    assert desk("unrecorded", "list", "--since", "24m", *stage).out.count("alice:late:") == 2
    assert desk("unrecorded", "run", "alice:late:20261121T032300Z", *stage).code == 3
    assert desk("unrecorded", "run", *stage).code == 2
    chosen = ("unrecorded", "run", executions[0].execution_id, executions[1].execution_id)
    queued = len(world.sqs._waiting)
    plan = desk(*chosen, *stage).out
    assert f"has a record meanwhile: {executions[0].execution_id}" in plan
    assert "alice/late" in plan and "1 execution would be sent again: nothing is sent without --yes" in plan
    assert len(world.sqs._waiting) == queued
    assert {execution["sent_at"] for execution in desk("unrecorded", "list", "--json", *stage).json} == {None}
    output = desk(*chosen, "--yes", *stage).out
    world.unrecorded.remove([executions[0]])  # as a tick does
    assert "has a record meanwhile" in desk("unrecorded", "run", executions[0].execution_id, *stage).out
    assert output.endswith("1 execution sent again\n")
    of_late = {"tenant_id": "alice", "job_id": "late", "executions": 3, "sent_before": 1, "known_by": {}}
    due = {"first_due_at": "2026-11-21T03:20:00Z", "last_due_at": "2026-11-21T03:22:00Z"}
    planned = desk("unrecorded", "run", "--all", "--json", *stage).json
    assert (planned["dry_run"], planned["jobs"]) == (True, [of_late | due])
    assert desk("unrecorded", "run", "--all", "--yes", *stage).out.endswith("3 executions sent again\n")
    world.deliver()
    assert desk("unrecorded", "list", *stage).out == "every planned execution has a record\n"
    assert world.target.fire_times("late").count("2026-11-21T03:20:00Z") == 1
    first, second, *_ = desk("audit", "--platform", "--json", *stage).json
    assert {first["action"], second["action"]} == {"executions.run"}
    assert {first["after"]["count"], second["after"]["count"]} == {3, 1}  # of one millisecond, in any order


def test_a_restore_of_the_runs_is_explained_and_what_had_a_record_gets_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs of four minutes are gone. Of one the executor's log knows."""
    world = desk.office.world
    world.scheduler.tick()
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:16:00Z")
    for run in world.run_items("alice", "minutely"):
        world.table("runs").delete(keys.key_of(run))
    line = {"message": "failed", "execution_id": "alice:minutely:20261121T031400Z"}
    pages = [{"events": [{"message": json.dumps(line)}, {"message": "failed: no JSON"}]}]
    logs = SimpleNamespace(
        get_paginator=lambda _: SimpleNamespace(paginate=lambda **_: pages),
        exceptions=SimpleNamespace(ResourceNotFoundException=LookupError),
    )
    deployment = SimpleNamespace(
        tables=lambda: world.tables,
        executions=lambda: world.queue,
        client=lambda _: logs,
        named=lambda part: f"minute8-test-{part}",
    )
    monkeypatch.setattr(restored, "connect", lambda *_: deployment)
    restore = ("restored", "--table", "runs", "--to", "03:12")
    calls = len(world.target.calls)
    plan = desk(*restore).out
    assert "runs as of 2026-11-21T03:12:00Z" in plan
    assert "nothing is recorded without --yes" in plan
    effects = {
        (each["table"], each["fate"]): each["total"] for each in desk(*restore, "--json").json["effects"]
    }
    assert (effects["runs", "called again"], effects["runs", "only recorded"]) == (3, 1)
    assert not world.run_items("alice", "minutely")
    assert "1 execution recorded anew" in desk(*restore, "--yes").out
    assert [run["status"] for run in world.run_items("alice", "minutely")] == ["dispatched"]
    assert len(world.target.calls) == calls
    assert desk(*restore[:-1], "25:99").code == 2
