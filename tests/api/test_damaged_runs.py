"""Runs whose records were edited by hand: named in lists, which have all others; no request of theirs is an error."""

from __future__ import annotations

from typing import Any

import pytest

from common.runs.outcome import Outcome
from common.storage import keys
from tests.api.calls import Office
from tests.worlds import job

RUN = "alice:b:20261121T031300Z"
LISTS = ("/v1/runs", "/v1/jobs/b/runs", "/v1/failures", "/v1/failures?tag=x")
OTHERS = (
    *("/v1/failures/groups", "/v1/overview", "/v1/summary", "/v1/jobs/b/summary", "/v1/expected"),
    *("/v1/jobs/b/expected", "/v1/jobs?health=true", "/v1/jobs/b", f"/v1/runs/{RUN}", "/v1/stuck"),
    "/v1/jobs/b/explain?at=2026-11-21T03:13:00Z",
)


def stored(office: Office) -> dict[str, Any]:
    office.world.target.answer = lambda event: Outcome(ok=False, permanent=True, error_type="Boom")
    for name in ("a", "b"):
        office.alice("PUT", f"/v1/jobs/{name}", job(cron="* * * * *", tags=["x"]))
    office.bob("PUT", "/v1/jobs/b", job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:15:30Z")
    return item_of(office, "alice")


def item_of(office: Office, tenant: str) -> dict[str, Any]:
    item = office.world.table("runs").get(keys.run(tenant, "b", RUN.rpartition("b:")[2]))
    assert item
    return item


def names_of(office: Office, path: str) -> tuple[set[str], set[str]]:
    """The runs that a list has, and those that it names as damaged."""
    answer = office.alice("GET", path)
    assert answer.status == 200, (path, answer.text)
    return tuple(  # type: ignore[return-value]
        {run["execution_id"] for run in answer.json.get(part, ())} for part in ("runs", "unreadable")
    )


@pytest.mark.parametrize("path", LISTS)
def test_lists_name_a_damaged_run_and_have_all_others(office: Office, path: str) -> None:
    item = stored(office)
    before, none = names_of(office, path)
    assert RUN in before
    assert none == set()
    for damage in ({"lost_calls": 7}, {"status": "gone"}, {"fire_at": "?"}, {"tenant": "bob"}):
        office.world.table("runs").put({**item, **damage})
        assert names_of(office, path) == (before - {RUN}, {RUN}), damage


@pytest.mark.parametrize("value", [None, "?", 7, ["?"], {"?": 1}, 10**37], ids=str)
def test_each_attribute_of_a_run_may_be_lost_or_another(office: Office, value: object) -> None:
    item = stored(office)
    for name in sorted(set(item) - {"pk", "sk", "failed_tenant", "failed_at"}):
        office.world.table("runs").put(
            {
                key: was if key != name else value
                for key, was in item.items()
                if key != name or value is not None
            }
        )
        for path in (*LISTS, *OTHERS):
            answer = office.alice("GET", path)
            assert answer.status in (200, 404, 409), (name, path, answer.text)
        for verb in ("retry", "cancel"):
            answer = office.alice("POST", f"/v1/runs/{RUN}/{verb}")
            assert answer.status < 500, (name, verb, answer.text)
        office.world.table("runs").put(item)


def test_another_tenants_record_under_the_key_of_a_run_shows_nothing_of_it(office: Office) -> None:
    item, foreign = stored(office), item_of(office, "bob")
    office.world.table("runs").put({**foreign, **keys.key_of(item), "error": "a secret of bob's"})
    for path in (*LISTS, *OTHERS):
        assert "bob" not in office.alice("GET", path).text, path
    assert office.alice("GET", f"/v1/runs/{RUN}").status == 409
