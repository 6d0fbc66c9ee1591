"""Any attribute of any kind of item of a tenant becomes anything: no tick stops, no other tenant's run is missed, no
request of anybody fails with an error of ours.

Of each kind of item in each table each attribute becomes each wrong type, an absurd time, or is deleted; the item is
deleted, doubled under another key, or becomes the other tenant's. `make test` plays a sample, a release 1,000.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from common.platform.planning_checks import PlanningState, findings
from common.truth.truth import Truth
from scheduler import handler
from tests.api import conftest
from tests.api.calls import Office
from tests.planning.test_wrong_types import WRONG, Wire
from tests.scheduler_handler import serve
from tests.worlds import at, job

NOW = at("2026-11-21T03:48:00Z")
ABSURD = {"far": {"N": str(at("2096-01-01T00:00:00Z"))}, "past": {"N": "-1"}, "endless": {"N": "9" * 30}}
TABLES = ("jobs", "runs", "tenants", "audit", "due")
SAMPLE, RELEASE = 40, 1_000
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


class Damage(NamedTuple):
    """What becomes of an item; `value` None: the attribute, or without a name the item, is deleted."""

    table: str
    item: Wire
    name: str
    kind: str
    value: Wire | None


class Played:
    """A stage at minute 48 with all that two tenants can have; restored for each damage."""

    def __init__(self, office: Office, patched: pytest.MonkeyPatch) -> None:
        self.office, self.world, self.patched = office, office.world, patched
        world = office.world
        serve(world, patched)
        world.tick = lambda: handler.handle({}, None)  # type: ignore[method-assign, assignment, return-value]
        conftest.settle(office, office.alice, office.bob)
        for who in (office.alice, office.bob):
            who("PUT", "/v1/jobs/alone", job(cron="* * * * *", overlap="skip", payload="x" * 3_000))
            who("PUT", "/v1/jobs/keyed", job(cron="*/2 * * * *", concurrency={"key": "k", "limit": 1}))
        world.run_until("2026-11-21T03:47:30Z", ticks=True)
        world.clock.move_to(NOW)
        self._saved = world.dynamodb.saved()
        self._waiting = list(world.sqs._waiting)

    def restore(self) -> None:
        self.world.dynamodb.restore(self._saved)
        self._saved = self.world.dynamodb.saved()
        self.world.clock.move_to(NOW)
        self.world.sqs._waiting = list(self._waiting)
        conftest.serve(self.world, self.patched)

    def damages(self) -> Iterator[Damage]:
        """All damages of one item of each form that a kind of item of alice's has."""
        forms: dict[Any, tuple[str, Wire]] = {}
        for table in TABLES:
            for item in self.world.dynamodb.scan(TableName=f"test-{table}")["Items"]:
                pk, sk = item["pk"]["S"], item["sk"]["S"]
                if "bob" not in f"{pk} {sk} {item.get('tenant')}":
                    kind = re.sub(r"[0-9a-f]{8,}|\d+", "0", f"{pk.partition('#')[0]} {sk.partition('#')[0]}")
                    forms.setdefault((table, kind, *sorted(item)), (table, item))
        for table, item in forms.values():
            yield Damage(table, item, "", "deleted", None)
            yield Damage(table, item, "", "doubled", {**item, "sk": {"S": f"{item['sk']['S']}~"}})
            yield Damage(table, item, "", "bob's", {**item, "tenant": {"S": "bob"}})
            for name in sorted({*item} - {"pk", "sk"}):
                for kind, value in {**WRONG, **ABSURD}.items():
                    yield Damage(table, item, name, kind, value)

    def play(self, damage: Damage) -> list[str]:
        """What goes wrong for others, or for us."""
        self.restore()
        world = self.world
        table = f"test-{damage.table}"
        if damage.name:
            item = {**damage.item, damage.name: damage.value}
            world.dynamodb._set(table, damage.item, {name: was for name, was in item.items() if was})
        elif damage.value is None:
            world.dynamodb._set(table, damage.item, None)
        else:
            world.dynamodb._set(table, damage.value, damage.value)
        problems = []
        try:
            world.run_until("2026-11-21T03:59:30Z", ticks=True)
            findings(PlanningState(world.tables.due, world.clock, "dev"))
            list(Truth(world.tables, world.queue, world.clock).all())
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
            pk, sk = damage.item["pk"]["S"], damage.item["sk"]["S"]
            wrong.append(f"{damage.table} {pk} {sk} {damage.name} {damage.kind}: {problems}")
    assert not wrong, f"{len(wrong)} of {count}\n" + "\n".join(wrong)


def test_nothing_is_wrong_before(played: Played) -> None:
    item = next(played.damages()).item
    assert played.play(Damage("jobs", item, "", "as it is", item)) == []


def test_a_sample_of_damages_stops_nobody(played: Played) -> None:
    play(played, SAMPLE, seed=1)


@pytest.mark.release
@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_damages_stop_nobody(played: Played, seed: int) -> None:
    play(played, RELEASE // 10, seed=100 + seed)


@pytest.mark.parametrize("name", ["before", "action", "by", "at"])
def test_a_damaged_audit_entry_keeps_its_place_and_stops_no_reader(played: Played, name: str) -> None:
    item = next(damage.item for damage in played.damages() if damage.table == "audit")
    for kind in ("deleted", "list", "binary"):
        assert played.play(Damage("audit", item, name, kind, WRONG[kind])) == [], kind
        entries = played.office.alice_admin("GET", "/v1/audit?limit=200").json["entries"]
        damaged = [entry["entry_id"] for entry in entries if entry["action"] == "unreadable"]
        assert damaged == [item["sk"]["S"].removeprefix("AUDIT#")], kind
