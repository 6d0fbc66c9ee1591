"""docs/performance.md, written from the kept results and from nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.result import Result, Table, goals_table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
ABOUT = ROOT / "benchmarks" / "about"
DOCUMENT = ROOT / "docs" / "performance.md"
_ORDER = (
    "planning",
    "enqueue",
    "dispatch",
    "lateness",
    "fairness",
    "requests",
    "lists",
    "cold_start",
    "api_latency",
    "capacity",
)


def keep(result: Result) -> None:
    """Make it the one that is reported."""
    text = json.dumps(result.to_json(), indent=1, ensure_ascii=False)
    (RESULTS / f"{result.name}.json").write_text(text + "\n")


def kept() -> list[Result]:
    paths = [RESULTS / f"{name}.json" for name in _ORDER]
    return [Result.from_json(json.loads(path.read_text())) for path in paths if path.exists()]


def text() -> str:
    """The whole document."""
    results = kept()
    goals = goals_table([goal for result in results for goal in result.goals])
    summary = Table("All goals", goals.head, goals.rows).markdown()
    parts = [_about("introduction"), summary, *(_section(result) for result in results), _about("changes")]
    return "\n\n".join(part for part in parts if part) + "\n"


def write() -> Path:
    """Write the document; its path."""
    DOCUMENT.write_text(text())
    return DOCUMENT


def _section(result: Result) -> str:
    scale = "" if result.scale == 1 else f" --scale {result.scale:g}"
    how = f"`python -m benchmarks {result.name}{scale}`, {result.at}, {result.machine}."
    tables = [table.markdown() for table in result.tables]
    title = f"## {result.name.replace('_', ' ').capitalize()}"
    return "\n\n".join(part for part in [title, _about(result.name), how, *tables, *result.notes] if part)


def _about(name: str) -> str:
    """What a person wrote about a section."""
    path = ABOUT / f"{name}.md"
    return path.read_text().strip() if path.exists() else ""
