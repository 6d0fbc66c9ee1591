"""Writes docs/performance.md and docs/capacity.md with its plots from the kept results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

from scripts.benchmarks.capacity import PLOTTED
from scripts.benchmarks.plot import lines
from scripts.measure.result import Result, Table, goals_table, kept

ROOT = Path(__file__).resolve().parents[2]
ABOUT = ROOT / "scripts" / "benchmarks" / "about"
DOCS = ROOT / "docs"
_PERFORMANCE = (
    *(
        "planning",
        "lateness",
        "strict_lateness",
        "requests",
        "day",
        "bill",
        "reading",
        "projecting",
        "cold_start",
        "api_cpu",
    ),
)
# The model, for loads that cannot be measured on one machine, and its check.
_CAPACITY = ("capacity", "registered", "looks", "model_check")
_LINE_CHARS = 120
# The slowest settings take many minutes more; the plot would show nothing else.
_PLOTTED_S = 200


def texts() -> Mapping[str, str]:
    """The contents of the files in docs/, by name."""
    performance, capacity = kept(_PERFORMANCE), kept(_CAPACITY)
    return {
        "performance.md": _page("introduction", performance, ""),
        "capacity.md": _page("capacity_document", capacity, "capacity_limits"),
        **_plots({result.name: result for result in capacity}),
    }


def write() -> list[Path]:
    """Write them; their paths."""
    paths = []
    for name, text in texts().items():
        paths.append(DOCS / name)
        paths[-1].write_text(text)
    return paths


def _page(first: str, results: Sequence[Result], last: str) -> str:
    goals = goals_table([goal for result in results for goal in result.goals])
    summary = Table("All goals", goals.head, goals.rows).markdown()
    parts = [_about(first), summary, *(_section(result) for result in results), _about(last)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(result: Result) -> str:
    scale = "" if result.scale == 1 else f" --scale {result.scale:g}"
    commit = f"commit {result.commit}" if result.commit else "of an earlier commit"
    how = f"`python -m scripts.benchmarks {result.name}{scale}`, {result.at}, {commit}, {result.machine}."
    how = fill(how, 120, break_on_hyphens=False)
    tables = [table.markdown() for table in result.tables]
    title = f"## {result.name.replace('_', ' ').capitalize()}"
    notes = [fill(note, _LINE_CHARS, break_long_words=False, break_on_hyphens=False) for note in result.notes]
    return "\n\n".join(part for part in [title, _about(result.name), how, *tables, *notes] if part)


def _about(name: str) -> str:
    """The hand-written text of a section."""
    path = ABOUT / f"{name}.md"
    return path.read_text().strip() if path.exists() else ""


def _plots(results: Mapping[str, Result]) -> Mapping[str, str]:
    plots = {}
    if capacity := results.get("capacity"):
        started = {
            name.removeprefix(f"{PLOTTED} "): [
                (at, count) for at, count in load["started"] if at <= _PLOTTED_S
            ]
            for name, load in capacity.figures.items()
            if name.startswith(f"{PLOTTED} ")
        }
        plots["capacity.svg"] = lines(
            "A million executions due at one second, simulated", "seconds after it", "started", started
        )
    if check := results.get("model_check"):
        loads = {name: load for name, load in check.figures.items() if "at one second" in name}
        curves = {
            f"{name.partition('`')[2].strip('`')}, {curve}": load[curve]
            for name, load in loads.items()
            for curve in ("measured", "modelled")
        }
        plots["model_check.svg"] = lines(
            "A burst on the embedded AWS", "seconds after its second", "started", curves
        )
    return plots
