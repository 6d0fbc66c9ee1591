"""Operators who block and release targets at the same time, in a sample of all orders: none undoes another's change."""

from __future__ import annotations

from functools import partial

from common.errors import NotFound
from common.storage import keys
from common.tenants.audit import Audit
from common.tenants.blocks import Blocks
from tests.faults.interleaving import anywhere, play, some_orders
from tests.faults.stage import staged

NOW = 1_795_230_720.0


def test_holds_and_releases_at_once() -> None:
    with staged("2026-11-21T03:12:00Z") as stage:
        blocks = Blocks(stage.world.table("tenants"), stage.world.clock)
        blocks.block("a.example.com", "", NOW)
        stage.save()
        for choose in some_orders(24):
            world = stage.restore()
            blocks = Blocks(world.table("tenants"), world.clock)
            steps = {
                "hold b": partial(blocks.block, "b.example.com", "down", NOW),
                "hold c": partial(blocks.block, "c.example.com", "", NOW),
                "release a": partial(blocks.release, "a.example.com", NOW),
                "release a again": partial(blocks.release, "a.example.com", NOW),
            }
            died = play(stage.wire, steps, choose, anywhere)
            assert (died["hold b"], died["hold c"]) == (None, None)
            releases = [died["release a"], died["release a again"]]
            assert [type(release) for release in releases if release] == [NotFound]
            assert sorted(block.pattern for block in blocks.all()) == ["b.example.com", "c.example.com"]
            entries = [entry.action for entry in Audit(world.table("tenants")).newest(keys.OPERATORS, 10)]
            assert sorted(entries) == ["target.blocked"] * 3 + ["target.released"]
