"""The picture in docs/timekeeping.md: what `minute8 preview --year` draws, as an image.

python -m tests.timing.picture               writes docs/images/clock-changes.svg
"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cli.preview import draw
from common.clock_picture import clock_pictures
from common.duration import parse_instant
from common.schedule import CronTiming, Schedule

IMAGE = Path(__file__).parents[2] / "docs" / "images" / "clock-changes.svg"
ZONE = "America/New_York"
# rich's own frame, without the fonts that it would load from the network.
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def image() -> str:
    """A fixed schedule and a free one in New York, 2026."""
    console = Console(
        record=True, width=74, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    now = parse_instant("2026-01-01T00:00:00Z", "now")
    for expression in ("30 1,2 * * *", "*/15 1,2 * * *"):
        console.print(Text(f"$ minute8 preview '{expression}' --timezone {ZONE} --year", style="bold cyan"))
        draw(console, ZONE, clock_pictures(Schedule(CronTiming(expression, ZONE)), ZONE, now))
        console.print()
    drawn = console.export_svg(title="minute8 preview --year", code_format=FRAME, unique_id="clock")
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


if __name__ == "__main__":
    IMAGE.parent.mkdir(exist_ok=True)
    IMAGE.write_text(image(), "utf-8")
    print(f"{IMAGE.name} written")
