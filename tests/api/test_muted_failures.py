"""Muted groups of failures: what lists and the overview say of them, when they end, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from common.history.failed_runs import fingerprint
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.table import Query
from common.tenants.audit import Audit
from common.timing.instants import rfc3339
from minute8 import direct
from minute8.api import handler
from minute8.client import AsyncClient, NotFound
from minute8.direct import in_process
from tests.api.calls import AsyncHandlerTransport, Office
from tests.worlds import job

MAX_MUTED_GROUPS = 200
MAX_MUTED_S = 2_592_000

BOOM = fingerprint("Boom", "no such customer")
MUTE = f"/v1/failures/groups/bills/{BOOM}/mute"


@pytest.fixture
def failing(office: Office) -> Office:
    """`bills` and `mail` fail with the same error, each minute."""
    fails(office, "no such customer")
    for job_id in ("bills", "mail"):
        office.alice("PUT", f"/v1/jobs/{job_id}", job(cron="* * * * *"))
    office.world.run_until("2026-11-21T03:15:30Z", ticks=True)
    return office


def fails(office: Office, error: str) -> None:
    office.world.target.answer = lambda event: Outcome(
        ok=not error, permanent=True, error_type="Boom", error=error
    )


def muted(office: Office) -> dict[tuple[str, str], Any]:
    groups = office.alice("GET", "/v1/failures/groups").json["groups"]
    return {(group["job_id"], group["error"]): group["muted"] for group in groups}


def needs_somebody(office: Office) -> tuple[int, list[str], int]:
    shown = office.alice("GET", "/v1/overview").json
    failing = shown["failing"]
    return failing["count"], [job["job_id"] for job in failing["jobs"]], failing["muted"]


def test_a_failure_whose_texts_are_erased_stays_muted(failing: Office) -> None:
    failing.alice("PUT", MUTE, {})
    for item in failing.world.run_items("alice", "bills"):
        name = item["sk"].rpartition("#")[2]
        assert failing.alice_admin("DELETE", f"/v1/runs/alice:bills:{name}/details").status == 200
    assert needs_somebody(failing) == (1, ["mail"], 1)
    assert [bool(group) for group in muted(failing).values()] == [False, True]
    assert muted(failing)["bills", ""]


def test_a_group_whose_mute_has_expired_and_is_not_removed_yet_is_muted_again(failing: Office) -> None:
    until = "2026-11-21T04:00:00Z"
    assert failing.alice("PUT", MUTE, {"until_at": until}).status == 200
    stored = failing.world.table("jobs").with_expired().get(keys.muted_group("alice", "bills", BOOM))
    assert stored is not None
    failing.world.clock.move_to(stored["expires_at"])
    fails(failing, "no such customer")
    failing.world.run_until(rfc3339(stored["expires_at"] + 90), ticks=True)
    assert failing.alice("PUT", MUTE, {}).status == 200
    assert needs_somebody(failing)[2] == 1


def test_a_muted_group_stays_listed_and_leaves_what_needs_somebody(failing: Office) -> None:
    assert needs_somebody(failing) == (2, ["bills", "mail"], 0)
    answered = failing.alice("PUT", MUTE, {"note": "the shop is being moved"})
    times = {"muted_at": "2026-11-21T03:15:30Z", "until_at": None, "ends_at": "2026-12-21T03:15:30Z"}
    mute = {"note": "the shop is being moved", **times}
    about = {
        "job_id": "bills",
        "fingerprint": BOOM,
        "error_type": "Boom",
        "error": "no such customer",
    }
    assert (answered.status, answered.json) == (200, mute | about)
    assert muted(failing) == {("bills", "no such customer"): mute, ("mail", "no such customer"): None}
    assert failing.alice_reads("GET", "/v1/failures/muted").json == {"groups": [mute | about]}
    assert needs_somebody(failing) == (1, ["mail"], 1)
    errors = failing.alice("GET", "/v1/overview").json["errors"]
    assert [(group["job_id"], group["muted"] is None) for group in errors] == [
        ("mail", True),
        ("bills", False),
    ]
    assert failing.bob("GET", "/v1/failures/muted").json == {"groups": []}


def test_it_ends_when_the_job_has_succeeded_and_fails_again(failing: Office) -> None:
    failing.alice("PUT", MUTE, {})
    failing.world.run_until("2026-11-21T03:17:30Z", ticks=True)
    assert needs_somebody(failing) == (1, ["mail"], 1), "it fails on"
    fails(failing, "")
    failing.world.run_until("2026-11-21T03:18:30Z", ticks=True)
    assert needs_somebody(failing) == (0, [], 0)
    fails(failing, "no such customer")
    failing.world.run_until("2026-11-21T03:19:30Z", ticks=True)
    assert needs_somebody(failing) == (2, ["bills", "mail"], 0)
    assert set(muted(failing).values()) == {None}
    assert failing.alice("GET", "/v1/failures/muted").json == {"groups": []}


def test_it_ends_when_the_job_was_changed_and_fails_again(failing: Office) -> None:
    failing.alice("PUT", MUTE, {})
    failing.alice("PATCH", "/v1/jobs/bills", {"timeout_s": 17})
    assert muted(failing)["bills", "no such customer"]
    failing.world.run_until("2026-11-21T03:17:30Z", ticks=True)
    assert muted(failing)["bills", "no such customer"] is None


def test_another_error_of_the_job_needs_somebody(failing: Office) -> None:
    failing.alice("PUT", MUTE, {})
    fails(failing, "the disk is full")
    failing.world.run_until("2026-11-21T03:16:30Z", ticks=True)
    assert needs_somebody(failing) == (2, ["bills", "mail"], 0)
    assert muted(failing)["bills", "the disk is full"] is None
    assert muted(failing)["bills", "no such customer"]


def test_until_a_time_it_stays_muted_whatever_happens(failing: Office) -> None:
    failing.alice("PUT", MUTE, {"until_at": "2026-11-21T03:20:00Z"})
    fails(failing, "")
    failing.world.run_until("2026-11-21T03:16:30Z", ticks=True)
    fails(failing, "no such customer")
    failing.world.run_until("2026-11-21T03:19:59Z", ticks=True)
    assert needs_somebody(failing) == (1, ["mail"], 1)
    failing.world.run_until("2026-11-21T03:20:00Z", ticks=True)
    assert needs_somebody(failing) == (2, ["bills", "mail"], 0)


def test_unmuting_and_muting_again_are_audited(failing: Office) -> None:
    failing.alice("PUT", MUTE, {"note": "known"})
    failing.world.run_until("2026-11-21T03:15:40Z")
    failing.alice("PUT", MUTE, {"note": "known for long", "until_at": "2026-11-22T00:00:00Z"})
    failing.world.run_until("2026-11-21T03:15:50Z")
    assert failing.alice("DELETE", MUTE).status == 204
    assert needs_somebody(failing)[2] == 0
    refused = failing.alice("DELETE", MUTE)
    assert (refused.status, refused.json["detail"]) == (
        404,
        f"no muted group of failures '{BOOM}'",
    )
    entries = list(Audit(failing.world.table("tenants")).newest("alice", 3))
    assert [(entry.action, entry.subject) for entry in entries] == [
        ("failures.unmuted", f"bills {BOOM}"),
        ("failures.muted", f"bills {BOOM}"),
        ("failures.muted", f"bills {BOOM}"),
    ]
    assert entries[1].before == {"until": "it changes", "note": "known"}
    assert entries[1].after == {"until": "2026-11-22T00:00:00Z", "note": "known for long"}


def over_http(office: Office) -> AsyncClient:
    return AsyncClient("https://api.test/", office.alice.key or "", transport=AsyncHandlerTransport())


def directly(office: Office) -> direct.AsyncClient:
    return direct.AsyncClient(None, "alice", stage="test", actor="on-call")


@pytest.mark.parametrize("make", [over_http, directly])
def test_asynchronous_clients_mute_list_and_unmute(
    failing: Office,
    make: Callable[[Office], AsyncClient | direct.AsyncClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_process, "_services", lambda session, stage: handler._services())

    async def steps() -> None:
        async with make(failing) as minute8:
            known = await minute8.mute_failures("bills", BOOM, "known", "2026-11-22T00:00:00Z")
            assert (known["note"], known["until_at"]) == ("known", "2026-11-22T00:00:00Z")
            assert await minute8.list_muted_groups() == [known]
            groups = await minute8.list_failure_groups()
            assert {group["job_id"]: group["muted"] is not None for group in groups} == {
                "bills": True,
                "mail": False,
            }
            await minute8.unmute_failures("bills", BOOM)
            assert await minute8.list_muted_groups() == []
            with pytest.raises(NotFound, match="no muted group of failures"):
                await minute8.unmute_failures("bills", BOOM)

    asyncio.run(steps())


def test_the_direct_client_mutes_lists_and_unmutes(failing: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "_services", lambda session, stage: handler._services())
    with direct.Client(None, "alice", stage="test", actor="on-call") as minute8:
        known = minute8.mute_failures("bills", BOOM)
        assert (known["until_at"], minute8.list_muted_groups()) == (None, [known])
        entries = list(Audit(failing.world.table("tenants")).newest("alice", 1))
        assert [(entry.by, entry.action) for entry in entries] == [("direct:on-call", "failures.muted")]
        minute8.unmute_failures("bills", BOOM)
        assert minute8.list_muted_groups() == []


@pytest.mark.parametrize(
    ("path", "body", "status", "why"),
    [
        (MUTE, {"until_at": "2026-11-21T03:15:30Z"}, 400, "later than now, by at most 30 days"),
        (MUTE, {"until_at": "2026-12-21T03:15:31Z"}, 400, "later than now, by at most 30 days"),
        (MUTE, {"until_at": "tomorrow"}, 400, "until_at"),
        (MUTE, {"note": "x" * 501}, 400, "note"),
        (MUTE, {"for": 7}, 400, "for"),
        (f"/v1/failures/groups/bills/{'0' * 12}/mute", {}, 404, "group of failures"),
        (f"/v1/failures/groups/bill/{BOOM}/mute", {}, 404, "group of failures"),
        (f"/v1/failures/groups/bills/{BOOM.upper()}x/mute", {}, 404, "group of failures"),
    ],
)
def test_what_is_refused(failing: Office, path: str, body: dict[str, Any], status: int, why: str) -> None:
    refused = failing.alice("PUT", path, body)
    assert refused.status == status and why in refused.json["detail"], refused.json
    assert failing.alice("GET", "/v1/failures/muted").json == {"groups": []}


def test_30_days_are_accepted(failing: Office) -> None:
    assert (
        failing.alice("PUT", MUTE, {"until_at": "2026-12-21T03:15:30Z"}).json["ends_at"]
        == "2026-12-21T03:15:30Z"
    )


def test_a_key_that_reads_cannot_mute(failing: Office) -> None:
    for method, body in (("PUT", {}), ("DELETE", None)):
        assert failing.alice_reads(method, MUTE, body).status == 403


def test_at_the_bound_an_ended_group_makes_room(failing: Office) -> None:
    table, now = failing.world.table("jobs"), int(failing.world.clock.now())
    for nth in range(MAX_MUTED_GROUPS):
        item = {"tenant": "alice", "job_id": "other", "fingerprint": f"{nth:012x}", "note": ""}
        times = {"muted_at": now, "expires_at": now + MAX_MUTED_S}
        key = keys.muted_group("alice", "other", f"{nth:012x}")
        table.put({**key, **item, **times, "error_type": "", "error": ""})
    refused = failing.alice("PUT", MUTE, {})
    assert (refused.status, "200 groups of failures are muted" in refused.json["detail"]) == (409, True)
    ended = keys.muted_group("alice", "other", f"{7:012x}")
    table.put({**(table.get(ended) or {}), "until_at": now - 1})
    assert failing.alice("PUT", MUTE, {}).status == 200
    assert table.get(ended) is None
    stored = list(table.query(Query("alice", sk_prefix=keys.MUTED_PREFIX)))
    assert len(stored) == MAX_MUTED_GROUPS
