"""Pages of the runbook whose faults a world in memory can have, followed command by command."""

from __future__ import annotations

import copy
import json
import shlex
from pathlib import Path
from string import Template
from types import SimpleNamespace

import pytest

from common.planning.execution import Execution
from common.platform.planning_checks import PlanningState
from common.runs.outcome import Outcome
from common.storage import aws, keys
from common.storage.transactions import Transaction
from common.tenants.audit import Audit
from common.truth.truth import Truth
from minute8.cli.commands import check
from minute8.cli.doctor.item_checks import ItemChecks
from tests.cli.conftest import Desk
from tests.flows import test_export
from tests.runbook.pages import commands
from tests.worlds import ARN, World, at, damage_entry, job


def follow(desk: Desk, page: str, *parts: str, **variables: str) -> str:
    """Run the commands of a page, agree to what they ask, and return all that they print."""
    printed = ""
    for command in commands(page, "prod", *parts):
        program, *words = shlex.split(Template(command).substitute(variables))
        if program == "minute8":
            done = desk(*words, stdin="y\n" * 9)
            assert done.code == 0, f"$ {command}\n{done.out}{done.err}"
            printed += done.out
    return printed


def test_a_weekend_with_a_clock_change(desk: Desk) -> None:
    desk.office.alice("PUT", "/v1/jobs/night", job(cron="30 2 * * *", timezone="Europe/Paris"))
    assert "night" in follow(desk, "clock-change", "First look")
    follow(desk, "clock-change", "Fix", JOB="night")
    listed, _, _ = follow(desk, "clock-change", "Verify", JOB="night").partition("IN ")
    assert "night" not in listed


def test_a_release_of_tzdata(desk: Desk) -> None:
    """The release before the present one had other rules for Havana."""
    desk.office.alice("PUT", "/v1/jobs/south", job(cron="0 9 * * *", timezone="America/Havana"))
    assert "south" in follow(desk, "tzdata-release", "Verify")


def test_executions_without_a_record(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    world, due_at = desk.office.world, at("2026-11-21T03:20:00Z")
    desk.environment |= {"MINUTE8_STAGE": "test", "EXECUTIONS_QUEUE_URL": "queue"}
    monkeypatch.setattr(aws, "sqs", lambda: world.sqs)
    world.registry.create("alice", "lost", job(at="2026-11-21T03:20:00Z", start_deadline_s=3_600))
    world.sqs._waiting.clear()
    world.unrecorded.add([Execution("alice", "lost", due_at, due_at, 1)], due_at + 1_500)
    world.clock.move_to(due_at + 1_500)
    printed = follow(desk, "no-record", "First look", "Fix")
    assert "alice:lost:" in printed and "1 execution sent again" in printed
    world.deliver()
    assert world.target.fire_times("lost") == ["2026-11-21T03:20:00Z"]
    assert follow(desk, "no-record", "Verify") == "every planned execution has a record\n"


@pytest.fixture
def night(desk: Desk) -> Desk:
    """The desk of an operator who can act for alice."""
    desk.environment["MINUTE8_OPERATOR_KEY"] = desk.office.operator.key or ""
    return desk


def test_a_job_that_cannot_be_planned(night: Desk) -> None:
    world = night.office.world
    world.registry.put("alice", "damaged", job(cron="* * * * *"))
    world.registry.put("alice", "well", job(cron="* * * * *"))
    damage_entry(world, "alice", "damaged")
    world.run_until("2026-11-21T03:22:00Z", ticks=True)
    assert "1 job cannot be planned: entry alice#damaged" in follow(night, "quarantine", "First look")
    follow(night, "quarantine", "Fix", JOB="damaged")
    world.run_until("2026-11-21T03:49:00Z", ticks=True)
    assert "cannot be planned" not in follow(night, "quarantine", "Verify")
    fired = [world.target.fire_times(name) for name in ("damaged", "well")]
    assert set(fired[1]) - set(fired[0]) == {f"2026-11-21T03:{minute}:00Z" for minute in (20, 21, 22)}


def test_the_cost_jumps(night: Desk) -> None:
    world = night.office.world
    world.target.answer = lambda event: Outcome(ok=event["minute8"]["tenant"] == "alice", error_type="Boom")
    world.registry.put("alice", "seldom", job(cron="0 4 * * *"))
    for n in range(3):
        world.registry.put("bob", f"often-{n}", job(cron="* * * * *", retry={"max_attempts": 1}))
    for instant in ("03:20", "03:30", "03:40", "03:50"):
        world.run_until(f"2026-11-21T{instant}:00Z", ticks=True)
        world.project()
    problems, density, overview = (
        night(*shlex.split(command)[1:]).out for command in commands("cost-jump", "prod", "Decide")
    )
    assert "bob" in problems and "alice" not in problems
    assert "4321 executions" in density.replace(",", "")
    assert "alice" in overview and "bob" in overview
    assert follow(night, "cost-jump", "Decide") == problems + density + overview


def test_tables_go_back_to_an_instant(night: Desk) -> None:
    world = night.office.world
    night.office.alice("PUT", "/v1/jobs/report", job(cron="* * * * *", catch_up="none"))
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    before = copy.deepcopy(world.dynamodb.tables)
    night.office.alice("DELETE", "/v1/jobs/report")
    world.run_until("2026-11-21T03:50:00Z", ticks=True)
    output = follow(night, "restore", "First look", "Decide", TENANT="alice")
    assert "job.deleted" in output and "report" in output
    for name in ("test-jobs", "test-due"):
        world.dynamodb.tables[name] = before[name]
    world.run_until("2026-11-21T04:05:00Z", ticks=True)
    assert "2026-11-21T04:05:00Z" in world.target.fire_times("report")
    assert len(world.target.fire_times("report")) == len(set(world.target.fire_times("report")))


def test_a_region_is_lost(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The desk's stage is the one elsewhere: nothing is registered there."""
    files = tmp_path / "files" / "jobs"
    files.mkdir(parents=True)
    (files / "report.yaml").write_text(
        f"job_id: report\nschedule: {{cron: '* * * * *'}}\ntarget: {{kind: lambda, arn: '{ARN}'}}\n"
    )
    monkeypatch.chdir(files.parent)
    assert "1 to create" in follow(desk, "region-lost", "Fix")
    desk.office.world.run_until("2026-11-21T03:15:00Z", ticks=True)
    assert "2026-11-21T03:15:00Z" in desk.office.world.target.fire_times("report")


def test_the_export_of_runs_fails(world: World) -> None:
    """The bucket refuses; once it takes files again, a round writes the days that are missing."""
    platform = test_export.of_world(world)
    platform.pass_time("2026-11-23T02:10:00Z")

    def refuse() -> None:
        raise PermissionError("AccessDenied")

    platform.bucket.before = refuse
    failed = platform.go()
    assert any("AccessDenied" in text for text in failed.problems + failed.errors)
    assert all(command.startswith("aws ") for command in commands("exporter-errors", "prod"))
    platform.bucket.before = lambda: None
    platform.round()
    assert platform.exported() == platform.over() != set()


@pytest.fixture
def loss(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the doctor says of losses, each once. `minute8 check` reads the desk's world."""
    world, losses = desk.office.world, list[str]()
    deployment = SimpleNamespace(
        truth=lambda: Truth(
            world.tables, world.queue, world.clock, stored=ItemChecks(world.tables, world.clock)
        ),
        planning=lambda: PlanningState(world.table("due"), world.clock, "test"),
    )
    monkeypatch.setattr(check, "connect", lambda *_: deployment)
    monkeypatch.setattr(check, "losses", lambda _: losses.pop() if losses else "")
    return losses


def words_of(page: str, *parts: str) -> list[list[str]]:
    """The words of the page's commands of `minute8`."""
    return [
        shlex.split(command)[1:]
        for command in commands(page, "prod", *parts)
        if command.startswith("minute8")
    ]


def test_tables_contradict_each_other(desk: Desk, loss: list[str]) -> None:
    """A due entry was deleted by hand. Nothing is sent while the doctor finds a loss."""
    world = desk.office.world
    loss.append("a queue keeps messages for 60 s")
    world.registry.put("alice", "often", job(every="10m"))
    stored = world.store.get("alice", "often")
    world.table("due").delete(keys.due_entry(stored.group, stored.shard, "alice", "often"))
    first, fix, verify = words_of("contradictions", "First look", "Fix", "Verify")
    done = desk(*first)
    assert (done.code, "entry-missing" in done.out, "alice/often" in done.out) == (1, True, True)
    assert "could be lost: a queue keeps messages for 60 s" in desk(*fix, stdin="y\n").out
    done = desk(*fix, stdin="y\n")
    assert (done.code, "entry-missing alice/often: repaired" in done.out) == (0, True), done.out
    assert desk(*verify).out == "jobs, due entries, groups, tenants, audit and runs agree\n"
    assert json.loads(desk(*verify, "--json").out) == {"contradictions": []}


def test_a_tenant_without_its_item(desk: Desk, loss: list[str]) -> None:
    world = desk.office.world
    world.registry.put("alice", "often", job(every="10m"))
    before = world.table("tenants").get(keys.tenant("alice"))
    world.table("tenants").delete(keys.tenant("alice"))
    fix, verify = words_of("skips", "Fix", "Verify")
    done = desk(*fix, stdin="y\n")
    assert (done.code, "tenant-missing alice: repaired" in done.out) == (0, True), done.out
    assert desk(*verify).code == 0
    assert world.table("tenants").get(keys.tenant("alice")) == before


def test_a_wiped_table_of_tenants(desk: Desk, loss: list[str]) -> None:
    """What its audit has is written anew; keys and secrets are named, and bring nothing back: exit 1."""
    world, office = desk.office.world, desk.office
    world.registry.put("alice", "often", job(every="10m"))
    assert office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"jobs": 77}}).status == 200
    world.secrets.put("alice", "token", "s3cret-token", world.clock.now())
    table = world.table("tenants")
    twins = {
        sk: table.get(key)
        for sk, key in {"item": keys.tenant("alice"), "list": keys.tenant_listing("alice")}.items()
    }
    for item in world.dynamodb.scan(TableName="test-tenants")["Items"]:
        world.dynamodb.delete_item(TableName="test-tenants", Key={"pk": item["pk"], "sk": item["sk"]})
    first, fix, verify = words_of("contradictions", "First look", "Fix", "Verify")
    assert "which are all skipped as if it were deleted; the list lacks it, too" in desk(*first).out
    done = desk(*fix, stdin="y\n")
    assert (done.code, "tenant-missing alice: repaired" in done.out) == (1, True), done.out
    assert {"item": table.get(keys.tenant("alice")), "list": table.get(keys.tenant_listing("alice"))} == twins
    assert "item-lost tenants alice SECRET#token: left: store it again" in done.out
    named = json.loads(desk(*verify, "--json").out)["contradictions"]
    lost_items = {each["of"].rpartition("#")[0] for each in named if each["name"] == "item-lost"}
    assert len(named) > len(lost_items) == 3  # several keys
    assert lost_items == {"tenants alice SECRET", "tenants alice KEYREF", "tenants OPERATORS# KEYREF"}
    world.run_until("2026-11-21T03:41:00Z", ticks=True)
    assert {run["status"] for run in world.run_items("alice", "often")} == {"succeeded"}


@pytest.mark.parametrize("missing", ["creation", "value", "deletion"])
def test_a_wiped_tenant_that_the_audit_does_not_tell_is_not_guessed(
    desk: Desk, loss: list[str], missing: str
) -> None:
    world, office = desk.office.world, desk.office
    world.registry.put("alice", "often", job(every="10m"))
    if missing == "value":
        targets = [f"host{number}.example.com" for number in range(90)]
        office.operator("PATCH", "/v1/tenants/alice", {"allowed_targets": targets})
    if missing == "deletion":
        tx = Transaction(world.dynamodb)
        Audit(world.tables.tenants).add(
            tx, keys.OPERATORS, "aws", "tenant.deleted", "alice", world.clock.now()
        )
        tx.commit()
    if missing == "creation":
        for item in Audit(world.tables.tenants).stored("alice", "", "~"):
            if item["action"] == "tenant.created":
                world.table("audit").delete(keys.key_of(item))
    for key in (keys.tenant("alice"), keys.tenant_listing("alice")):
        world.table("tenants").delete(key)
    done = desk("check", "--stage", "test", "--fix", stdin="y\n")
    words = {"value": "no value of allowed_targets", "deletion": "its deletion", "creation": "no creation"}
    assert (done.code, words[missing] in done.out) == (1, True), done.out
    assert world.table("tenants").get(keys.tenant("alice")) is None


def test_an_unreadable_item_is_put_back_and_discarded_by_name(desk: Desk, loss: list[str]) -> None:
    world = desk.office.world
    key = keys.pending("alice", "report", 7)
    world.table("due").put({**key, "entry": 7})
    world.run_until("2026-11-21T03:19:00Z", ticks=True)
    name = f"{key['pk']} {key['sk']}"
    assert name in desk("check", "--stage", "test").out
    put_back = desk("check", "--stage", "test", "--put-back", name)
    assert (put_back.code, put_back.out.splitlines()[0]) == (0, f"put back: {name}")
    assert world.table("due").get(key)
    world.run_until("2026-11-21T03:29:00Z", ticks=True)
    discarded = desk("check", "--stage", "test", "--discard", name)
    assert (discarded.code, discarded.out.splitlines()[0]) == (0, f"discarded: {name}")
    again = desk("check", "--stage", "test", "--discard", name)
    assert (again.code, again.err) == (3, f"minute8: no unreadable item {name!r}\n")
