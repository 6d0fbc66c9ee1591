"""What applying files changes, and what that means: which fire times appear and which vanish. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from common.errors import InvalidInput
from common.jobs.job import Retry
from common.preview.preview import resolved_as_given
from common.registration.schedule_text import parse_schedule
from common.timing.fires import next_fires
from common.timing.schedule import EveryTiming, Schedule

_TARGET_DEFAULTS: Final[Mapping[str, dict[str, Any]]] = {
    "lambda": {"invocation": "RequestResponse"},
    "http": {"method": "POST", "headers": {}},
    "event_bus": {"source": "minute8.job", "detail_type": "Scheduled Job"},
}
# How many fire times of each schedule are compared.
LOOK_AHEAD: Final = 50

Action = Literal["create", "change", "pause", "resume", "delete", "refused"]
SIGNS: Final[Mapping[Action, str]] = {
    "create": "+",
    "change": "~",
    "pause": "~",
    "resume": "~",
    "delete": "-",
    "refused": "!",
}


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one job. `fields` are those that differ, with the old and the new value."""

    action: Action
    job_id: str
    where: str = ""
    why: str = ""
    fields: tuple[tuple[str, Any, Any], ...] = ()
    appear: tuple[int, ...] = ()
    vanish: tuple[int, ...] = ()


def with_defaults(name: str, value: Any) -> Any:
    """A field as the API stores it: what is left out of `retry` and `target` has its default."""
    if name == "retry":
        return asdict(Retry()) | (value or {})
    if name == "target" and isinstance(value, Mapping):
        return _TARGET_DEFAULTS.get(str(value.get("kind")), {}) | dict(value)
    return value


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[tuple[str, Any, Any], ...]:
    """The fields that differ, those of objects one by one: `schedule.cron`."""
    found: list[tuple[str, Any, Any]] = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping) and name != "payload":
            found += [(f"{name}.{inner}", one, other) for inner, one, other in differing(old, new)]
        elif old != new or type(old) is not type(new):
            found.append((name, old, new))
    return tuple(found)


def consequences(
    before: Schedule | None, after: Schedule | None, now: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which of the next fire times appear, and which vanish; None is a job that does not fire.

    Both are compared up to where both are known. The dates of calendars are not taken out.
    """
    old = next_fires(before, now, LOOK_AHEAD) if before else []
    new = next_fires(after, now, LOOK_AHEAD) if after else []
    ends = [fires[-1] for fires in (old, new) if len(fires) == LOOK_AHEAD]
    until = min(ends, default=max([*old, *new], default=0))
    was, becomes = ({at for at in fires if at <= until} for fires in (old, new))
    return tuple(sorted(becomes - was)), tuple(sorted(was - becomes))


def move_of(appear: tuple[int, ...], vanish: tuple[int, ...]) -> tuple[int, int] | None:
    """A fire time before and after, if all move by the same; None if they do not.

    Now may lie between a fire time and where it moves, so the first of one side may have no partner on the other.
    """
    found: list[tuple[int, int]] = []
    if abs(len(appear) - len(vanish)) > 1:
        return None
    for before, after in ((vanish, appear), (vanish[1:], appear), (vanish, appear[1:])):
        shifts = {new - old for old, new in zip(before, after, strict=False)}
        if len(shifts) == 1:
            found.append((before[0], after[0]))
    return min(found, key=lambda one: abs(one[1] - one[0]), default=None)


def schedule_of(
    definition: Mapping[str, Any], job_key: str, now: int, before: Schedule | None
) -> Schedule | None:
    """The schedule of a definition; an unchanged interval keeps its anchor. None if it cannot be read."""
    try:
        schedule = parse_schedule(definition.get("schedule", {}), job_key=job_key, now=now)
    except InvalidInput:
        return None
    if before and "anchor" not in definition["schedule"]:
        old, new = before.timing, schedule.timing
        if isinstance(old, EveryTiming) and isinstance(new, EveryTiming) and old.interval_s == new.interval_s:
            return replace(schedule, timing=old)
    return schedule


def resolved_schedule(resolved: Mapping[str, Any]) -> Schedule:
    """The schedule that an answer shows as `schedule_resolved`."""
    return parse_schedule(resolved_as_given(resolved), job_key="resolved", now=0)
