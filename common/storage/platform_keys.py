"""The keys of the platform's lists of tenants, of API keys, and of request rates.

| table   | pk                           | sk                              | item                                   |
| ------- | ---------------------------- | ------------------------------- | -------------------------------------- |
| tenants | TENANTS#                     | tenant                          | the list of all tenants                |
| tenants | tenant                       | KEYREF#key_id                   | the tenant's list of its keys          |
| tenants | KEY#sha256 of the key        | KEY                             | whose key it is                        |
| tenants | OPERATORS#                   | KEYREF#key_id                   | the list of the platform's own keys    |
| tenants | tenant                       | ADDITIONS#keys                  | a mark that each new key changes       |
| tenants | tenant                       | RATE#minute                     | how many requests of it are taken      |
"""

from __future__ import annotations

from typing import Final

from common.storage.keys import Key

# No tenant's id contains a #.
TENANTS: Final = "TENANTS#"
KEY_REFERENCE_PREFIX: Final = "KEYREF#"


def tenant_listing(tenant_id: str) -> Key:
    return {"pk": TENANTS, "sk": tenant_id}


def api_key(key_hash: str) -> Key:
    return {"pk": f"KEY#{key_hash}", "sk": "KEY"}


def api_key_reference(tenant_id: str, key_id: str) -> Key:
    return {"pk": tenant_id, "sk": f"{KEY_REFERENCE_PREFIX}{key_id}"}


def request_rate(tenant_id: str, minute: int) -> Key:
    return {"pk": tenant_id, "sk": f"RATE#{minute}"}
