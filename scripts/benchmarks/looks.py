"""What a platform of 1,000 tenants and a million jobs pays for being looked at, by the kept results of `reading`."""

from __future__ import annotations

from scripts.benchmarks.reading import Seen
from scripts.measure.result import Result, Table, kept

TENANTS = 1_000
# A day's open tabs: each tenant has one for eight hours, on 22 days a month.
_HOURS = TENANTS * 8 * 22
# The look, how often a month, and why.
_LOOKS = (
    ("overview", 60 * _HOURS, "an open tab, each minute"),
    ("the newest 50 runs", 20 * _HOURS, "a list of runs, 20 times an hour"),
    ("jobs by name, nothing new", 40 * _HOURS, "a list of jobs that stays the same, 40 times an hour"),
    ("jobs by two words", 4 * _HOURS, "a search, 4 times an hour"),
    ("50 jobs with health", 4 * _HOURS, "a page of jobs with outcomes, 4 times an hour"),
    ("a week's summary", _HOURS, "a week, each hour"),
    (
        "tenants by failed runs",
        12 * 24 * 30,
        "an operator's page, each five minutes, always",
    ),
    ("density of an hour", 24 * 30, "the platform's density, each hour"),
)


def run(scale: float) -> Result:
    """Compute; `scale` changes nothing."""
    (reading,) = kept(["reading"])
    rows, figures = [], {}
    for name, times, about in _LOOKS:
        look = Seen(**reading.figures[name]["warm"])
        figures[name] = look.dollars * times
        rows.append([about, f"{look.dollars * 1000:.4f}", f"{times / 1e6:.3f}", f"{figures[name]:,.2f}"])
    rows.append(["**all of these**", "", "", f"**{sum(figures.values()):,.2f}**"])
    head = ["look", "$ a thousand", "million a month", "$ a month"]
    title = "A thousand tenants, each with an open tab for eight hours on 22 days"
    return Result("looks", scale, tables=[Table(title, head, rows)], goals=[], figures=figures)
