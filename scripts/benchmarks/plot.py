"""A line plot as SVG, by hand: some lines and two axes need no library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 380, 80, 20, 60, 40
_COLOURS = ("#3366cc", "#dc3912", "#109618", "#990099", "#ff9900", "#0099c6")
_LEGEND_LETTER = 7.2


def lines(title: str, across: str, up: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """The plot; each series is a list of (x, y) with x and y from 0 up, drawn in its order."""
    most_x = max(x for points in series.values() for x, _ in points) or 1
    most_y = max(y for points in series.values() for _, y in points) or 1
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return _LEFT + x / most_x * width, _TOP + height - y / most_y * height

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{title}</text>',
        f'<text x="{_LEFT}" y="{_TOP - 12}" text-anchor="end">{up}</text>',
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 6}" text-anchor="end">{across}</text>',
    ]
    for value in _ticks(most_x):
        x, y = place(value, 0)
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{y:.1f}" stroke="#e0e0e0"/>')
        parts.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{value:,g}</text>')
    for value in _ticks(most_y):
        x, y = place(0, value)
        parts.append(f'<line x1="{x}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#e0e0e0"/>')
        parts.append(f'<text x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.0f}</text>')
    longest = max(len(name) for name in series) * _LEGEND_LETTER
    for number, (name, points) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>')
        x, y = _WIDTH - _RIGHT - longest - 8, _TOP + height - 16 * (len(series) - number) + 4
        parts.append(
            f'<rect x="{x - 4:.0f}" y="{y - 12}" width="{longest + 10:.0f}" height="16" fill="white"/>'
        )
        parts.append(f'<text x="{x:.0f}" y="{y}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _ticks(most: float) -> Iterator[float]:
    """About five round numbers from 0 to `most`."""
    step = 10 ** math.floor(math.log10(most))
    step = next(step / part for part in (1, 2, 5, 10) if most / (step / part) >= 4)
    for number in range(int(most / step) + 1):
        yield number * step
