"""The keys of schedule groups.

| table   | pk                           | sk                              | item                                   |
| ------- | ---------------------------- | ------------------------------- | -------------------------------------- |
| jobs    | tenant                       | SCHEDULE_GROUP#name             | a group of schedules, and its tags     |
| tenants | GROUP_DELETIONS#             | tenant#name                     | a group whose schedules are deleted    |
| jobs    | tenant                       | ONCE#group-token                | a request about a group that was done  |
"""

from __future__ import annotations

from typing import Final

from common.storage.keys import Key

PREFIX: Final = "SCHEDULE_GROUP#"
# The groups of all tenants that are being deleted.
DELETIONS: Final = "GROUP_DELETIONS#"


def group(tenant: str, name: str) -> Key:
    return {"pk": tenant, "sk": f"{PREFIX}{name}"}


def deletion(tenant: str, name: str) -> Key:
    return {"pk": DELETIONS, "sk": f"{tenant}#{name}"}
