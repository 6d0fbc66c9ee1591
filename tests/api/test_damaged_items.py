"""An item that somebody has damaged: its list has the others, and a look at it alone is refused in words."""

from __future__ import annotations

import pytest

from common.storage import keys
from common.storage.wire import Item
from tests.api import conftest
from tests.api.calls import Office

DAMAGED = {
    "calendars": ("jobs", keys.calendar("alice", "holidays"), "created_at", "?"),
    "secrets": ("tenants", keys.secret("alice", "holidays"), "revision", "?"),
    "subscriptions": ("jobs", keys.subscription("alice", "holidays"), "state", "?"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_item_keeps_the_others_in_their_list(office: Office, kind: str) -> None:
    conftest.settle(office, office.alice)
    table, key, name, value = DAMAGED[kind]
    item: Item = office.world.table(table).get(key) or {}
    assert name in item
    office.world.table(table).put({**item, name: value})
    answer = office.alice_admin("GET", f"/v1/{kind}")
    assert answer.status == 200
    assert [entry["name"] for entry in answer.json[kind]] == ["weekends"]


def test_a_damaged_calendar_is_refused_in_words(office: Office) -> None:
    conftest.settle(office, office.alice)
    table, key, name, value = DAMAGED["calendars"]
    item: Item = office.world.table(table).get(key) or {}
    office.world.table(table).put({**item, name: value})
    for method, body in (("GET", None), ("PUT", {"dates": ["2026-12-26"]})):
        answer = office.alice_admin(method, "/v1/calendars/holidays", body)
        assert (answer.status, "is damaged" in answer.json["detail"]) == (409, True), answer.json
