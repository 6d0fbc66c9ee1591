"""Any attribute of any kind of item of a tenant becomes anything: no tick stops, no other tenant's run is missed, no
request of anybody fails with an error of ours.

Of each kind of item in each table each attribute becomes each wrong type, an absurd time, or is deleted; the item is
deleted, doubled under another key, or becomes the other tenant's. Doctor and check name it, or SILENT says why not.
`make test` plays a sample, a release 1,000.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from common.platform.findings import Level
from common.platform.planning_checks import PlanningState, findings
from common.registration.definition import as_written
from common.runs.outcome import Outcome
from common.storage import keys
from common.tenants.audit import Audit
from common.tenants.audit_chain import AuditSeals
from common.timing.instants import DAY_S
from common.truth.truth import Truth
from minute8.cli.audit_comparison import verified
from minute8.cli.doctor.item_checks import ItemChecks
from minute8.cli.doctor.truth import listed
from minute8.eventbridge.groups import ScheduleGroup
from scheduler import handler
from tests.api import conftest
from tests.api.calls import Office
from tests.planning.test_wrong_types import WRONG, Wire
from tests.scheduler_handler import serve
from tests.worlds import at, job

NOW = at("2026-11-21T03:48:00Z")
ABSURD = {"far": {"N": str(at("2096-01-01T00:00:00Z"))}, "past": {"N": "-1"}, "endless": {"N": "9" * 30}}
TABLES = ("jobs", "runs", "tenants", "audit", "due")
# Keys of an index: DynamoDB refuses an item that has one of another type.
INDEXED = ("failed_tenant", "failed_at")
SAMPLE, RELEASE = 12, 1_000
GETS = (
    *(
        "/v1/jobs",
        "/v1/jobs?health=true",
        "/v1/jobs?sort=name",
        "/v1/jobs/report",
        "/v1/runs",
        "/v1/failures",
    ),
    *("/v1/failures/groups", "/v1/overview", "/v1/summary", "/v1/expected", "/v1/upcoming", "/v1/calendars"),
    *("/v1/secrets", "/v1/subscriptions", "/v1/keys", "/v1/audit", "/v1/tenant", "/v1/jobs/report/runs"),
    *(
        "/v1/jobs/report/summary",
        "/v1/jobs/report/expected",
        "/v1/jobs/report/backfills",
        "/v1/failures/muted",
    ),
)
OPERATOR = ("/v1/tenants", "/v1/operator-overview", "/v1/planning", "/v1/unrecorded", "/v1/tenants/alice")


# What nobody names, and why.
SILENT = {
    r".* expires_at ": "DynamoDB alone reads it",
    r"(due|audit) .* \(item\) bob's$": "an attribute that such items do not have is read by nobody",
    r"due (CHORES|WINDOWS|PROGRESS|UNRECORDED) ": "ticks write it anew",
    r"due LISTED#\S+ .* \(item\) doubled": "a shard that is listed twice is planned once",
    r"due LOG#": "the projection reports in its log what it cannot read; of what is deleted nothing is known",
    r"jobs \S+ ASKED#.* \(item\) ": "its run says that it is gone; once it ran only a repeated request needs it",
    r"jobs \S+ ASKED#.* (payload|secrets) deleted": "it may be absent; its run says that it is",
    r"jobs \S+ (ADDITIONS|LISTED|ONCE|STREAK)#|jobs (SUBSCRIBERS|STOPPED)#": "it is written anew",
    r"jobs \S+#exports ": "a day whose state cannot be read is exported anew; its round names what it cannot do",
    r"jobs \S+ JOB#.* (is_failing|not_running) ": "a hint, which the next run writes anew",
    r"jobs \S+ SCHEDULE_GROUP#|tenants GROUP_DELETIONS#": "check reads no groups of schedules; the API refuses them",
    r"jobs \S+ (CALENDAR|MUTED|BACKFILL|FORMER|SUBSCRIPTION)#.* \(item\) deleted": "nothing else says that it was",
    r"jobs \S+ (CALENDAR|SUBSCRIPTION)#.* (revision|version|created_at|updated_at) deleted": "it may be absent",
    r"jobs \S+ FORMER#.* revision deleted": "then it only says that runs may be left",
    r"jobs \S+ MUTED#.* (error|error_type|note|until_at) deleted": "it may be absent",
    r"jobs \S+ BACKFILL#.* (sent|is_started|cancelled_at) deleted": "it may be absent",
    r"jobs \S+#text .* \(item\) (doubled|bob's|in bob's)": "no job names the copy",
    r"runs (LINES##|\S+##(days|chunks)) ": "it is written anew",
    r"runs \S+permits? .* (etag .*|\(item\) .*)": "the runs' records say who goes and who waits",
    r"runs \S+#permit ": "who goes is known by the runs' records; check reads keys with a line",
    r"runs \S+#": "the projection names what it cannot read of the last hour",
    r"tenants TENANT_CHANGES# ": "executors read the tenant an hour later",
    r"tenants \S+ (ADDITIONS#|RATE)": "it is written anew",
    r"tenants (\S+ (SECRET#|WEBHOOK)|BLOCKS# ).* \(item\) (deleted|bob's|in bob's)": "nothing else says it",
    r"tenants (\S+ WEBHOOK|BLOCKS# ).* (created_at|revision) ": "nothing depends on it",
    r"tenants BLOCKS# .* blocks deleted": "nothing else says that there were any",
    r"tenants KEY#.* \(item\) doubled": "a key is found by its hash: nobody can send the other one",
    r"tenants \S+ KEYREF#.* \(item\) deleted": "the key still works; the audit has its creation",
    r"tenants \S+ KEYREF#.* (valid_until|revoked_at|access_key_id) (deleted|null)": "it may be absent",
    r"tenants \S+ TENANT \(item\) doubled": "nobody reads it",
    r"tenants leaving ": "the tenant is gone",
}


class Damage(NamedTuple):
    """What becomes of an item; `value` None: the attribute, or without a name the item, is deleted."""

    table: str
    item: Wire
    name: str
    kind: str
    value: Wire | None

    def __str__(self) -> str:
        pk, sk = self.item["pk"]["S"], self.item["sk"]["S"]
        return f"{self.table} {pk} {sk} {self.name or '(item)'} {self.kind}"

    @property
    def is_of_its_type(self) -> bool:
        """Whether the attribute has another value of its own type, which only a fact stored elsewhere can show."""
        return self.value is not None and self.name != "" and self.value.keys() == self.item[self.name].keys()

    @property
    def silence(self) -> str:
        """Why neither doctor nor check has to name it; empty: they have to."""
        if self.is_of_its_type:
            return "another value of the same type"
        return next((reason for pattern, reason in SILENT.items() if re.match(pattern, str(self))), "")


def damages_of(tables: Mapping[str, Iterable[Wire]]) -> Iterator[Damage]:
    """All damages of one item of each form that a kind of item has which is not bob's."""
    forms: dict[Any, tuple[str, Wire]] = {}
    for table, items in tables.items():
        for item in items:
            pk, sk = item["pk"]["S"], item["sk"]["S"]
            if "bob" not in f"{pk} {sk} {item.get('tenant')}":
                kind = re.sub(r"[0-9a-f]{8,}|\d+", "0", f"{pk.partition('#')[0]} {sk.partition('#')[0]}")
                forms.setdefault((table, kind, *sorted(item)), (table, item))
    for table, item in forms.values():
        yield Damage(table, item, "", "deleted", None)
        yield Damage(table, item, "", "doubled", {**item, "sk": {"S": f"{item['sk']['S']}~"}})
        yield Damage(table, item, "", "bob's", {**item, "tenant": {"S": "bob"}})
        if "alice" in (pk := item["pk"]["S"]):
            yield Damage(table, item, "", "in bob's", {**item, "pk": {"S": pk.replace("alice", "bob")}})
        for name in sorted({*item} - {"pk", "sk"}):
            for kind, value in {**WRONG, **ABSURD}.items():
                if name not in INDEXED or value is None or value.keys() == item[name].keys():
                    yield Damage(table, item, name, kind, value)


class Played:
    """A stage at minute 48 with all that two tenants can have; restored for each damage."""

    def __init__(self, office: Office, patched: pytest.MonkeyPatch) -> None:
        self.office, self.world, self.patched = office, office.world, patched
        world = office.world
        serve(world, patched)
        world.tick = lambda: handler.handle({}, None)  # type: ignore[method-assign, assignment]
        conftest.settle(office, office.alice, office.bob)
        for who in (office.alice, office.bob):
            who("PUT", "/v1/jobs/alone", job(cron="* * * * *", overlap="skip", payload="x" * 3_000))
            who("PUT", "/v1/jobs/keyed", job(cron="*/2 * * * *", concurrency={"key": "k", "limit": 1}))
        self._add_other_kinds()
        world.run_until("2026-11-21T03:47:30Z", ticks=True)
        world.clock.move_to(NOW)
        for owner in ("alice", "bob", keys.OPERATORS):  # whatever is older than twenty minutes
            assert AuditSeals(Audit(world.tables.tenants)).seal(owner, NOW, 1)
        for path in GETS:  # some of what is read is kept
            office.alice("GET", path)
        self._saved = world.dynamodb.saved()
        self._waiting = list(world.sqs._waiting)

    def _add_other_kinds(self) -> None:
        """What only alice has."""
        world = self.world

        def alice(*request: Any, **headers: str) -> None:
            answer = self.office.alice(*request, **headers)
            assert answer.status < 300, (request, answer.json)

        answer = world.target.answer
        world.target.answer = lambda event: (
            Outcome(ok=False, error_type="Later", error="try again")
            if event["minute8"]["job_id"] == "retries"
            else answer(event)
        )
        alice("PUT", "/v1/jobs/gone", job(every=600))
        world.clock.sleep(1)  # of two changes of the same instant nobody knows which one was the last
        alice("DELETE", "/v1/jobs/gone")
        alice("POST", "/v1/jobs", job(every=3_600), Idempotency_Key='"one"')
        alice("POST", "/v1/jobs/report/run", {"nonce": "own", "payload": {"customer": 7}})
        self.office.alice_admin("GET", "/v1/webhook-secret")
        waits: dict[str, Any] = {"completion": "callback", "callback_timeout_s": 2_400}
        alice(
            "PUT", "/v1/jobs/line", job(cron="*/4 * * * *", concurrency={"key": "line", "limit": 1}, **waits)
        )
        alice("PUT", "/v1/jobs/blocked", job(cron="*/3 * * * *", overlap="skip", **waits))
        retry = {"max_attempts": 4, "base_s": 2_400, "cap_s": 2_400}
        alice("PUT", "/v1/jobs/retries", job(cron="20 3 * * *", retry=retry))
        for state in ("ACTIVE", "DELETING"):
            group = ScheduleGroup("alice", f"group-{state.lower()}", NOW, NOW, state)
            world.table("jobs").put(group.to_item())
        deletion = {**keys.group_deletion("alice", group.name), "tenant": "alice", "name": group.name}
        world.table("tenants").put(deletion)
        exported = {
            "fingerprint": "f",
            "parts": 1,
            "next_start": NOW,
            "is_done": False,
            "expires_at": NOW + DAY_S,
        }
        world.table("jobs").put({**keys.exported_day("alice", "2026-11-20"), **exported})
        reserved = {"next_at": NOW + 60.0, "run": "20261121T032000Z", "expires_at": NOW + DAY_S}
        world.table("runs").put({**keys.throttled("alice", "retries"), **reserved})

    def restore(self) -> None:
        self.world.dynamodb.restore(self._saved)
        self._saved = self.world.dynamodb.saved()
        self.world.clock.move_to(NOW)
        self.world.sqs._waiting = list(self._waiting)
        conftest.serve(self.world, self.patched)

    def damages(self) -> Iterator[Damage]:
        """All damages of one item of each form that a kind of item of alice's has."""
        tables = {table: self.world.dynamodb.scan(TableName=f"test-{table}")["Items"] for table in TABLES}
        return damages_of(tables)

    def apply(self, damage: Damage) -> None:
        table = f"test-{damage.table}"
        if damage.name:
            item = {**damage.item, damage.name: damage.value}
            self.world.dynamodb._set(table, damage.item, {name: was for name, was in item.items() if was})
        elif damage.value is None:
            self.world.dynamodb._set(table, damage.item, None)
        else:
            self.world.dynamodb._set(table, damage.value, damage.value)

    def messages(self) -> list[str]:
        """What doctor and check say."""
        world = self.world
        truth = Truth(
            world.tables, world.queue, world.clock, as_written, ItemChecks(world.tables, world.clock)
        )
        planning = findings(PlanningState(world.tables.due, world.clock, "dev"))
        messages = [finding.message for finding in planning if finding.level != Level.OK]
        audit = Audit(world.tables.tenants)
        for owner in ("alice", "bob", keys.OPERATORS):
            messages += [tampering.name for tampering in verified(audit, owner, world.clock.now()).tamperings]
        return messages + [f"{item.name} {item.subject.name}" for item in listed(truth.all())]

    def play(self, damage: Damage) -> list[str]:
        """What goes wrong for others, or for us."""
        self.restore()
        self.apply(damage)
        world = self.world
        problems = []
        try:
            messages = self.messages()
            # A run whose message is gone is named when it should have gone on.
            until = "04:29:30" if "POSTPONED#" in str(damage) else "03:59:30"
            world.run_until(f"2026-11-21T{until}Z", ticks=True)
            messages += self.messages()
            if not messages and not damage.silence:
                problems.append("neither doctor nor check names it")
        except Exception as error:  # noqa: BLE001  all are shown
            problems.append(repr(error)[:300])
        fired = {run["fire_at"] for run in world.run_items("bob", "alone")}
        if missed := set(range(NOW + 120, at("2026-11-21T03:59:00Z"), 60)) - fired:
            problems.append(f"{len(missed)} runs of bob's are missed")
        for who, path in (
            *((self.office.alice, path) for path in GETS),
            *((self.office.bob, path) for path in GETS),
            *((self.office.operator, path) for path in OPERATOR),
        ):
            answer = who("GET", path)
            if answer.status >= 500 or (who is self.office.bob and answer.status not in (200, 403)):
                problems.append(f"{path}: {answer.status}")
        return problems


@pytest.fixture
def played(office: Office, monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played(office, monkeypatch)


def play(played: Played, count: int, seed: int) -> None:
    damages = list(played.damages())
    wrong = []
    for damage in random.Random(seed).sample(damages, min(count, len(damages))):
        if problems := played.play(damage):
            wrong.append(f"{damage}: {problems}")
    assert not wrong, f"{len(wrong)} of {count}\n" + "\n".join(wrong)


def test_nothing_is_wrong_before(played: Played) -> None:
    item = next(played.damages()).item
    assert "neither doctor nor check names it" in played.play(Damage("jobs", item, "", "as it is", item))


def test_doctor_and_check_name_each_kind_of_damage(played: Played) -> None:
    by_kind = {
        (damage.table, *(part.partition("#")[0] for part in str(damage).split()[1:3]), damage.name): damage
        for damage in played.damages()
        if not damage.silence and damage.table != "runs" and "POSTPONED#" not in str(damage)
    }
    silent = []
    for damage in by_kind.values():
        played.restore()
        played.apply(damage)
        if not played.messages():
            silent.append(str(damage))
    assert not silent


def test_a_sample_of_damages_stops_nobody(played: Played) -> None:
    play(played, SAMPLE, seed=1)


@pytest.mark.release
@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_damages_stop_nobody(played: Played, seed: int) -> None:
    play(played, RELEASE // 10, seed=100 + seed)


def test_a_damaged_note_of_late_runs_stops_no_look_at_health(played: Played) -> None:
    item = next(damage.item for damage in played.damages() if "LATE#" in damage.item["sk"]["S"])
    assert played.play(Damage("runs", item, "runs", "true", WRONG["true"])) == []


def test_a_damaged_count_of_failures_stops_no_overview_of_the_platform(played: Played) -> None:
    item = next(damage.item for damage in played.damages() if "STREAK#blocked" in damage.item["sk"]["S"])
    assert played.play(Damage("jobs", item, "failures", "binary", WRONG["binary"])) == []


@pytest.mark.parametrize(("name", "kind"), [("", "deleted"), ("body", "list")])
def test_a_run_whose_kept_message_is_damaged_is_named(played: Played, name: str, kind: str) -> None:
    damages = (each for each in played.damages() if "POSTPONED#" in str(each))
    damage = next(each for each in damages if (each.name, each.kind) == (name, kind))
    assert played.play(damage) == []


@pytest.mark.parametrize("name", ["before", "action", "by", "at"])
def test_a_damaged_audit_entry_keeps_its_place_and_stops_no_reader(played: Played, name: str) -> None:
    item = next(damage.item for damage in played.damages() if damage.table == "audit")
    for kind in ("deleted", "list", "binary"):
        assert played.play(Damage("audit", item, name, kind, WRONG[kind])) == [], kind
        entries = played.office.alice_admin("GET", "/v1/audit?limit=200").json["entries"]
        damaged = [entry["entry_id"] for entry in entries if entry["action"] == "unreadable"]
        assert damaged == [item["sk"]["S"].removeprefix("AUDIT#")], kind


def test_damaged_projections_and_directories_are_made_anew(played: Played) -> None:
    kinds = (
        ("PROJECTION## ", "tenants", "far"),
        ("##windows ", "runs", "endless"),
        (" OUTCOMES# ", "until", "text"),
        (" LISTED# ", "up_to", "list"),
        (" LISTED# ", "chunks", "binary"),
        (" AUDIT#", "times", "text"),
        (" STREAK#fails", "failed_run", "deleted"),
        (" STREAK#fails", "failed_run", "far"),
        (" STREAK#fails", "failures", "far"),
        (" STREAK#fails", "failures", "binary"),
        (" STREAK#fails", "revision", "deleted"),
    )
    wrong = []
    for place, name, kind in kinds:
        damage = next(
            each for each in played.damages() if place in str(each) and (each.name, each.kind) == (name, kind)
        )
        for path in (*GETS, OPERATOR[1]):
            played.restore()
            played.apply(damage)
            who = played.office.operator if path in OPERATOR else played.office.alice
            wrong += [(str(damage), path, n) for n in (1, 2) if who("GET", path).status >= 500]
    assert wrong == []


def test_a_damaged_count_in_the_log_of_planning_stops_no_look(played: Played) -> None:
    """Many tenants share a part of the log: `due LOG#0 … count list` answered bob 500 on the embedded AWS."""
    played.restore()
    for item in played.world.dynamodb.scan(TableName="test-due")["Items"]:
        if item["pk"]["S"].startswith("LOG#"):
            played.apply(Damage("due", item, "count", "list", WRONG["list"]))
    for who in (played.office.alice, played.office.bob):
        assert [path for path in GETS if who("GET", path).status >= 500] == []
