"""What the platform allows a tenant: its state, targets, quotas, and how long its runs are kept. Pure.

The rules are on the tenant's item. A rule that an old item does not have gets the default of a new tenant, so that an
old tenant never gets more than the platform has allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

from common.errors import InvalidInput
from common.tenants.states import ACTIVE, State
from common.timing.instants import DAY_S

_MAX_DAYS: Final = 400
MAX_SPREAD_S: Final = 3_600
_MAX_PATTERNS: Final = 100
_PATTERN_CHARS: Final = 512
# An ARN in its six parts; or a host, `*.` and a host, or an IPv6 address, each with an optional port.
_PATTERN: Final = re.compile(
    r"\*|arn(:[^:\s]*){4}:\S+|(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?|\[[0-9a-f:.]+\](:[0-9]{1,5})?",
    re.ASCII | re.IGNORECASE,
)
_MAX_QUOTAS: Final = {
    "jobs": 10_000_000,
    "executions_per_day": 10_000_000_000,
    "shortest_interval_s": 366 * DAY_S,
    "payload_bytes": 256 * 1024,
    "requests_per_minute": 1_000_000,
}


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas. `executions_per_day` is estimated from the schedules when jobs are registered."""

    jobs: int = 10_000
    executions_per_day: int = 1_000_000
    shortest_interval_s: int = 1
    payload_bytes: int = 128 * 1024
    requests_per_minute: int = 6_000


@dataclass(frozen=True, slots=True)
class TenantRules:
    """What a tenant may do. `allowed_targets` are patterns (allowed_targets.py); an empty list allows nothing."""

    state: State = ACTIVE
    allowed_targets: tuple[str, ...] = ()
    quotas: Quotas = field(default_factory=Quotas)
    retention_days: int = 30
    # The spread of jobs that name none; None: the platform's.
    spread_s: int | None = None

    @property
    def run_retention_s(self) -> int:
        """How long the tenant's runs are kept."""
        return self.retention_days * DAY_S

    def to_item(self) -> dict[str, Any]:
        """The attributes on the tenant's item."""
        return {**asdict(self), "allowed_targets": list(self.allowed_targets)}

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> TenantRules:
        """The inverse of `to_item`; also reads items with some or no rules, or with quotas of a later version."""
        quotas = item.get("quotas", {})
        known = {field.name: quotas[field.name] for field in fields(Quotas) if field.name in quotas}
        return cls(
            state=item.get("state", ACTIVE),
            allowed_targets=tuple(item.get("allowed_targets", ())),
            quotas=Quotas(**known),
            retention_days=item.get("retention_days", cls().retention_days),
            spread_s=item.get("spread_s"),
        )


SETTABLE: Final = ("allowed_targets", "quotas", "retention_days", "spread_s")
# A change may also add single patterns to `allowed_targets`, or remove them.
EDITABLE: Final = (*SETTABLE, "add_targets", "remove_targets")


def changed(rules: TenantRules, changes: Mapping[str, Any]) -> TenantRules:
    """The rules with some of `EDITABLE` applied, and only the given quotas replaced; None sets the default.

    Raises InvalidInput.
    """
    if unknown := sorted(set(changes) - set(EDITABLE)):
        name = unknown[0]
        raise InvalidInput(name, "is not a known field", value=changes[name], accepted=", ".join(EDITABLE))
    new = TenantRules()
    if "allowed_targets" in changes:
        patterns = changes["allowed_targets"]
        patterns = new.allowed_targets if patterns is None else _patterns(patterns)
        rules = replace(rules, allowed_targets=patterns)
    if "add_targets" in changes or "remove_targets" in changes:
        rules = replace(rules, allowed_targets=_edited(rules.allowed_targets, changes))
    if "retention_days" in changes:
        days = changes["retention_days"]
        days = new.retention_days if days is None else _whole_number("retention_days", days, _MAX_DAYS)
        rules = replace(rules, retention_days=days)
    if "spread_s" in changes:
        spread_s = changes["spread_s"]
        if spread_s is not None:
            spread_s = _whole_number("spread_s", spread_s, MAX_SPREAD_S, least=0)
        rules = replace(rules, spread_s=spread_s)
    if "quotas" in changes:
        quotas = changes["quotas"]
        rules = replace(rules, quotas=new.quotas if quotas is None else _quotas(rules.quotas, quotas))
    return rules


def _edited(patterns: tuple[str, ...], changes: Mapping[str, Any]) -> tuple[str, ...]:
    """The patterns with single ones removed and added."""
    if "allowed_targets" in changes:
        raise InvalidInput(
            "allowed_targets",
            "replaces all patterns",
            accepted="either it, or add_targets and remove_targets",
        )
    removed = _patterns(changes.get("remove_targets") or [], "remove_targets")
    added = _patterns(changes.get("add_targets") or [], "add_targets")
    for at, pattern in enumerate(removed):
        if pattern not in patterns:
            raise InvalidInput(
                f"remove_targets.{at}",
                "is not one of the tenant's patterns",
                value=pattern,
                accepted=patterns_shown(patterns),
            )
    return _patterns([*(pattern for pattern in patterns if pattern not in removed), *added])


def _patterns(value: object, name: str = "allowed_targets") -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or len(value) > _MAX_PATTERNS:
        raise InvalidInput(
            name,
            "must be a list of patterns",
            value=value,
            accepted=f"at most {_MAX_PATTERNS} texts",
        )
    return tuple(dict.fromkeys(check_pattern(f"{name}.{at}", pattern) for at, pattern in enumerate(value)))


def check_pattern(field: str, pattern: object) -> str:
    """A pattern of targets. Raises InvalidInput."""
    if not isinstance(pattern, str) or len(pattern) > _PATTERN_CHARS or not _PATTERN.fullmatch(pattern):
        raise InvalidInput(
            field,
            "must be a pattern of targets",
            value=pattern,
            accepted="an ARN with * and ?, a host, *.host, either with :port, or *",
        )
    return pattern


def _quotas(quotas: Quotas, changes: object) -> Quotas:
    names = [field.name for field in fields(Quotas)]
    if not isinstance(changes, Mapping):
        raise InvalidInput(
            "quotas", "must be an object", value=changes, accepted=f"some of {', '.join(names)}"
        )
    if unknown := sorted(set(changes) - set(names)):
        name = unknown[0]
        raise InvalidInput(
            f"quotas.{name}", "is not a known quota", value=changes[name], accepted=", ".join(names)
        )
    default = Quotas()
    values = {
        name: getattr(default, name)
        if value is None
        else _whole_number(f"quotas.{name}", value, _MAX_QUOTAS[name], least(name))
        for name, value in changes.items()
    }
    return replace(quotas, **values)


def least(quota: str) -> int:
    """The smallest value of a quota: zero jobs makes sense, zero seconds does not."""
    return 0 if quota in ("jobs", "executions_per_day", "requests_per_minute") else 1


def _whole_number(name: str, value: object, most: int, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidInput(
            name, "is out of range", value=value, accepted=f"a whole number from {least} to {most}"
        )
    return value


def patterns_shown(patterns: Iterable[str]) -> str:
    """The patterns for an error message."""
    return ", ".join(patterns) or "none"
