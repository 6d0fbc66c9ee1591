"""A text in chunks: its head never names chunks that are not there."""

from __future__ import annotations

from typing import Any

import pytest

from common.storage.chunks import Chunks, Head
from common.storage.table import Table
from tests.stand_ins import LosesAnswers
from tests.worlds import World


def test_a_head_whose_answer_is_lost_keeps_its_chunks(world: World) -> None:
    table = Table(LosesAnswers(world.dynamodb), "test-jobs", now=world.clock.now)
    chunks = Chunks(table, lambda name: {"pk": "alice", "sk": f"TEXT#{name}"}, Head)
    expires_at, token = int(world.clock.now()) + 600, ""
    for text in ("first", "second"):
        stored = chunks.store({}, [text], expires_at, replaces=token)
        head = chunks.head()
        assert stored and head and stored["token"] == head.token
        assert chunks.read(head.chunks) == [text]
        token = head.token
    assert chunks.store({}, ["late"], expires_at, replaces="another") is None
    head = chunks.head()
    assert head and chunks.read(head.chunks) == ["second"]


@pytest.mark.parametrize(("name", "value"), [("chunks", "text"), ("token", 7), ("expires_at", "soon")])
def test_no_read_removes_a_damaged_head_and_the_next_text_takes_its_place(
    world: World, name: str, value: Any
) -> None:
    table = world.table("jobs")
    chunks = Chunks(table, lambda name: {"pk": "alice", "sk": f"TEXT#{name}"}, Head)
    expires_at = int(world.clock.now()) + 600
    damaged = {**(chunks.store({}, ["first"], expires_at, replaces="") or {}), name: value}
    table.put(damaged)
    assert chunks.head() is None
    assert table.get(chunks.key("")) == damaged
    assert chunks.store({}, ["second"], expires_at, replaces="")
    head = chunks.head()
    assert head and chunks.read(head.chunks) == ["second"]
