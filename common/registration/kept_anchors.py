"""The anchors of intervals whose clients write none: they stay through changes of the job. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from common.timing.schedule import CronTiming, EveryTiming, ManyTiming, Schedule


def anchored_as(
    before: Schedule, written_before: Mapping[str, Any], schedule: Schedule, written: Mapping[str, Any]
) -> Schedule:
    """An unchanged interval without a written anchor keeps its anchor; of several schedules each by itself."""
    known = [
        part
        for part, fields in zip(before.parts, written_before.get("schedules", [written_before]), strict=True)
        if "anchor" not in fields
    ]
    parts = tuple(
        part if "anchor" in fields else next(filter(None, (_anchored(old, part) for old in known)), part)
        for part, fields in zip(schedule.parts, written.get("schedules", [written]), strict=True)
    )
    if isinstance(schedule.timing, ManyTiming):
        return replace(schedule, timing=ManyTiming(parts))
    return parts[0]


def _anchored(before: Schedule, schedule: Schedule) -> Schedule | None:
    """The schedule with the anchor of the one before; None if their intervals differ."""
    old, new = before.timing, schedule.timing
    if isinstance(old, EveryTiming) and isinstance(new, EveryTiming):
        return replace(schedule, timing=old) if old.interval_s == new.interval_s else None
    is_same_zone = (
        isinstance(old, CronTiming) and isinstance(new, CronTiming) and old.timezone == new.timezone
    )
    if (
        is_same_zone
        and before.interval
        and schedule.interval
        and before.interval.text == schedule.interval.text
    ):
        return replace(schedule, timing=old, interval=before.interval)
    return None
