"""The figures of docs/tenants.md are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import structs

from common.ids import TENANT_ID_CHARS
from common.limits import MAX_KEYS
from common.platform.api_keys import _LISTED_S, TRUSTED_FOR_S
from common.tenants.rules_cache import TRUSTED_FOR_S as RULES_TRUSTED_FOR_S
from common.tenants.tenant import Quotas, TenantRules
from common.timing.instants import DAY_S

TEXT = " ".join((Path(__file__).resolve().parents[2] / "docs" / "tenants.md").read_text().split())


def test_the_quotas_and_what_they_are_at_first() -> None:
    documented = re.findall(r"\| `(\w+)` \| ([\d,]+) \|", TEXT)
    assert {name: int(most.replace(",", "")) for name, most in documented} == structs.asdict(Quotas())
    assert f"`retention_days`, {TenantRules().retention_days} at first" in TEXT
    assert "none, as at first, allows nothing" in TEXT and TenantRules().allowed_targets == []


def test_how_fast_and_how_many() -> None:
    assert f"any other request | {RULES_TRUSTED_FOR_S} s |" in TEXT
    assert f"every request with it | {TRUSTED_FOR_S} s, less than a minute" in TEXT
    assert f"there are {MAX_KEYS:,} in a list" in TEXT
    assert f"stay listed for {_LISTED_S // DAY_S} days" in TEXT
    assert f"1 to {TENANT_ID_CHARS} of" in TEXT
