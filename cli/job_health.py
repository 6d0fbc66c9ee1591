"""A job's health in a few words, for tables."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from cli.output import relative, seconds
from minute8_client.shapes import Job, JobHealth

_MARKS = {
    "succeeded": (".", "green"),
    "dispatched": (".", "green"),
    "failed": ("x", "bold red"),
    "skipped": ("s", "yellow"),
}


def next_or_late(
    job: Job,
    health: JobHealth | None,
    now: float,
    shown: Callable[[str | int | None, float], str] = relative,
) -> Text:
    """When it fires next; or how late it is, if a due instant has passed without a run."""
    if health and (overdue := health["overdue"]):
        return Text(f"late by {seconds(overdue['late_s'])}, due {overdue['due_at']}", style="bold red")
    return Text(shown(job["next_fire_at"], now))


def last_outcome(health: JobHealth, now: float) -> str:
    """Such as `failed 3 min ago (4 in a row)`."""
    if not (last := health["last_run"]):
        return "-"
    in_row = f" ({health['failures_in_row']} in a row)" if health["failures_in_row"] > 1 else ""
    return f"{last['status']} {relative(last['fire_at'], now)}{in_row}"


def outcomes(health: JobHealth) -> Text:
    """One character for each of the newest runs, the newest last."""
    marks = [_MARKS.get(run["status"], ("o", "cyan")) for run in reversed(health["outcomes"])]
    return Text.assemble(*marks)
