"""Calls about the tenant itself: its calendars, its webhook secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from minute8_client.shapes import AuditEntry, AuditPage, Tenant
from minute8_client.transport import Json, Transport, pages, path_of


class TenantCalls(Transport):
    """What belongs to the tenant and not to a job."""

    def put_calendar(self, name: str, calendar: Json) -> dict[str, Any]:
        """Create a calendar or replace the whole of it."""
        answer = self.call("PUT", path_of("calendars", name), calendar)
        return cast("dict[str, Any]", answer)

    def get_calendar(self, name: str) -> dict[str, Any]:
        return cast("dict[str, Any]", self.call("GET", path_of("calendars", name)))

    def delete_calendar(self, name: str) -> None:
        self.call("DELETE", path_of("calendars", name))

    def calendars(self) -> Iterator[dict[str, Any]]:
        """All calendars, read page by page."""
        return pages(self, "/v1/calendars", "calendars")

    def webhook_secret(self) -> str:
        """What signs calls of HTTP targets; made when first asked for. Needs an admin key."""
        return str(self.call("GET", "/v1/webhook-secret")["secret"])

    def rotate_webhook_secret(self) -> str:
        """A new secret; the one before goes on signing for a day."""
        return str(self.call("POST", "/v1/webhook-secret/rotate", repeatable=False)["secret"])

    def audit_page(
        self, *, limit: int | None = None, cursor: str | None = None, **wanted: str | None
    ) -> AuditPage:
        """One page; `wanted` are `subject`, `action`, `from_at` and `until_at`. Needs an admin key."""
        query = {"limit": limit, "cursor": cursor, **wanted}
        return cast(AuditPage, self.call("GET", "/v1/audit", query=query))

    def audit(self, **wanted: str | None) -> Iterator[AuditEntry]:
        """Who changed what, newest first, page by page as they are consumed; `wanted` as for `audit_page`."""
        return pages(self, "/v1/audit", "entries", **wanted)

    def tenant(self) -> Tenant:
        return cast(Tenant, self.call("GET", "/v1/tenant"))
