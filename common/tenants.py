"""Tenants and their API keys: who may call the API, and for whom.

A key is shown once, when it is made; stored is only its SHA-256, which for 256 random bits needs no salt and no
stretching. It begins with `m8_` and ends in a checksum, so that a secret scanner recognises a leaked one without
asking, and a mistyped one costs no read.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from common import keys
from common.definition import TENANT_ID_CHARS, check_id
from common.errors import AlreadyExists, InvalidInput, NotFound, Unauthenticated
from common.tables import Condition, ConditionFailed, Table, Transaction

Role = Literal["read", "write", "admin"]
# Each role may do what those before it may.
ROLES: Final[tuple[Role, ...]] = ("read", "write", "admin")

# A revoked key is refused within this, and the time to read it.
TRUSTED_FOR_S: Final = 30
_TRUSTED_KEYS: Final = 10_000
_NAME_CHARS: Final = 200

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KEY_BITS: Final = 256
_SECRET_CHARS: Final = 43  # the least that hold 256 bits in base 62
_CHECKSUM_CHARS: Final = 6
_SHOWN_CHARS: Final = 8
_KEY: Final = re.compile(rf"m8_([0-9A-Za-z]{{{_SECRET_CHARS}}})([0-9A-Za-z]{{{_CHECKSUM_CHARS}}})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whose jobs they are."""

    tenant_id: str
    name: str
    created_at: int


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key: all but the key."""

    key_id: str
    tenant: str
    role: Role
    name: str
    prefix: str
    key_hash: str
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None

    def state(self, now: float) -> Literal["active", "expired", "revoked"]:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and now >= self.expires_at else "active"

    def to_item(self) -> dict[str, Any]:
        """As attributes of its items. Being the table's TTL, `expires_at` also clears an expired key away."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> ApiKey:
        return cls(**{name: item.get(name) for name in cls.__dataclass_fields__})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Credential:
    """Who is calling. The tenant of everything a request does is this one."""

    tenant: str
    role: Role
    key_id: str

    def may(self, needed: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(needed)


class Tenants:
    """The tenants table. One instance lives as long as its process and trusts a key it has seen for some seconds."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._trusted: OrderedDict[str, tuple[float, ApiKey]] = OrderedDict()
        self._lock = threading.Lock()

    # Tenants

    def create(self, tenant_id: str, name: str, now: float) -> Tenant:
        """Raises InvalidInput, AlreadyExists."""
        check_id("tenant_id", tenant_id, TENANT_ID_CHARS)
        tenant = Tenant(tenant_id, _checked_name(name), int(now))
        attributes = {"tenant_id": tenant_id, "name": tenant.name, "created_at": tenant.created_at}
        tx = Transaction(self._table.client)
        tx.put(
            self._table, {**keys.tenant(tenant_id), **attributes}, Condition("attribute_not_exists(pk)", {})
        )
        tx.put(self._table, {**keys.tenant_listing(tenant_id), **attributes})
        try:
            tx.commit()
        except ConditionFailed:
            raise AlreadyExists("tenant", tenant_id) from None
        return tenant

    def get(self, tenant_id: str) -> Tenant:
        """Raises NotFound."""
        item = self._table.get(keys.tenant(tenant_id))
        if item is None:
            raise NotFound("tenant", tenant_id)
        return _tenant(item)

    def list_tenants(self, after: str = "", limit: int | None = None) -> Iterator[Tenant]:
        """All tenants in the order of their ids, from behind `after`."""
        start = keys.tenant_listing(after) if after else None
        return (_tenant(item) for item in self._table.query(keys.TENANTS, after=start, limit=limit))

    # Keys

    def create_key(
        self, tenant_id: str, role: str, now: float, *, name: str = "", expires_at: int | None = None
    ) -> tuple[str, ApiKey]:
        """A new key, which is told here and never again. Raises InvalidInput, NotFound (the tenant)."""
        if role not in ROLES:
            raise InvalidInput("role", "is no role", value=role, accepted=", ".join(ROLES))
        if expires_at is not None and expires_at <= now:
            raise InvalidInput("expires_at", "is in the past", value=expires_at, accepted="a later time")
        self.get(tenant_id)
        raw_key = new_key()
        key_hash = hash_of(raw_key)
        key = ApiKey(
            key_id=key_hash[:16],
            tenant=tenant_id,
            role=role,
            name=_checked_name(name),
            prefix=raw_key[:_SHOWN_CHARS],
            key_hash=key_hash,
            created_at=int(now),
            expires_at=expires_at,
        )
        unused = Condition("attribute_not_exists(pk)", {})
        tx = Transaction(self._table.client)
        tx.put(self._table, {**keys.api_key(key_hash), **key.to_item()}, unused)
        tx.put(self._table, {**keys.api_key_reference(tenant_id, key.key_id), **key.to_item()}, unused)
        tx.commit()
        return raw_key, key

    def list_keys(self, tenant_id: str) -> list[ApiKey]:
        """Oldest first; revoked ones too, expired ones for some days. Raises NotFound (the tenant)."""
        self.get(tenant_id)
        items = self._table.query(tenant_id, sk_prefix=keys.KEY_REFERENCE_PREFIX)
        return sorted(
            (ApiKey.from_item(item) for item in items), key=lambda key: (key.created_at, key.key_id)
        )

    def revoke_key(self, tenant_id: str, key_id: str, now: float) -> ApiKey:
        """Refuse the key from now on, everywhere within TRUSTED_FOR_S. Raises NotFound."""
        reference = self._table.get(keys.api_key_reference(tenant_id, key_id))
        if reference is None:
            raise NotFound("key", key_id)
        change = Condition("SET #revoked_at = if_not_exists(#revoked_at, :now)", {":now": int(now)})
        there = Condition("attribute_exists(pk)", {})
        tx = Transaction(self._table.client)
        tx.update(self._table, keys.api_key(reference["key_hash"]), change, there)
        tx.update(self._table, keys.api_key_reference(tenant_id, key_id), change, there)
        try:
            tx.commit()
        except ConditionFailed:  # it expired, and was cleared away
            raise NotFound("key", key_id) from None
        self._forget(reference["key_hash"])
        return ApiKey.from_item(self._table.get(keys.api_key_reference(tenant_id, key_id)) or reference)

    def authenticate(self, raw_key: str, now: float) -> Credential:
        """Whose key it is. Raises Unauthenticated, which never tells why."""
        if not is_well_formed(raw_key):
            raise Unauthenticated("the API key is not valid")
        key_hash = hash_of(raw_key)
        key = self._known(key_hash, now)
        if key is None or not hmac.compare_digest(key.key_hash, key_hash) or key.state(now) != "active":
            raise Unauthenticated("the API key is not valid")
        return Credential(key.tenant, key.role, key.key_id)

    def _known(self, key_hash: str, now: float) -> ApiKey | None:
        with self._lock:
            if (known := self._trusted.get(key_hash)) and known[0] <= now < known[0] + TRUSTED_FOR_S:
                return known[1]
        item = self._table.get(keys.api_key(key_hash))
        if item is None:
            self._forget(key_hash)
            return None
        key = ApiKey.from_item(item)
        with self._lock:
            self._trusted[key_hash] = (now, key)
            self._trusted.move_to_end(key_hash)
            while len(self._trusted) > _TRUSTED_KEYS:
                self._trusted.popitem(last=False)
        return key

    def _forget(self, key_hash: str) -> None:
        with self._lock:
            self._trusted.pop(key_hash, None)


def new_key() -> str:
    secret = _base62(secrets.randbits(_KEY_BITS), _SECRET_CHARS)
    return f"m8_{secret}{_checksum(secret)}"


def is_well_formed(raw_key: str) -> bool:
    """Whether it can be a key at all, its checksum included."""
    match = _KEY.fullmatch(raw_key)
    return match is not None and match[2] == _checksum(match[1])


def hash_of(raw_key: str) -> str:
    return hashlib.sha256(raw_key.encode()).hexdigest()


def _checksum(secret: str) -> str:
    return _base62(zlib.crc32(secret.encode()), _CHECKSUM_CHARS)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def _checked_name(name: str) -> str:
    if len(name) > _NAME_CHARS:
        raise InvalidInput("name", "is too long", value=name, accepted=f"at most {_NAME_CHARS} characters")
    return name


def _tenant(item: Mapping[str, Any]) -> Tenant:
    return Tenant(item["tenant_id"], item.get("name", ""), item["created_at"])
