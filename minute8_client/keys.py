"""Calls about a tenant's own keys. They need an admin key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from minute8_client.shapes import Key, MadeKey
from minute8_client.transport import Json, Transport, pages, path_of


class KeyCalls(Transport):
    """Create, list and revoke keys."""

    def api_keys(self) -> Iterator[Key]:
        """Oldest first; revoked ones stay listed for 30 days."""
        return pages(self, "/v1/keys", "keys")

    def create_key(self, role: str, *, name: str = "", expires_at: str | None = None) -> MadeKey:
        """`expires_at` is RFC 3339. The key is shown only in this answer, as `key`."""
        body = {"role": role, **key_body(name, expires_at)}
        return cast(MadeKey, self.call("POST", "/v1/keys", body, repeatable=False))

    def revoke_key(self, key_id: str) -> Key:
        """Within a minute the key is refused everywhere. It may be this client's own key."""
        return cast(Key, self.call("DELETE", path_of("keys", key_id)))


def key_body(name: str, expires_at: str | None) -> Json:
    return {"name": name, "expires_at": expires_at}
