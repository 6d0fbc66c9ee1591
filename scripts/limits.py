"""Write the tables of docs/limits.md from the rows in common/limits.py: `python -m scripts.limits`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from common import limits

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "limits.md"
_SOURCE: Final = ROOT / "common" / "limits.py"
_UNITS: Final = {"": 1, "s": 1, "days": 86_400, "KB": 1024, "KiB": 1024, "MiB": 1024 * 1024}
_TABLE: Final = re.compile(
    r"^#+ (?P<heading>.+)$|^(?P<head>\| (?:quantity|record) \|.*\|\n\| ---.*\|\n)(?P<rows>(?:\|.*\|\n)*)",
    re.MULTILINE,
)


def tables() -> dict[str, list[str]]:
    """The rows below each heading. Raises AttributeError if a row names what is no constant."""
    of_heading: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in _SOURCE.read_text().splitlines():
        if line.startswith("# ## "):
            rows = of_heading[line.removeprefix("# ## ")] = []
        elif line.startswith("# | "):
            rows.append(line.removeprefix("# "))
        elif line.startswith("#   "):
            rows[-1] += f" {line.removeprefix('#   ')}"
    return {heading: [_filled(row) for row in rows] for heading, rows in of_heading.items()}


def written(page: str) -> str:
    """The page with its tables as they are now. Raises KeyError if a heading or its table is missing there."""
    missing = tables()
    heading = ""

    def table(match: re.Match[str]) -> str:
        nonlocal heading
        if match["heading"]:
            heading = match["heading"]
            return match[0]
        rows = missing.pop(heading, None)
        return match[0] if rows is None else match["head"] + _lines(rows)

    filled = _TABLE.sub(table, page)
    if missing:
        raise KeyError(f"{PAGE.name} has no table below: {', '.join(missing)}")
    return filled


def _filled(row: str) -> str:
    return re.sub(r"\{(\w+):?(\w*)\}", lambda name: _number(getattr(limits, name[1]), name[2]), row)


def _number(value: float, unit: str) -> str:
    return f"{value / _UNITS[unit]:,.10g}{unit and f' {unit}'}"


def _lines(rows: Iterable[str]) -> str:
    return "".join(f"{row}\n" for row in rows)


def main() -> int:
    """Write the page; returns the exit status."""
    PAGE.write_text(written(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
