"""A text in portions: its head never names portions that are not there."""

from __future__ import annotations

from typing import Any

import pytest

from common.storage.portions import Head, Portions
from common.storage.table import Table
from tests.stand_ins import LosesAnswers
from tests.worlds import World


def test_a_head_whose_answer_is_lost_keeps_its_portions(world: World) -> None:
    table = Table(LosesAnswers(world.dynamodb), "test-jobs", now=world.clock.now)
    portions = Portions(table, lambda name: {"pk": "alice", "sk": f"TEXT#{name}"}, Head)
    expires_at, token = int(world.clock.now()) + 600, ""
    for text in ("first", "second"):
        stored = portions.store({}, [text], expires_at, replaces=token)
        head = portions.head()
        assert stored and head and stored["token"] == head.token
        assert portions.read(head.portions) == [text]
        token = head.token
    assert portions.store({}, ["late"], expires_at, replaces="another") is None
    head = portions.head()
    assert head and portions.read(head.portions) == ["second"]


@pytest.mark.parametrize(("name", "value"), [("portions", "text"), ("token", 7), ("expires_at", "soon")])
def test_no_read_removes_a_damaged_head_and_the_next_text_takes_its_place(
    world: World, name: str, value: Any
) -> None:
    table = world.table("jobs")
    portions = Portions(table, lambda name: {"pk": "alice", "sk": f"TEXT#{name}"}, Head)
    expires_at = int(world.clock.now()) + 600
    damaged = {**(portions.store({}, ["first"], expires_at, replaces="") or {}), name: value}
    table.put(damaged)
    assert portions.head() is None
    assert table.get(portions.key("")) == damaged
    assert portions.store({}, ["second"], expires_at, replaces="")
    head = portions.head()
    assert head and portions.read(head.portions) == ["second"]
