"""The API over a world: two tenants, and every kind of key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from common.config import Config
from common.history import runs_by_time
from common.history.failed_runs import fingerprint
from common.planning.execution import Execution
from common.platform.alarms import Alarms
from common.platform.api_keys import ROLES, new_key
from common.platform.dead_letters import DeadLetters
from common.platform.tenants import Tenants
from common.runs.outcome import Outcome
from common.storage import keys
from minute8.api import handler
from minute8.api.auth.tokens import Tokens
from minute8.api.services import Services
from tests.api import issuer
from tests.api.alarm_board import AlarmBoard
from tests.api.calls import Caller, Office
from tests.api.dead_letters import URL, LetterBox
from tests.api.issuer import token
from tests.api.scheduler_client import new_pair, scheduler_client, sign_at, stored_masters
from tests.api.walk import LEAVING, SPARE_KEY, SPARE_OPERATOR_KEY
from tests.worlds import World, at, job, open_world

TOKENS = issuer.tokens()


@pytest.fixture
def office(world: World, monkeypatch: pytest.MonkeyPatch) -> Office:
    return open_office(world, monkeypatch)


@pytest.fixture(scope="module")
def settled() -> Iterator[Office]:
    """alice has what the walk names. The tests of a module share it, so they must change nothing."""
    with open_world() as world, pytest.MonkeyPatch.context() as monkeypatch:
        office = open_office(world, monkeypatch)
        settle(office, office.alice)
        yield office


def settle(office: Office, *callers: Caller) -> None:
    """Give them what the walk names (`tests/api/walk.py`), and two of everything that is listed."""
    office.world.target.answer = lambda event: Outcome(
        ok=not event["minute8"]["job_id"].startswith("fails"),
        permanent=True,
        error_type="Boom",
        error="it went wrong",
    )
    office.operator("POST", "/v1/blocks", {"pattern": "hooks.example.com"})
    unrecorded = [
        Execution("alice", "lost", fire_at, fire_at, 1)
        for fire_at in (at("2026-11-21T03:10:00Z"), at("2026-11-21T03:11:00Z"))
    ]
    # The example of the document, which schemathesis sends.
    unrecorded.append(
        Execution("acme", "nightly-report", at("2026-11-21T01:30:00Z"), at("2026-11-21T01:30:00Z"), 4)
    )
    office.world.unrecorded.add(unrecorded, office.world.clock.now())
    for caller in callers:
        caller("PUT", "/v1/jobs/report", job(every=10))
        for job_id in ("fails", "fails-too"):
            caller("PUT", f"/v1/jobs/{job_id}", job(at="2026-11-21T03:12:30Z"))
        for name in ("holidays", "weekends"):
            caller("PUT", f"/v1/calendars/{name}", {"dates": ["2026-12-25"]})
            caller("PUT", f"/v1/secrets/{name}", {"value": f"a value of {name}"})
            caller(
                "PUT",
                f"/v1/subscriptions/{name}",
                {"target": {"kind": "http", "url": "https://x.example.com/"}},
            )
        past = {"start_at": "2026-11-21T03:00:00Z", "end_at": "2026-11-21T03:01:00Z", "backfill_id": "one"}
        caller("POST", "/v1/jobs/report/backfills", past)
    office.operator("POST", "/v1/tenants", {"tenant_id": LEAVING})
    office.operator("DELETE", f"/v1/tenants/{LEAVING}")
    office.world.run_until("2026-11-21T03:13:00Z")
    for caller in callers:
        for job_id in ("fails", "fails-too"):
            caller("PUT", f"/v1/failures/groups/{job_id}/{fingerprint('Boom', 'it went wrong')}/mute", {})


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of a job's summary counts four runs."""
    monkeypatch.setattr(runs_by_time, "MAX_SUMMARISED", 4)


@pytest.fixture
def pair(office: Office) -> Callable[..., tuple[str, str]]:
    """Makes a key pair: its access key id and its secret."""

    def make_pair(tenant: str = "alice", role: str = "write", **more: Any) -> tuple[str, str]:
        return new_pair(tenant, role, office.world.clock.now(), **more)

    return make_pair


@pytest.fixture
def aws(
    office: Office, pair: Callable[..., tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Makes boto3's client of EventBridge Scheduler for a new key pair; it signs at the world's time."""
    sign_at(office.world.clock, monkeypatch)
    return lambda tenant="alice", role="write", **more: scheduler_client(*pair(tenant, role), **more)


def serve(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    takes: Tokens | None = TOKENS,
    dead_letters: LetterBox | None = None,
    board: AlarmBoard | None = None,
) -> Tenants:
    """The API as a new process: its caches are empty."""
    dead = DeadLetters(dead_letters or LetterBox(), URL)  # type: ignore[arg-type]
    alarms = Alarms(board or AlarmBoard(), "test")
    services = Services(
        Config.from_env({"STAGE": "test"}),
        clock=world.clock,
        tables=world.tables.metered(),
        queue=world.queue,
        removals=world.deployment.removals,
        secret_key=world.secret_key,
        limits=world.registry.limits,
        region="us-east-1",
        dead_letters=dead,
        alarms=alarms,
        tokens=takes,
        masters=stored_masters(),
    )
    monkeypatch.setattr(handler, "_services", lambda: services)
    return services.tenants


def open_office(world: World, monkeypatch: pytest.MonkeyPatch, takes: Tokens | None = TOKENS) -> Office:
    dead_letters, board = LetterBox(), AlarmBoard()
    tenants = serve(world, monkeypatch, takes, dead_letters, board)
    now = world.clock.now()
    for tenant in ("alice", "bob"):
        tenants.create(tenant, tenant.title(), now, {"allowed_targets": ["*"]})

    def key(tenant: str, role: str = "write", **more: Any) -> str:
        return tenants.api_keys.create_key(tenant, role, world.clock.now(), **more)[0]

    def operator_key(**more: Any) -> str:
        return tenants.api_keys.create_operator_key(world.clock.now(), **more)[0]

    world.clock.move_to(now - 60)
    expired = key("alice", "admin", expires_at=int(now))
    operator_expired = operator_key(expires_at=int(now))
    world.clock.move_to(now)
    raw_revoked, revoked = tenants.api_keys.create_key("alice", "admin", now)
    tenants.api_keys.revoke_key("alice", revoked.key_id, now)
    operator_raw_revoked, operator_revoked = tenants.api_keys.create_operator_key(now)
    tenants.api_keys.revoke_key(keys.OPERATORS, operator_revoked.key_id, now)
    with pytest.MonkeyPatch.context() as known:
        known.setattr("common.platform.api_keys.new_key", lambda: SPARE_KEY)
        key("alice", "read", name="spare")
        known.setattr("common.platform.api_keys.new_key", lambda: SPARE_OPERATOR_KEY)
        operator_key(name="spare")
    return Office(
        world=world,
        dead_letters=dead_letters,
        board=board,
        alice=Caller(key("alice")),
        alice_reads=Caller(key("alice", "read")),
        alice_admin=Caller(key("alice", "admin")),
        bob=Caller(key("bob", "admin")),
        operator=Caller(operator_key()),
        nobody={
            "no key": Caller(None),
            "a forged key": Caller(new_key()),
            "a key with a wrong checksum": Caller(new_key()[:-1] + "!"),
            "a key in words": Caller("m8_alice"),
            "an expired key": Caller(expired),
            "a revoked key": Caller(raw_revoked),
            "the stored hash": Caller(revoked.key_hash),
            "an expired operator key": Caller(operator_expired),
            "a revoked operator key": Caller(operator_raw_revoked),
            "an unsigned token": Caller(token().rpartition(".")[0] + "."),
            "a token signed by somebody else": Caller(token("rsa-other", {"kid": "rsa"})),
            "another issuer's token": Caller(token(iss="https://login.example.org/")),
            "a token for something else": Caller(token(aud="billing")),
            "an expired token": Caller(token(exp=int(now) - 60)),
            "a token of no tenant": Caller(token(tenant=None)),
            "a token of a tenant that is not there": Caller(token(tenant="carol")),
        },
        alice_tokens={role: Caller(token("ec", role=role)) for role in ROLES},
        bob_token=Caller(token("ed", tenant="bob", role="admin")),
        new_key=key,
    )
