"""The demo's output: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_ROWS = 18
_EVENTS = 4
_PICTURE_COLUMNS = 120
_COLOURS = {
    "succeeded": "green",
    "dispatched": "green",
    "failed": "red",
    "retrying": "yellow",
    "running": "cyan",
    "skipped": "magenta",
}

Run = Mapping[str, Any]


class View(Protocol):
    """Shows runs as they change, and other events."""

    def run(self, execution_id: str, run: Run) -> None: ...

    def event(self, text: str) -> None: ...

    def refresh(self, header: str, runs: Sequence[Run]) -> None: ...

    def close(self) -> None: ...


class PlainView:
    """One line for each change, for pipes and logs."""

    def run(self, execution_id: str, run: Run) -> None:
        print(
            f"{clock(run['fire_at'])}  {run['tenant']:<24.24} {run['job_id']:<34.34} "
            f"{lateness(run):>8} {duration(run):>8}  {status(run)}",
            flush=True,
        )

    def event(self, text: str) -> None:
        print(f"{clock(time.time())}  -- {text}", flush=True)

    def refresh(self, header: str, runs: Sequence[Run]) -> None: ...

    def close(self) -> None: ...


class LiveView:
    """A table of the newest runs, with counts and lateness percentiles below, redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._events: list[str] = []
        self._frame = Group()
        self._live = Live(console=console, refresh_per_second=4, transient=False)
        self._live.start()

    def run(self, execution_id: str, run: Run) -> None: ...

    def event(self, text: str) -> None:
        self._events = [*self._events, f"{clock(time.time())}  {text}"][-_EVENTS:]

    def refresh(self, header: str, runs: Sequence[Run]) -> None:
        self._frame = self._draw(header, runs)
        self._live.update(self._frame)

    def save_picture(self, path: str, verdict: str) -> None:
        """Write the last table and the verdict to `path` as an SVG, without fonts from the network."""
        console = Console(record=True, width=_PICTURE_COLUMNS, file=io.StringIO())
        console.print(self._frame, Text(verdict), sep="\n")
        svg = console.export_svg(title="make demo SECONDS=60")
        Path(path).write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))

    def close(self) -> None:
        self._live.stop()

    def _draw(self, header: str, runs: Sequence[Run]) -> Group:
        newest = sorted(runs, key=lambda run: run["fire_at"], reverse=True)[:_ROWS]
        table = Table(expand=True, box=None, pad_edge=False)
        for name in ("tenant", "job"):
            table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=26)
        for name in ("fire time", "late", "took"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("status", no_wrap=True, overflow="ellipsis", ratio=1)
        for run in newest:
            style = _COLOURS.get(run["status"], "")
            table.add_row(
                run["tenant"],
                run["job_id"],
                clock(run["fire_at"]),
                lateness(run),
                duration(run),
                Text(status(run), style=style),
            )
        parts: list[Any] = [Text(header, style="bold"), table]
        if self._events:
            parts.append(Text("\n".join(self._events), style="dim"))
        parts.append(Panel(figures(runs), border_style="dim"))
        return Group(*parts)


def figures(runs: Sequence[Run]) -> str:
    """Counts by status, and the percentiles of lateness of first attempts."""
    counts = Counter(run["status"] for run in runs)
    words = ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "no runs yet"
    late = sorted(run["lateness_s"] for run in runs if "lateness_s" in run)
    if len(late) < 2:
        return words
    cuts = quantiles(late, n=100, method="inclusive")
    return f"{words}\nlateness: p50 {cuts[49]:.3f} s, p99 {cuts[98]:.3f} s, max {late[-1]:.3f} s"


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(at))


def lateness(run: Run) -> str:
    return f"{run['lateness_s']:.3f} s" if "lateness_s" in run else ""


def duration(run: Run) -> str:
    return f"{run['duration_s']:.2f} s" if "duration_s" in run else ""


def status(run: Run) -> str:
    """The status, and the reason if the status does not explain it."""
    if run["status"] == "skipped":
        return f"skipped: {run['reason']}, {run['detail']}"
    attempts = run.get("attempts", [])
    if run["status"] in ("failed", "retrying") and attempts:
        last = attempts[-1]
        return (
            f"{run['status']} (attempt {last['attempt']}): {last.get('error_type')}: {last.get('error', '')}"
        )
    if run.get("attempt", 1) > 1:
        return f"{run['status']} at attempt {run['attempt']}"
    return str(run["status"])
