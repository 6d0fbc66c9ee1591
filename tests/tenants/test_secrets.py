"""Secrets: encrypted for one tenant and one name, kept for minutes, read once for many threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from moto import mock_aws

from common.errors import Busy, InvalidInput
from common.storage import keys
from common.tenants.secrets import SECRET, SecretKey, SecretValues, check_value
from tests.stand_ins import MemoryKms
from tests.worlds import World

DECRYPTED_FOR_S = 300
SECRET_BYTES = 4_096
SECRET_CHARS = 8
TRUSTED_FOR_S = 60


@pytest.fixture(params=["memory", "moto"])
def key(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        yield SecretKey(MemoryKms(), "key")
        return
    with mock_aws():
        kms = boto3.client("kms", region_name="us-east-1")
        yield SecretKey(kms, kms.create_key()["KeyMetadata"]["Arn"])


@pytest.mark.parametrize(
    "value",
    ["p" * SECRET_CHARS, "x" * SECRET_BYTES, "ab\n" * 80, "pässwörd-秘密", "two\nlines\tand \x00 more"],
)
def test_a_value_is_decrypted_for_its_tenant_and_name_alone(key: SecretKey, value: str) -> None:
    stored = key.encrypted("alice", "token", value)
    assert value not in stored
    assert key.decrypted("alice", "token", stored) == value
    for tenant, name in (("bob", "token"), ("alice", "other"), ("alice#token", "")):
        with pytest.raises(Busy, match="InvalidCiphertext"):
            key.decrypted(tenant, name, stored)


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "p" * (SECRET_CHARS - 1),
            " " * 100,
            "short" + " " * 10,
            "0000\\000",
            "x" * (SECRET_BYTES + 1),
            "é" * (SECRET_BYTES // 2 + 1),
            "ab\n" * 65,
        ),
        *(None, 12345678, ["a-secret-in-a-list"], {"a": "secret-in-a-map"}, "half a character \ud800"),
    ],
)
def test_what_is_no_secret_is_refused_without_being_shown(value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_value(value)
    assert "got" not in str(refused.value)
    assert not refused.value.value


def test_kms_words_are_not_shown(world: World) -> None:
    kms: Any = world.secret_key.kms
    kms.refuses = "DisabledException"
    with pytest.raises(Busy, match=r"does not encrypt the secret now: DisabledException$"):
        world.secret_key.encrypted("alice", "token", "correct horse")


def test_a_new_value_is_used_within_a_minute_and_an_unchanged_one_decrypted_each_five(world: World) -> None:
    kms: Any = world.secret_key.kms
    values = SecretValues(world.table("tenants"), world.secret_key)
    now = world.clock.now()
    world.secrets.put("alice", "token", "the first value", now)
    for second in range(0, DECRYPTED_FOR_S, 7):
        assert values.value("alice", "token", now + second) == "the first value"
    assert len(kms.decrypted) == 1
    world.secrets.put("alice", "token", "the second value", now)
    last = now + second
    assert values.value("alice", "token", last + TRUSTED_FOR_S) == "the second value"
    world.secrets.delete("alice", "token", now)
    assert values.value("alice", "token", last + 2 * TRUSTED_FOR_S) is None
    world.secrets.put("alice", "token", "the third value", now)
    assert values.value("alice", "token", last + 2 * TRUSTED_FOR_S) == "the third value"


def test_a_disabled_key_has_an_effect_within_five_minutes(world: World) -> None:
    kms: Any = world.secret_key.kms
    values, now = SecretValues(world.table("tenants"), world.secret_key), world.clock.now()
    world.secrets.put("alice", "token", "the first value", now)
    assert values.value("alice", "token", now)
    kms.refuses = "DisabledException"
    assert values.value("alice", "token", now + DECRYPTED_FOR_S - 1)
    with pytest.raises(Busy):
        values.value("alice", "token", now + DECRYPTED_FOR_S + TRUSTED_FOR_S)


@pytest.mark.parametrize("fails", [False, True])
def test_threads_that_need_one_secret_share_its_read(world: World, fails: bool) -> None:
    world.secrets.put("alice", "token", "the first value", world.clock.now())
    has_begun, go_on, calls = threading.Event(), threading.Event(), []

    class SlowKey(SecretKey):
        def decrypted(self, tenant: str, name: str, stored: str, kind: str = SECRET) -> str:
            calls.append(name)
            has_begun.set()
            assert go_on.wait(10)
            if fails:
                raise Busy("KMS is away")
            return super().decrypted(tenant, name, stored, kind)

    values = SecretValues(world.table("tenants"), SlowKey(world.secret_key.kms, world.secret_key.arn))

    def read() -> str | None:
        return values.value("alice", "token", world.clock.now())

    with ThreadPoolExecutor(5) as threads:
        first_read = threads.submit(read)
        assert has_begun.wait(10)
        reading = values._reads._under_way["alice", "token"]
        later_reads = [threads.submit(reading.result) for _ in range(2)]
        later_reads += [threads.submit(read) for _ in range(2)]
        # Whoever came late enough to find the value known is no other read either.
        go_on.set()
        results = [each.exception() or each.result() for each in (first_read, *later_reads)]
    if fails:
        assert all(isinstance(result, Busy) for result in results)
    else:
        assert (results, calls) == (["the first value"] * 5, ["token"])
    assert not values._reads._under_way


def test_a_tenant_with_many_secrets_pushes_out_its_own(world: World) -> None:
    kms: Any = world.secret_key.kms
    values, now = SecretValues(world.table("tenants"), world.secret_key, most=10), world.clock.now()
    for tenant, count in (("bob", 5), ("alice", 30)):
        for number in range(count):
            world.secrets.put(tenant, f"s{number}", "some value", now)
    for number in range(5):
        values.value("bob", f"s{number}", now)
    for _ in range(2):
        for number in range(30):
            values.value("alice", f"s{number}", now)
            assert len(values._places) <= 10
    kms.decrypted.clear()
    for number in range(5):
        values.value("bob", f"s{number}", now)
    assert kms.decrypted == []
    values.value("alice", "s0", now)
    assert [context["tenant"] for context in kms.decrypted] == ["alice"]


def test_what_was_copied_to_another_tenant_is_no_value(world: World) -> None:
    now = world.clock.now()
    world.secrets.put("alice", "token", "the value of alice", now)
    item = world.table("tenants").get(keys.secret("alice", "token"))
    assert item
    world.table("tenants").put({**item, **keys.secret("bob", "token")})
    with pytest.raises(Busy):
        SecretValues(world.table("tenants"), world.secret_key).value("bob", "token", now)
