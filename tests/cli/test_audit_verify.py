"""`minute8 audit verify` over tables in memory, and a bucket of moto."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from common.storage import keys
from common.storage.table import Query
from common.storage.transactions import Transaction
from common.tenants.audit import Audit
from common.tenants.audit_chain import SEALING
from minute8.cli.commands import audit_verify
from minute8.cli.commands.audit_verify import AnchorBucket
from scheduler.export_handler import S3Bucket
from scheduler.sealing import Sealer
from tests.cli.conftest import Desk
from tests.scheduler_handler import go_on
from tests.worlds import World, job

BUCKET = "acme-audit"
PREFIX = "minute8-prod/audit"


@pytest.fixture
def s3(on_moto: None) -> Iterator[Any]:
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET, ObjectLockEnabledForBucket=True)
    retention = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 430}}
    client.put_object_lock_configuration(
        Bucket=BUCKET,
        ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": retention},  # type: ignore[typeddict-item]
    )
    yield client


Round = Callable[[], None]


@pytest.fixture
def hourly(desk: Desk, s3: Any, monkeypatch: pytest.MonkeyPatch) -> Round:
    """Changes of alice's job, and an hour later a round that seals and exports them."""
    world = desk.office.world
    deployment = SimpleNamespace(
        tenants_table=lambda: world.table("tenants"),
        due_table=lambda: world.table("due"),
        client=lambda service: s3,
        named=lambda: "minute8-prod",
    )
    monkeypatch.setattr(audit_verify, "connect", lambda *_: deployment)
    sealer = Sealer(world.tables, world.clock, S3Bucket(s3, BUCKET), PREFIX)

    def go() -> None:
        desk.office.alice("PUT", "/v1/jobs/report", job(every=60 + int(world.clock.now()) % 50_000))
        world.clock.sleep(3_600)
        assert go_on(world, sealer.steps, SEALING).problems == []

    go()
    world.clock.sleep(60)
    go()
    return go


def verify(desk: Desk, *words: str) -> Any:
    return desk("audit", "verify", "--stage", "prod", *words)


def entry_of_alice(world: World) -> dict[str, Any]:
    return next(iter(Audit(world.table("tenants")).stored("alice", "0", "~")))


def test_an_untouched_audit_is_as_it_was_sealed(desk: Desk, hourly: Round) -> None:
    done = verify(desk, "--bucket", BUCKET)
    assert (done.code, done.err) == (0, "")
    head, platform, alice, *_ = done.out.splitlines()
    assert head.startswith("AUDIT OF      SEALED  SEALS  BEFORE THE CHAIN  NOT YET SEALED  RESULT")
    assert platform.startswith("the platform") and platform.endswith("as sealed")
    assert (alice.split()[0], alice.split()[2], alice.endswith("as sealed")) == ("alice", "2", True)
    of_alice = verify(desk, "--tenant", "alice", "--json").json["owners"]
    assert [(owner["owner"], owner["seals"], owner["differences"]) for owner in of_alice] == [
        ("alice", 2, [])
    ]


def test_the_first_entry_that_was_altered_is_named(desk: Desk, hourly: Round) -> None:
    item = entry_of_alice(desk.office.world)
    Audit(desk.office.world.table("tenants")).table.put({**item, "by": "nobody"})
    done = verify(desk)
    entry_id = item["sk"].removeprefix("AUDIT#")
    assert done.code == 1
    assert f"alice: altered: {entry_id} of 2026-11-21T03:11:00Z: seal 1 has another hash" in done.out


def test_a_chain_that_was_written_again_is_found_by_the_bucket_alone(desk: Desk, hourly: Round) -> None:
    world = desk.office.world
    audit = Audit(world.table("tenants"))
    audit.table.put({**entry_of_alice(world), "by": "nobody"})
    for item in list(audit.table.query(Query(keys.seals("alice")))):
        audit.table.delete(keys.key_of(item))
    world.clock.sleep(3_600)
    assert go_on(world, Sealer(world.tables, world.clock).steps, SEALING).counts["seals"] >= 1
    assert verify(desk).code == 0
    done = verify(desk, "--bucket", BUCKET)
    assert (done.code, "alice: seal replaced: seal 1: exported at 2026-11-21T04:12:00Z" in done.out) == (
        1,
        True,
    )


def test_an_object_that_covers_another_one_hides_nothing(desk: Desk, hourly: Round, s3: Any) -> None:
    before = list(AnchorBucket(s3, BUCKET, PREFIX).anchors())
    for item in s3.list_objects_v2(Bucket=BUCKET)["Contents"]:
        s3.put_object(Bucket=BUCKET, Key=item["Key"], Body=b"{}")
    with pytest.raises(ValueError, match="holds no seals"):
        list(AnchorBucket(s3, BUCKET, PREFIX).anchors())
    for item in s3.list_objects_v2(Bucket=BUCKET)["Contents"]:
        s3.delete_object(Bucket=BUCKET, Key=item["Key"])  # a marker; the versions stay
    versions = s3.list_object_versions(Bucket=BUCKET)["Versions"]
    assert len(versions) == 4 and len(before) >= 2


def test_a_tenant_that_is_gone_without_a_deletion_is_found(desk: Desk, hourly: Round) -> None:
    """Somebody has dropped its items, and its name from the list."""
    world = desk.office.world
    world.table("tenants").delete(keys.tenant_listing("alice"))
    for partition in ("alice", keys.seals("alice")):
        table = Audit(world.table("tenants")).table
        for item in list(table.query(Query(partition))):
            table.delete(keys.key_of(item))
    assert "alice" not in verify(desk).out
    done = verify(desk, "--bucket", BUCKET)
    assert (done.code, "alice: seal replaced: seal 1: exported at" in done.out) == (1, True)


@pytest.mark.parametrize(("owner", "name"), [("alice", "alice"), (keys.OPERATORS, "the platform")])
def test_a_forged_deletion_does_not_excuse_a_chain_that_was_written_again(
    desk: Desk, hourly: Round, owner: str, name: str
) -> None:
    world = desk.office.world
    audit = Audit(world.table("tenants"))
    tx = Transaction(world.dynamodb)
    audit.add(tx, keys.OPERATORS, "operator:1", "tenant.deleted", owner, world.clock.now())
    tx.commit()
    for item in list(audit.table.query(Query(keys.seals(owner)))):
        audit.table.delete(keys.key_of(item))
    world.clock.sleep(3_600)
    go_on(world, Sealer(world.tables, world.clock).steps, SEALING)
    done = verify(desk, "--bucket", BUCKET)
    assert (done.code, f"{name}: seal replaced" in done.out) == (1, True)


def test_a_bucket_without_a_lock_is_no_witness(desk: Desk, hourly: Round, s3: Any) -> None:
    s3.create_bucket(Bucket="loose")
    done = verify(desk, "--bucket", "loose")
    assert (done.code, "loose keeps no object for a time" in done.err) == (1, True)
