"""A text in portions: its head never names portions that are not there."""

from __future__ import annotations

from typing import Any

from common.storage.portions import Portions
from common.storage.table import Table
from tests.worlds import World


class LosesAnswers:
    """A client of which each answer to a write is lost, and the request sent again."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_item(self, **request: Any) -> Any:
        self._client.put_item(**request)
        return self._client.put_item(**request)


def test_a_head_whose_answer_is_lost_keeps_its_portions(world: World) -> None:
    table = Table(LosesAnswers(world.dynamodb), "test-jobs", now=world.clock.now)
    portions = Portions(table, lambda name: {"pk": "alice", "sk": f"TEXT#{name}"})
    expires_at, token = int(world.clock.now()) + 600, ""
    for text in ("first", "second"):
        head = portions.store({}, [text], expires_at, replaces=token)
        assert head == portions.head()
        assert portions.read(head["portions"]) == [text]
        token = head["token"]
    assert portions.store({}, ["late"], expires_at, replaces="another") is None
    head = portions.head()
    assert head and portions.read(head["portions"]) == ["second"]
