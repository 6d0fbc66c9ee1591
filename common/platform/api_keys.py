"""API keys: who may call the API, and for which tenant.

A key is `m8_`, 256 random bits in base 62, and a checksum. So secret scanners can recognise a leaked key, and a
mistyped key costs no read. A key is shown once, when it is created. Only its SHA-256 is stored: 256 random bits need no
salt. A pair for AWS's SDKs is kept like a key, by its access key id. Its secret is derived (`signing_masters.py`).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from common.cache import Cache, convert
from common.clock import Clock, SystemClock
from common.errors import Conflict, InvalidInput, NotFound, Unauthenticated
from common.ids import check_name
from common.limits import MAX_KEYS
from common.platform.signing_masters import Masters, is_access_key_id
from common.storage import keys
from common.storage.aws import readable
from common.storage.conflicts import retry_on_conflict
from common.storage.expressions import ABSENT, PRESENT, Attribute, change
from common.storage.stored import read
from common.storage.table import Query, Table
from common.storage.transactions import Addition, Transaction
from common.tenants.audit import AWS, Audit
from common.tenants.tenant import IS_THERE
from common.timing.instants import DAY_S

Role = Literal["read", "write", "admin", "operator"]
# Roles of a tenant's keys; each role includes the rights of those before it.
ROLES: Final[tuple[Role, ...]] = ("read", "write", "admin")
# The role of the platform's own keys, which belong to no tenant.
OPERATOR: Final = "operator"


@dataclass(frozen=True, slots=True)
class Credential:
    """The identity that a request's key or token proves. Everything that the request does belongs to its tenant."""

    tenant: str
    role: Role
    key_id: str

    @property
    def by(self) -> str:
        """The name in the audit."""
        return f"{OPERATOR}:{self.key_id}" if self.role == OPERATOR else self.key_id

    def may(self, needed: Role) -> bool:
        """Whether the role suffices. Operators may use only operator routes, and tenants only tenant routes."""
        if OPERATOR in (self.role, needed):
            return self.role == needed
        return ROLES.index(self.role) >= ROLES.index(needed)


# A revoked key is refused after this time at the latest, plus the time of one read.
TRUSTED_FOR_S: Final = 30
_TRUSTED_KEYS: Final = 10_000
# The audit keeps a revoked key longer.
_LISTED_S: Final = 30 * DAY_S

_PREFIX_CHARS: Final = 8
_KEY_ID_CHARS: Final = 16
_KEY_ID: Final = re.compile(rf"[0-9a-f]{{{_KEY_ID_CHARS}}}", re.ASCII)

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KEY_BITS: Final = 256
_SECRET_CHARS: Final = 43  # the fewest that can hold 256 bits in base 62
_CHECKSUM_CHARS: Final = 6
_KEY: Final = re.compile(rf"m8_([0-9A-Za-z]{{{_SECRET_CHARS}}})([0-9A-Za-z]{{{_CHECKSUM_CHARS}}})", re.ASCII)


def new_key() -> str:
    """A new random key."""
    secret = _base62(secrets.randbits(_KEY_BITS), _SECRET_CHARS)
    return f"m8_{secret}{_checksum(secret)}"


def is_well_formed(raw_key: str) -> bool:
    """Whether the text has the format of a key, with a valid checksum."""
    match = _KEY.fullmatch(raw_key)
    return match is not None and match[2] == _checksum(match[1])


def hash_of(raw_key: str) -> str:
    """The stored form of a key: its SHA-256 in hexadecimal digits."""
    return hashlib.sha256(raw_key.encode()).hexdigest()


def _checksum(secret: str) -> str:
    return _base62(zlib.crc32(secret.encode()), _CHECKSUM_CHARS)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


class ApiKey(Struct, frozen=True, omit_defaults=True, rename={"expires_at": "valid_until"}):
    """What is stored of a key. The item itself expires later: a key that is over stays listed for _LISTED_S."""

    key_id: str
    tenant: str
    role: Role
    name: str
    prefix: str
    key_hash: str
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None
    # Of a pair that signs requests; None for a key that is sent as it is.
    access_key_id: str | None = None

    def state(self, now: float) -> Literal["active", "expired", "revoked"]:
        """The state at `now`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and now >= self.expires_at else "active"


class ApiKeys:
    """The keys in the tenants table. Use one instance per process; it trusts a key for some seconds."""

    def __init__(self, table: Table, clock: Clock | None = None) -> None:
        self._table = table
        self._clock = clock or SystemClock()
        self._trusted: Cache[str, ApiKey] = Cache(TRUSTED_FOR_S, _TRUSTED_KEYS)

    def create_key(
        self,
        tenant_id: str,
        role: str,
        now: float,
        *,
        name: str = "",
        expires_at: int | None = None,
        masters: Masters | None = None,
        by: str = AWS,
    ) -> tuple[str, ApiKey]:
        """Create a key; with `masters` a pair. The key, or the pair's secret access key, is returned only here.

        Raises InvalidInput, NotFound (the tenant), Conflict (it has too many keys), Busy.
        """
        if role not in ROLES:
            raise InvalidInput("role", "must be a role", value=role, accepted=", ".join(ROLES))
        raw_key, key = _new_api_key(tenant_id, role, now, name, expires_at, masters)

        def fill(tx: Transaction) -> None:
            tx.check(self._table, keys.tenant(tenant_id), IS_THERE)
            self._put(tx, tenant_id, key, by)

        if not self._add(tenant_id, now, fill):  # the tenant was deleted, or never existed
            raise NotFound("tenant", tenant_id)
        return raw_key, key

    def create_operator_key(
        self, now: float, *, name: str = "", expires_at: int | None = None, by: str = AWS
    ) -> tuple[str, ApiKey]:
        """Create a key of the platform's own. The key is returned only here. Raises InvalidInput, Conflict, Busy."""
        raw_key, key = _new_api_key("", OPERATOR, now, name, expires_at)
        self._add(keys.OPERATORS, now, lambda tx: self._put(tx, keys.OPERATORS, key, by))
        return raw_key, key

    def _check_room(self, owner: str, now: float) -> None:
        """Check the number of keys. Raises Conflict."""
        listed = [key for key in self.keys_of(owner) if key.expires_at is None or key.expires_at > now]
        if len(listed) >= MAX_KEYS:
            raise Conflict(
                f"there are {len(listed)} keys; accepted: {MAX_KEYS}, those that were revoked in the last "
                f"{_LISTED_S // DAY_S} days included"
            )

    def _add(self, owner: str, now: float, fill: Callable[[Transaction], None]) -> bool:
        """Write another key, as `fill` does. Returns whether its conditions held. Raises Conflict, Busy."""

        def attempt() -> bool:
            addition = Addition(self._table, keys.additions(owner, "keys"))
            self._check_room(owner, now)
            tx = Transaction(self._table.client)
            fill(tx)
            addition.note(tx)
            if refused := tx.try_commit():
                addition.check_first(refused)
            return not refused

        return self._retried(attempt)

    def _retried(self, attempt: Callable[[], bool]) -> bool:
        # Registrations count on the tenant's item, one after another: a flood must not keep the platform out.
        return retry_on_conflict(attempt, "this tenant", sleep=self._clock.sleep)

    def _put(self, tx: Transaction, owner: str, key: ApiKey, by: str) -> None:
        item = to_builtins(key)
        if key.expires_at is not None:
            item["expires_at"] = key.expires_at + _LISTED_S
        tx.put(self._table, {**keys.api_key(key.key_hash), **item}, ABSENT)
        tx.put(self._table, {**keys.api_key_reference(owner, key.key_id), **item}, ABSENT)
        Audit(self._table).add(tx, owner, by, "key.created", key.key_id, key.created_at, after=_audited(key))

    def keys_of(self, owner: str) -> list[ApiKey]:
        """The keys of a tenant or of keys.OPERATORS, oldest first; those that are over for some days."""
        items = self._table.query(Query(owner, sk_prefix=keys.KEY_REFERENCE_PREFIX))
        stored = readable(items, lambda stored: convert(stored, ApiKey))
        return sorted(stored, key=lambda key: (key.created_at, key.key_id))

    def author_names(self, owner: str, authors: Iterable[str]) -> dict[str, str]:
        """The names of the keys that made changes, by the authors as the audit has them.

        A tenant does not see the names of the platform's keys.
        """
        prefix = f"{OPERATOR}:" if owner == keys.OPERATORS else ""
        ids = {by.removeprefix(prefix) for by in authors if by.startswith(prefix)}
        references = [
            keys.api_key_reference(owner, key_id) for key_id in sorted(ids) if _KEY_ID.fullmatch(key_id)
        ]
        stored = readable(self._table.get_many(references), lambda stored: convert(stored, ApiKey))
        return {f"{prefix}{key.key_id}": key.name for key in stored if key.name}

    def revoke_key(self, owner: str, key_id: str, now: float, *, by: str = AWS) -> ApiKey:
        """Refuse the key from now on, everywhere within TRUSTED_FOR_S. Can be repeated. Raises NotFound, Busy."""
        key = self._key_of(owner, key_id)
        if key.revoked_at is not None:
            return key
        revoked = replace(key, revoked_at=int(now))
        revocation = change({"revoked_at": revoked.revoked_at, "expires_at": int(now) + _LISTED_S})
        standing = PRESENT & Attribute("revoked_at").is_absent
        before = _audited(key)
        after = {**before, "revoked_at": revoked.revoked_at}

        def attempt() -> bool:
            tx = Transaction(self._table.client)
            tx.update(self._table, keys.api_key(key.key_hash), revocation, standing)
            tx.update(self._table, keys.api_key_reference(owner, key_id), revocation, standing)
            Audit(self._table).add(tx, owner, by, "key.revoked", key_id, now, before=before, after=after)
            return tx.try_commit() is None

        if not self._retried(attempt):  # the key expired and was removed, or another writer changed it first
            return self._key_of(owner, key_id)
        self._trusted.forget(key.key_hash)
        return revoked

    def _key_of(self, owner: str, key_id: str) -> ApiKey:
        item = self._table.get(keys.api_key_reference(owner, key_id)) if _KEY_ID.fullmatch(key_id) else None
        if item is None:
            raise NotFound("key", key_id)
        return read(item, ApiKey)

    def authenticate(self, raw_key: str, now: float) -> Credential:
        """The credential of a key. Raises Unauthenticated, which never says why."""
        if not is_well_formed(raw_key):
            raise Unauthenticated
        return self._active(hash_of(raw_key), now)

    def owner_of_pair(self, access_key_id: str, now: float) -> Credential:
        """The credential of a pair, for a request whose signature is checked apart. Raises Unauthenticated."""
        if not is_access_key_id(access_key_id):
            raise Unauthenticated
        return self._active(hash_of(access_key_id), now)

    def _active(self, key_hash: str, now: float) -> Credential:
        key = self._known(key_hash, now)
        if key is None or not hmac.compare_digest(key.key_hash, key_hash) or key.state(now) != "active":
            raise Unauthenticated
        return Credential(key.tenant, key.role, key.key_id)

    def _known(self, key_hash: str, now: float) -> ApiKey | None:
        if known := self._trusted.get(key_hash, now):
            return known.value
        item = self._table.get(keys.api_key(key_hash))
        if item is None:
            self._trusted.forget(key_hash)
            return None
        key = next(readable([item], lambda stored: convert(stored, ApiKey)), None)
        if key:
            self._trusted.put(key_hash, key, now)
        return key


def _new_api_key(
    tenant_id: str, role: Role, now: float, name: str, expires_at: int | None, masters: Masters | None = None
) -> tuple[str, ApiKey]:
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("expires_at", "is in the past", value=expires_at, accepted="a later time")
    access_key_id = masters.new_access_key_id() if masters else None
    secret = masters.secret_of(access_key_id) if masters and access_key_id else None
    raw_key = secret or new_key()
    key_hash = hash_of(access_key_id or raw_key)
    return raw_key, ApiKey(
        key_id=key_hash[:_KEY_ID_CHARS],
        tenant=tenant_id,
        role=role,
        name=check_name(name),
        prefix=access_key_id or raw_key[:_PREFIX_CHARS],
        key_hash=key_hash,
        created_at=int(now),
        expires_at=None if expires_at is None else int(expires_at),  # as a plain number
        access_key_id=access_key_id,
    )


def _audited(key: ApiKey) -> dict[str, Any]:
    shown = {"role": key.role, "name": key.name, "expires_at": key.expires_at, "revoked_at": key.revoked_at}
    return shown | ({"access_key_id": key.access_key_id} if key.access_key_id else {})
