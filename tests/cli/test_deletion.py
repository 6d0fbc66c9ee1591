"""`minute8 tenants delete`, with AWS credentials and with an operator key."""

from __future__ import annotations

import pytest

from minute8.cli import session
from tests.cli.conftest import Desk
from tests.platform.leftovers import deletions_of
from tests.worlds import job


@pytest.fixture
def settled(desk: Desk) -> Desk:
    desk.office.alice("PUT", "/v1/jobs/report", job(cron="* * * * *"))
    desk.office.world.run_until("2026-11-21T03:14:30Z")
    return desk


def with_operator_key(desk: Desk) -> Desk:
    desk.environment["MINUTE8_OPERATOR_KEY"] = desk.office.operator.key or ""
    return desk


def test_the_deletion_asks_first(settled: Desk) -> None:
    before = settled.office.stored()
    refused = settled("tenants", "delete", "alice", stdin="n\n")
    assert refused.code == 1
    assert "Remove alice with its 1 jobs and all of their runs? It cannot be undone." in refused.err
    assert settled.office.stored() == before
    assert "alice is stopped" in settled("tenants", "delete", "alice", stdin="y\n").out


def test_with_aws_credentials_it_removes_while_it_waits(settled: Desk) -> None:
    began_at = settled.office.world.clock.now()
    shown = settled("tenants", "delete", "alice", "--yes", "--wait")
    assert shown.code == 0, shown.err
    assert shown.out.startswith("alice is removed, now: ")
    assert "1 jobs, 2 runs" in shown.out
    assert 60 <= settled.office.world.clock.now() - began_at < 70
    assert settled("tenants", "show", "alice").code == 3
    assert settled("tenants", "deletion", "alice", "--json").json["state"] == "finished"


def test_with_an_operator_key_the_ticks_do_it(settled: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk, clock = with_operator_key(settled), settled.office.world.clock

    class Ticking:
        """While the command waits, time passes and a tick comes."""

        def now(self) -> float:
            return clock.now()

        def sleep(self, seconds: float) -> None:
            clock.sleep(seconds)
            if int(clock.now()) % 30 == 0:
                deletions_of(desk.office.world).move_on("alice", clock.now())

    monkeypatch.setattr(session, "SystemClock", Ticking)
    started = desk("tenants", "delete", "alice", "--yes", "--json").json
    assert (started["state"], started["by"][:9]) == ("waiting", "operator:")
    shown = desk("tenants", "deletion", "alice")
    assert "alice is stopped, since now, and being removed: 0 keys" in shown.out
    assert "minute8 tenants deletion alice tells how far they are" in shown.out
    waited = desk("tenants", "deletion", "alice", "--wait", "--json").json
    assert (waited["state"], waited["removed"]["jobs"]) == ("finished", 1)


def test_an_interrupted_wait_leaves_the_deletion_to_the_ticks(
    settled: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(settled.office.world.clock, "sleep", interrupted)
    shown = settled("tenants", "delete", "alice", "--yes", "--wait")
    assert shown.code == 0 and "alice is stopped" in shown.out


@pytest.mark.parametrize(
    "words", [("delete", "nobody", "--yes"), ("delete", "nobody"), ("deletion", "alice")]
)
def test_a_missing_tenant_is_not_found(settled: Desk, words: tuple[str, ...]) -> None:
    for desk in (settled, with_operator_key(settled)):
        assert desk("tenants", *words).code == 3
