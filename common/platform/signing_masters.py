"""The secrets of AWS key pairs: derived, never stored.

A pair's secret access key is an HMAC of its access key id, by a master secret. The masters are in one parameter of SSM;
the id names the master's version. So the tables hold nothing that could sign a request, and neither does the audit: its
HMACs of hidden values have a key that is derived from a master.
`scripts/signing_masters.py` makes, replaces and retires masters.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct, json

from common.cache import Cache
from common.errors import Busy, Conflict

# Replaced and retired masters take effect within this time.
TRUSTED_FOR_S: Final = 60
# An id of an unknown version, such as one that was made a moment ago, has them read again after this time.
_READ_AGAIN_AFTER_S: Final = 5
MAX_VERSIONS: Final = 999
_MASTER_BYTES: Final = 32
_BASE32: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
# What the key of the audit's HMACs is derived from: no access key id, or a payload could ask for a pair's secret.
_AUDIT: Final = b"audit"
_ACCESS_KEY_ID: Final = re.compile(r"M8AK([0-9]{3})[A-Z2-7]{26}", re.ASCII)


def parameter_name(stage: str) -> str:
    """The parameter of SSM with a deployment's masters."""
    return f"/minute8/{stage}/signing-masters"


class Masters(Struct, frozen=True, rename={"by_version": "masters"}):
    """The master secrets by version; new pairs use the version `current`."""

    current: int
    by_version: dict[int, bytes]

    def __post_init__(self) -> None:
        if self.current not in self.by_version:
            raise ValueError(f"there is no master of version {self.current}")
        for version, master in self.by_version.items():
            if len(master) != _MASTER_BYTES:
                raise ValueError(
                    f"the master of version {version} has {len(master)} bytes, not {_MASTER_BYTES}"
                )

    def __repr__(self) -> str:
        return f"Masters(current={self.current})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("current", self.current)]

    @classmethod
    def parse(cls, text: str) -> Masters:
        """What the parameter holds. Raises ValueError."""
        return _decoder.decode(text)

    def to_text(self) -> str:
        """The inverse of `parse`."""
        return json.encode(self).decode()

    @classmethod
    def rotated(cls, before: Masters | None) -> Masters:
        """The masters with a new current one. Existing pairs keep working. Raises Conflict."""
        known = before.by_version if before else {}
        version = max(known, default=0) + 1
        if version > MAX_VERSIONS:
            raise Conflict(f"there were {MAX_VERSIONS} masters, which are the most")
        return cls(version, known | {version: secrets.token_bytes(_MASTER_BYTES)})

    def retired(self, version: int) -> Masters:
        """The masters without one that is not current: no pair of its version can sign any more. Raises Conflict."""
        if version == self.current or version not in self.by_version:
            retirable = sorted(self.by_version.keys() - {self.current})
            raise Conflict(f"version {version} cannot be retired; accepted: one of {retirable or 'none'}")
        kept = {known: secret for known, secret in self.by_version.items() if known != version}
        return Masters(self.current, kept)

    def new_access_key_id(self) -> str:
        """A new id, with 130 random bits."""
        return f"M8AK{self.current:03}" + "".join(secrets.choice(_BASE32) for _ in range(26))

    def secret_of(self, access_key_id: str) -> str | None:
        """The secret access key of an id; None if the id has another format, or its master is retired."""
        match = _ACCESS_KEY_ID.fullmatch(access_key_id)
        master = self.by_version.get(int(match[1])) if match else None
        if master is None:
            return None
        return _derived(master, access_key_id)

    def hmac_of(self, text: str) -> str:
        """The HMAC of a text with the newest master, after its version."""
        key = hmac.digest(self.by_version[self.current], _AUDIT, "sha256")
        return f"{self.current}:{hmac.digest(key, text.encode(errors='replace'), 'sha256').hex()}"


@lru_cache(maxsize=4_096)
def _derived(master: bytes, access_key_id: str) -> str:
    digest = hmac.digest(master, access_key_id.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def is_access_key_id(text: str) -> bool:
    """Whether the text has the format of an access key id of ours."""
    return _ACCESS_KEY_ID.fullmatch(text) is not None


_decoder = json.Decoder(Masters)


class StoredMasters:
    """A deployment's masters. Use one instance per process; it trusts what it read for TRUSTED_FOR_S."""

    def __init__(self, read: Callable[[], str | None]) -> None:
        """`read` returns the parameter's value; None if it does not exist."""
        self._read = read
        self._kept: Cache[str, Masters | None] = Cache(TRUSTED_FOR_S, 1)
        # After a failed read: a change does not wait for SSM again.
        self._hmac_again_at = 0.0

    def at(self, now: float) -> Masters | None:
        """The masters; None if the deployment has none. Raises Busy if they cannot be read."""
        kept = self._kept.get("", now)
        return kept.value if kept else self._fresh(now)

    def secret_of(self, access_key_id: str, now: float) -> str | None:
        """`Masters.secret_of`; None also if the deployment has no masters. Raises Busy."""
        masters = self.at(now)
        secret = masters.secret_of(access_key_id) if masters else None
        if secret or not is_access_key_id(access_key_id):
            return secret
        if (kept := self._kept.whatever_age("")) and now - kept.at > _READ_AGAIN_AFTER_S:
            masters = self._fresh(now)
            secret = masters.secret_of(access_key_id) if masters else None
        return secret

    def hmac_of(self, text: str, now: float) -> str | None:
        """`Masters.hmac_of`; None if there are no masters, or they cannot be read now."""
        if now < self._hmac_again_at:
            return None
        try:
            masters = self.at(now)
        except Busy:
            self._hmac_again_at = now + TRUSTED_FOR_S
            return None
        return masters.hmac_of(text) if masters else None

    def _fresh(self, now: float) -> Masters | None:
        text = self._read()
        masters = Masters.parse(text) if text else None
        self._kept.put("", masters, now)
        return masters

    def required(self, now: float) -> Masters:
        """The masters. Raises Conflict if the deployment has none, Busy."""
        masters = self.at(now)
        if masters is None:
            raise Conflict(
                "this deployment has no master secret for key pairs; `python -m scripts.signing_masters make` makes it"
            )
        return masters
