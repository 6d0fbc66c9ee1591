"""A tenant's webhook secret: created once, rotated without a gap; and the convention's own example."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from common.errors import Busy, Conflict
from common.storage import keys
from common.tenants.secrets import SecretKey
from common.tenants.webhook_secrets import WebhookSecrets, new_secret, signature
from tests.worlds import World

DECRYPTED_FOR_S = 3_600
MAX_OLD_SECRETS = 3
ROTATION_S = 86_400
TRUSTED_FOR_S = 60


@pytest.fixture(params=["plain", "encrypted"])
def keeps(request: pytest.FixtureRequest) -> str:
    """Whether the deployment has a key for secrets."""
    return str(request.param)


@pytest.fixture
def secrets_of(keeps: str) -> Callable[[World], WebhookSecrets]:
    return with_key if keeps == "encrypted" else without_key


def with_key(world: World) -> WebhookSecrets:
    return WebhookSecrets(world.table("tenants"), lambda: world.secret_key)


def without_key(world: World) -> WebhookSecrets:
    return WebhookSecrets(world.table("tenants"), lambda: None)


def stored(world: World) -> dict[str, Any]:
    item = world.table("tenants").get(keys.webhook_secret("alice"))
    assert item
    return item


def test_a_tenant_has_none_until_one_is_made_and_then_keeps_it(
    world: World, secrets_of: Callable[[World], WebhookSecrets]
) -> None:
    assert secrets_of(world).signing("alice", 100) == ()
    secret = secrets_of(world).shown("alice", 100)
    assert secrets_of(world).shown("alice", 200) == secret
    assert secrets_of(world).signing("alice", 200) == (secret,)
    assert secrets_of(world).signing("bob", 200) == ()


def test_after_a_change_both_sign_for_a_day(
    world: World, secrets_of: Callable[[World], WebhookSecrets]
) -> None:
    first = secrets_of(world).shown("alice", 100)
    second = secrets_of(world).rotate("alice", 1_000)
    assert second != first
    assert secrets_of(world).signing("alice", 1_000) == (second, first)
    assert secrets_of(world).signing("alice", 1_000 + ROTATION_S) == (second,)


def test_several_changes_within_a_day_drop_no_secret(
    world: World, secrets_of: Callable[[World], WebhookSecrets]
) -> None:
    secrets = [secrets_of(world).shown("alice", 100)]
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


def test_an_executor_notices_a_change_within_a_minute(
    world: World, secrets_of: Callable[[World], WebhookSecrets]
) -> None:
    secrets = secrets_of(world)
    first = secrets.shown("alice", 100)
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


def test_what_is_written_is_encrypted_and_no_request_shows_it(world: World) -> None:
    """Also what was stored in plain text before there was a key: it is, when it is next written."""
    shown = [without_key(world).shown("alice", 100), without_key(world).rotate("alice", 200)]
    assert (stored(world)["secret"], stored(world)["previous"]) == (shown[1], shown[0])
    assert with_key(world).shown("alice", 250) == shown[1]
    shown.append(with_key(world).rotate("alice", 300))
    assert stored(world)["secret"].startswith("kms:")
    assert not [secret for secret in shown if secret in json.dumps(stored(world), default=str)]
    assert with_key(world).signing("alice", 300) == tuple(reversed(shown))
    assert with_key(world).shown("alice", 300) == shown[-1]


def test_a_secret_is_of_one_tenant_and_no_tenants_own_secret(world: World) -> None:
    """Somebody who can write the table copies texts between items."""
    with_key(world).ensure("alice", 100)
    world.table("tenants").put({**stored(world), **keys.webhook_secret("bob")})
    with pytest.raises(Busy, match="InvalidCiphertext"):
        with_key(world).signing("bob", 100)
    own = world.secret_key.encrypted("alice", "webhook-signature", "a value of alice's")
    world.table("tenants").put({**stored(world), "secret": f"kms:{own}"})
    with pytest.raises(Busy, match="InvalidCiphertext"):
        with_key(world).signing("alice", 100)
    with pytest.raises(Busy, match="InvalidCiphertext"):
        with_key(world).shown("alice", 100)


def test_without_its_key_a_secret_is_not_replaced_and_nothing_is_signed(world: World) -> None:
    secret = with_key(world).shown("alice", 100)
    for read in (without_key(world).signing, without_key(world).shown):
        with pytest.raises(Busy, match="secretsKey is off"):
            read("alice", 200)
    kms: Any = world.secret_key.kms
    kms.refuses = "DisabledException"
    for change in (with_key(world).signing, with_key(world).shown, with_key(world).rotate):
        with pytest.raises(Busy, match=r"now: DisabledException$"):
            change("alice", 200)
    kms.refuses = ""
    assert with_key(world).signing("alice", 200) == (secret,)


def test_a_change_that_is_refused_is_asked_of_no_key(world: World) -> None:
    """Each request of KMS costs money, and a tenant may try as often as its rate allows."""
    secrets = with_key(world)
    for second in range(MAX_OLD_SECRETS + 1):
        secrets.rotate("alice", second)
    kms: Any = world.secret_key.kms
    kms.refuses = "AccessDeniedException"
    with pytest.raises(Conflict):
        secrets.rotate("alice", 100)


def test_a_tenants_first_secret_is_not_stored_in_plain_text_while_kms_refuses(world: World) -> None:
    kms: Any = world.secret_key.kms
    kms.refuses = "AccessDeniedException"
    with pytest.raises(Busy):
        with_key(world).ensure("alice", 100)
    assert world.table("tenants").get(keys.webhook_secret("alice")) is None


def test_a_process_decrypts_a_secret_once_an_hour_and_many_threads_once(world: World) -> None:
    kms: Any = world.secret_key.kms
    with_key(world).ensure("alice", 0)
    signing = with_key(world).signing
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda _: signing("alice", 0), range(100)))) == 1
    for second in range(0, DECRYPTED_FOR_S, 7):
        assert signing("alice", second)
    assert len(kms.decrypted) == 1
    kms.refuses = "DisabledException"
    with pytest.raises(Busy):
        signing("alice", DECRYPTED_FOR_S + TRUSTED_FOR_S)


def test_a_message_without_signature_is_asked_of_no_key(world: World) -> None:
    """A deployment whose secrets are all in plain text makes no request to KMS for them."""

    def raising() -> SecretKey | None:
        raise AssertionError

    without_key(world).ensure("alice", 100)
    assert WebhookSecrets(world.table("tenants"), raising).signing("alice", 100)
