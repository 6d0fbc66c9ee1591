"""A tenant's secrets: values that its jobs name as `secret://name`, and that nothing shows.

KMS encrypts each value itself, so no code here does. Tenant and name are its encryption context: what is stored for one
name is no value for another. The API may only encrypt, the executor only decrypt (deploy/roles.yml).
https://docs.aws.amazon.com/kms/latest/APIReference/API_Encrypt.html
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import Struct

from common.cache import FairCache, JointReads
from common.errors import Busy, InvalidInput, aws_code
from common.limits import SECRET_BYTES, SECRET_CHARS, SECRET_LINES
from common.storage import keys
from common.storage.aws import on_first_use
from common.storage.table import Table

# A new value is used after this time at the latest.
TRUSTED_FOR_S: Final = 60
# An unchanged value is decrypted again after this time, so that a key that is disabled has an effect.
DECRYPTED_FOR_S: Final = 300
_MAX_KNOWN: Final = 1_000
# Beside the tenant in the encryption context: the kind, and its name. Policies distinguish kinds (deploy/secrets.yml).
SECRET: Final = "secret"


@dataclass(frozen=True, slots=True)
class SecretKey:
    """The deployment's key for secrets; `kms` is boto3's client, or does the same."""

    kms: Any
    arn: str

    @classmethod
    def of(cls, arn: str, kms: Callable[[], Any]) -> SecretKey | None:
        """The key of a deployment; None if it has none. `kms` is called when something is encrypted or decrypted."""
        return cls(on_first_use(kms), arn) if arn else None

    def encrypted(self, tenant: str, name: str, value: str, kind: str = SECRET) -> str:
        """What is stored. Raises Busy if KMS does not encrypt."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = self.kms.encrypt(
                KeyId=self.arn, Plaintext=value.encode(), EncryptionContext={"tenant": tenant, kind: name}
            )
        except (BotoCoreError, ClientError, ValueError) as error:
            raise Busy(f"KMS does not encrypt the secret now: {aws_code(error)}") from None
        return base64.b64encode(answer["CiphertextBlob"]).decode()

    def decrypted(self, tenant: str, name: str, stored: str, kind: str = SECRET) -> str:
        """The value. Raises Busy if KMS does not decrypt."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = self.kms.decrypt(
                KeyId=self.arn,
                CiphertextBlob=base64.b64decode(stored),
                EncryptionContext={"tenant": tenant, kind: name},
            )
        except (BotoCoreError, ClientError, ValueError) as error:
            raise Busy(f"KMS does not decrypt the secret {name!r} now: {aws_code(error)}") from None
        return bytes(answer["Plaintext"]).decode()


def check_value(value: object) -> str:
    """A value that can be a secret. Raises InvalidInput, which does not contain it."""
    accepted = (
        f"a text of {SECRET_CHARS} characters or more beside backslashes, "
        f"of {SECRET_BYTES} bytes at most in UTF-8, and of {SECRET_LINES} lines at most"
    )
    if not isinstance(value, str):
        raise InvalidInput("value", "is no text", accepted=accepted)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInput("value", "has half a character", accepted=accepted) from None
    # However often an answer escapes a value, without backslashes enough of it is left to be found and redacted.
    chars = len(value.replace("\\", "").strip())
    if chars < SECRET_CHARS or size > SECRET_BYTES:
        raise InvalidInput("value", f"has {chars} characters, {size} bytes", accepted=accepted)
    # What a target answers is searched for each line.
    if (lines := len(value.splitlines())) > SECRET_LINES:
        raise InvalidInput("value", f"has {lines} lines", accepted=accepted)
    return value


@dataclass(frozen=True, slots=True)
class _Known:
    stored: str
    value: str
    decrypted_at: float
    read_at: float


@dataclass(slots=True)
class _Place:
    """What is known of one secret."""

    known: _Known | None = None

    def trusted(self, now: float) -> str | None:
        """The value, if it was read within TRUSTED_FOR_S."""
        is_trusted = self.known and 0 <= now - self.known.read_at < TRUSTED_FOR_S
        return self.known.value if self.known and is_trusted else None


class SecretValues:
    """The values of all tenants' secrets, at most `most`. Use one instance per process."""

    def __init__(self, table: Table, key: SecretKey, most: int = _MAX_KNOWN) -> None:
        self._table = table
        self._key = key
        self._places: FairCache[_Place] = FairCache(most)
        # Many executions of a second can name one secret: they share one read, also if it fails.
        self._reads: JointReads[tuple[str, str], str | None] = JointReads()

    def value(self, tenant: str, name: str, now: float) -> str | None:
        """The value; None if there is no such secret. Raises Busy, and what a read raises."""
        place = self._places.get((tenant, name), tenant, _Place)
        return place.trusted(now) or self._reads.get(
            (tenant, name), lambda: self._read(tenant, name, now, place)
        )

    def _read(self, tenant: str, name: str, now: float, place: _Place) -> str | None:
        if value := place.trusted(now):  # since a moment ago
            return value
        item, before = self._table.get(keys.secret(tenant, name)), place.known
        if item is None:  # not kept: it may be put at any time
            place.known = None
        elif before and before.stored == item["value"] and 0 <= now - before.decrypted_at < DECRYPTED_FOR_S:
            place.known = replace(before, read_at=now)
        else:
            value = self._key.decrypted(tenant, name, item["value"])
            place.known = _Known(item["value"], value, now, now)
        return place.known.value if place.known else None


class Secret(Struct, frozen=True):
    """What may be known of a secret."""

    name: str
    revision: int
    created_at: int
    updated_at: int
