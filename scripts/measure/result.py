"""A benchmark's result: small tables, figures, and how each goal was met."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

RESULTS: Final = Path(__file__).resolve().parents[1] / "benchmarks" / "results"


@cache
def this_machine() -> str:
    """The machine in one line: times depend on it, ratios hardly."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = models[0].partition(":")[2].strip() if models else model
    return f"{os.cpu_count()} × {model}, {platform.system()}, Python {platform.python_version()}"


@dataclass(frozen=True, slots=True)
class Table:
    """One table, cells as text."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        lines = [f"**{self.title}**", "", _row(self.head), _row(["---"] * len(self.head))]
        return "\n".join([*lines, *(_row(row) for row in self.rows)])

    def text(self) -> str:
        widths = [max(len(row[n]) for row in [self.head, *self.rows]) for n in range(len(self.head))]
        rows = [self.head, ["-" * width for width in widths], *self.rows]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([self.title, *lines])


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal of the project: met if the measured value is on the right side of the target value."""

    name: str
    bound: float
    measured: float
    at_least: bool

    @property
    def met(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def cells(self) -> list[str]:
        sign = "≥" if self.at_least else "≤"
        return [self.name, f"{sign} {self.bound:g}", f"{self.measured:.3g}", "yes" if self.met else "**no**"]


@dataclass(frozen=True, slots=True)
class Result:
    """The whole result of one benchmark run."""

    name: str
    scale: float
    tables: Sequence[Table]
    goals: Sequence[Goal]
    figures: dict[str, Any]
    notes: Sequence[str] = ()
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    machine: str = field(default_factory=this_machine)
    # Of a kept one: the commit, the digest of the modules that it measures (`code.py`), and how long it took.
    commit: str = ""
    code: str = ""
    took_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        content = asdict(self)
        content["goals"] = [asdict(goal) | {"met": goal.met} for goal in self.goals]
        return content

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Result:
        goals = [
            Goal(goal["name"], goal["bound"], goal["measured"], goal["at_least"]) for goal in content["goals"]
        ]
        tables = [Table(**table) for table in content["tables"]]
        return cls(**(content | {"goals": goals, "tables": tables}))


def goals_table(goals: Sequence[Goal]) -> Table:
    return Table("Goals", ["goal", "bound", "measured", "met"], [goal.cells() for goal in goals])


def keep(result: Result) -> None:
    """Keep this result for the documents: a line for each goal, row and figure."""
    (RESULTS / f"{result.name}.json").write_text(_lines(result.to_json()) + "\n")


def _lines(value: Any, depth: int = 0) -> str:
    """JSON where each goal, row and figure has a line of its own, and a curve of numbers has one."""
    text, pad, end = json.dumps(value, ensure_ascii=False), "\n" + " " * (depth + 1), "\n" + " " * depth
    if depth == 4 or text in ("{}", "[]") or (text[0] != "{" and '"' not in text):
        return text
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(key)}: {_lines(part, depth + 1)}" for key, part in value.items())
        return "{" + pad + f",{pad}".join(pairs) + end + "}"
    if isinstance(value, list | tuple):
        return "[" + pad + f",{pad}".join(_lines(part, depth + 1) for part in value) + end + "]"
    return text


def kept(names: Sequence[str]) -> list[Result]:
    paths = [RESULTS / f"{name}.json" for name in names]
    return [Result.from_json(json.loads(path.read_text())) for path in paths if path.exists()]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
