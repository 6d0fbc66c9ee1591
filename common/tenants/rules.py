"""How the platform changes what it allows a tenant. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct, structs, to_builtins

from common.declared import read
from common.errors import InvalidInput
from common.tenants.tenant import Patterns, TenantRules

SETTABLE: Final = ("allowed_targets", "quotas", "retention_days", "spread_s")
# A change may also add single patterns to `allowed_targets`, or remove them.
EDITABLE: Final = (*SETTABLE, "add_targets", "remove_targets")
Rules = TypeVar("Rules", bound=TenantRules)


class _Edits(Struct):
    add_targets: Patterns = []
    remove_targets: Patterns = []


def changed(rules: Rules, changes: Mapping[str, Any]) -> Rules:
    """The rules with some of `EDITABLE` applied, and only the given quotas replaced; None sets the default.

    Raises InvalidInput.
    """
    before = to_builtins(rules)
    settings = {name: changes.get(name, before[name]) for name in SETTABLE}
    if isinstance(settings["quotas"], Mapping):
        settings["quotas"] = _without_none(before["quotas"] | settings["quotas"])
    if edits := {name: changes[name] for name in ("add_targets", "remove_targets") if name in changes}:
        if "allowed_targets" in changes:
            accepted = "either it, or add_targets and remove_targets"
            raise InvalidInput("allowed_targets", "replaces all patterns", accepted=accepted)
        edited = read(_without_none(edits), _Edits, "the change")
        settings["allowed_targets"] = _edited(rules.allowed_targets, edited)
    new = read(_without_none(settings), TenantRules, "the rules")
    return structs.replace(
        rules,
        allowed_targets=list(dict.fromkeys(new.allowed_targets)),
        quotas=new.quotas,
        retention_days=new.retention_days,
        spread_s=new.spread_s,
    )


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """What is left out gets its default."""
    return {name: value for name, value in values.items() if value is not None}


def _edited(patterns: list[str], edits: _Edits) -> list[str]:
    for at, pattern in enumerate(edits.remove_targets):
        if pattern not in patterns:
            raise InvalidInput(
                f"remove_targets.{at}",
                "is not one of the tenant's patterns",
                value=pattern,
                accepted=patterns_shown(patterns),
            )
    return [*(pattern for pattern in patterns if pattern not in edits.remove_targets), *edits.add_targets]


def patterns_shown(patterns: Iterable[str]) -> str:
    """The patterns for an error message."""
    return ", ".join(patterns) or "none"
