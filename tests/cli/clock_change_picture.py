"""The picture in docs/timekeeping.md: what `minute8 preview --year` draws in a terminal, as a small image.

python -m tests.cli.clock_change_picture               writes docs/images/clock-changes.svg
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from common.timing.durations import parse_instant
from common.timing.schedule import CronTiming, Schedule
from minute8.cli.clock_picture import Cell, ClockPicture, clock_pictures

IMAGE = Path(__file__).parents[2] / "docs" / "images" / "clock-changes.svg"
ZONE = "America/New_York"
EXPRESSIONS = ("30 1,2 * * *", "*/15 1,2 * * *")
_LEFT, _CELL, _ROW, _WIDTH = 64, 13, 118, 720
_STYLE = """\
text { font: 13px sans-serif; fill: #24292f } .code { font-family: monospace; font-weight: bold }
.hour { font-size: 12px; text-anchor: middle } .utc { fill: #8c959f } .small { font-size: 11px }
.fire { fill: #1a7f37 } .instead { fill: #fff; stroke: #cf222e; stroke-width: 1.5 } .not { fill: #d0d7de }
.skipped { fill: #ffd8d3 } .again { fill: #fff3c4 } .first { fill: #ddf4ff }"""


def image() -> str:
    """A fixed schedule and a free one in New York, 2026."""
    now = parse_instant("2026-01-01T00:00:00Z", "now")
    drawn: list[str] = []
    top = 12
    for expression in EXPRESSIONS:
        drawn.append(_text(12, top + 14, f"{expression}   in {ZONE}", "code"))
        top += 26
        for picture in clock_pictures(Schedule.of(CronTiming(expression, ZONE)), ZONE, now):
            drawn += _panel(picture, top)
            top += _ROW
    drawn += _legend(top)
    body = "\n".join(drawn)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top + 34}" width="{_WIDTH}">\n'
        f'<style>\n{_STYLE}\n</style>\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _panel(picture: ClockPicture, top: int) -> Iterator[str]:
    kind = "skips" if picture.gap_s > 0 else "repeats"
    yield _text(12, top + 14, f"{picture.title}: the clock {kind} an hour; {picture.verdict}")
    for row, label in ((44, "clock"), (68, "fires"), (92, "UTC")):
        yield _text(12, top + row, label, "utc" if label == "UTC" else "")
    first_pass_at = picture.change_at + picture.gap_s
    for number, cell in enumerate(picture.cells):
        cell_x = _LEFT + number * _CELL
        if band := _band(cell, first_pass_at <= cell.at < picture.change_at):
            yield f'<rect class="{band}" x="{cell_x}" y="{top + 28}" width="{_CELL}" height="70"/>'
        yield _mark(cell, cell_x + _CELL / 2, top + 64)
    for number, cell in enumerate(picture.cells):
        cell_x = _LEFT + number * _CELL
        if cell.clock.endswith(":00"):
            yield _text(cell_x + _CELL / 2, top + 44, cell.clock[:2], "hour")
        if not cell.skipped and cell.at % 3600 == 0:
            yield _text(cell_x + _CELL / 2, top + 92, f"{cell.at // 3600 % 24:02}", "hour utc")


def _band(cell: Cell, first_pass: bool) -> str:
    if cell.skipped:
        return "skipped"
    return "again" if cell.second_pass else "first" if first_pass else ""


def _mark(cell: Cell, x: float, y: int) -> str:
    if cell.instead:
        return f'<circle class="instead" cx="{x}" cy="{y}" r="4.5"/>'
    return f'<circle class="{"fire" if cell.fires else "not"}" cx="{x}" cy="{y}" r="{5 if cell.fires else 1.2}"/>'


def _legend(top: int) -> Iterator[str]:
    yield f'<circle class="fire" cx="18" cy="{top + 8}" r="5"/>{_text(28, top + 12, "fires", "small")}'
    yield f'<circle class="instead" cx="76" cy="{top + 8}" r="4.5"/>'
    yield _text(86, top + 12, "named here, fires elsewhere instead", "small")
    for x, name, label in (
        (298, "skipped", "the clock skips this"),
        (440, "first", "first pass"),
        (524, "again", "second pass"),
        (622, "", "dots: ten minutes"),
    ):
        if name:
            yield f'<rect class="{name}" x="{x}" y="{top + 2}" width="13" height="13"/>'
        yield _text(x + (18 if name else 0), top + 12, label, "small")


def _text(x: float, y: int, words: str, name: str = "") -> str:
    return f'<text x="{x}" y="{y}"{f" class={name!r}" if name else ""}>{escape(words)}</text>'


if __name__ == "__main__":
    IMAGE.parent.mkdir(exist_ok=True)
    IMAGE.write_text(image(), "utf-8")
    print(f"{IMAGE.name} written")
