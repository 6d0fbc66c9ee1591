"""A tenant's webhook secret: created once, rotated without a gap; and the convention's own example."""

from __future__ import annotations

import base64

import pytest

from common.errors import Conflict
from common.tenants.webhook_secrets import (
    MAX_OLD_SECRETS,
    ROTATION_S,
    TRUSTED_FOR_S,
    WebhookSecrets,
    new_secret,
    signature,
)
from tests.worlds import World


def secrets_of(world: World) -> WebhookSecrets:
    return WebhookSecrets(world.table("tenants"))


def test_a_tenant_has_none_until_one_is_made_and_then_keeps_it(world: World) -> None:
    assert secrets_of(world).signing("alice", 100) == ()
    secret = secrets_of(world).ensure("alice", 100)
    assert secrets_of(world).ensure("alice", 200) == secret
    assert secrets_of(world).signing("alice", 200) == (secret,)
    assert secrets_of(world).signing("bob", 200) == ()


def test_after_a_change_both_sign_for_a_day(world: World) -> None:
    first = secrets_of(world).ensure("alice", 100)
    second = secrets_of(world).rotate("alice", 1_000)
    assert second != first
    assert secrets_of(world).signing("alice", 1_000) == (second, first)
    assert secrets_of(world).signing("alice", 1_000 + ROTATION_S) == (second,)


def test_several_changes_within_a_day_drop_no_secret(world: World) -> None:
    secrets = [secrets_of(world).ensure("alice", 100)]
    for hour in range(1, MAX_OLD_SECRETS + 1):
        secrets.append(secrets_of(world).rotate("alice", 3_600 * hour))
    newest_first = tuple(reversed(secrets))
    assert secrets_of(world).signing("alice", 90_000 - 3_600) == newest_first
    with pytest.raises(Conflict, match="ends at 1970-01-02T01:00:00Z"):
        secrets_of(world).rotate("alice", 90_000 - 1)
    assert secrets_of(world).signing("alice", 90_000 - 1) == newest_first
    assert secrets_of(world).signing("alice", 90_000) == newest_first[:-1]
    last = secrets_of(world).rotate("alice", 90_000)
    assert secrets_of(world).signing("alice", 90_000) == (last, *newest_first[:-1])


def test_an_executor_notices_a_change_within_a_minute(world: World) -> None:
    secrets = secrets_of(world)
    first = secrets.ensure("alice", 100)
    assert secrets.signing("alice", 100) == (first,)
    second = secrets_of(world).rotate("alice", 110)
    assert secrets.signing("alice", 110) == (first,)
    assert secrets.signing("alice", 100 + TRUSTED_FOR_S) == (second, first)


def test_a_secret_is_one_that_the_conventions_libraries_take() -> None:
    secret = new_secret()
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    assert new_secret() != secret


def test_the_example_of_the_conventions_libraries() -> None:
    """The test vector of the convention's reference implementations."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert signature([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == expected
