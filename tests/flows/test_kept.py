"""How long records are kept: the rows of docs/limits.md that have a bound of their own."""

from __future__ import annotations

from typing import Any

from common.runs.outcome import Outcome
from common.storage.wire import from_wire
from tests.worlds import World, at, job

DAY_S = 86_400
DUE = "2026-11-21T03:15:00Z"
MIDNIGHT = at("2026-11-21T00:00:00Z")


def kept_until(world: World, table: str) -> dict[str, Any]:
    """When each item of a table expires, by the item's keys."""
    items = map(from_wire, world.dynamodb.scan(TableName=f"test-{table}")["Items"])
    return {f"{item['pk']} {item['sk']}": item.get("expires_at") for item in items}


def test_records_are_kept_as_long_as_the_page_says(world: World) -> None:
    world.target.answer = lambda event: Outcome(ok=False, permanent=True, error_type="Boom")
    world.registry.create("alice", "fails", job(at=DUE))
    world.registry.create("alice", "ends", job(at=DUE, after_completion="delete"))
    world.registry.create("alice", "hourly", job(cron="0 * * * *"))
    world.registry.create("alice", "gone", job(cron="0 3 * * *"))
    world.run_until("2026-11-21T03:16:00Z")
    failed_at, now = at(DUE), at("2026-11-21T03:16:00Z")
    world.store.delete("alice", "gone")
    world.manual.run_now("alice", "fails", "n", '{"a": 1}')
    world.manual.skip_next("alice", "hourly", 1, "")
    world.manual.backfills.start("alice", "hourly", MIDNIGHT, MIDNIGHT + 3_600, 1, "b")
    jobs, due, runs = (kept_until(world, table) for table in ("jobs", "due", "runs"))
    assert jobs["alice STREAK#fails"] == failed_at + 410 * DAY_S
    assert jobs["alice FORMER#gone"] == now + 410 * DAY_S
    assert jobs["alice ASKED#fails#n"] == now + 30 * DAY_S
    assert jobs["alice BACKFILL#hourly#b"] == now + 90 * DAY_S
    assert runs["alice#fails 20261121T031600Z:p-n"] == now + 30 * DAY_S
    assert runs["alice#hourly 20261121T040000Z"] == at("2026-11-21T04:00:00Z") + 30 * DAY_S
    (noted,) = (kept for name, kept in due.items() if name.startswith("ENDED#"))
    assert noted == failed_at + 15 * DAY_S
    window_end = at("2026-11-21T03:20:00Z")
    group = f"GROUP#at|{window_end - 600}#0"
    assert {due[f"{group} alice#{name}"] for name in ("fails", "ends")} == {window_end + 400 * DAY_S}
