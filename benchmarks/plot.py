"""A line plot as SVG, by hand: two lines and two axes need no library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 320, 70, 40
_COLOURS = ("#3366cc", "#dc3912", "#109618", "#990099")


def lines(title: str, across: str, up: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """The plot; each series is a list of (x, y), drawn as it comes."""
    most_x = max(x for points in series.values() for x, _ in points) or 1
    most_y = max(y for points in series.values() for _, y in points) or 1
    width, height = _WIDTH - _LEFT - 20, _HEIGHT - _BOTTOM - 40

    def place(x: float, y: float) -> str:
        return f"{_LEFT + x / most_x * width:.1f},{40 + height - y / most_y * height:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{title}</text>',
        f'<polyline fill="none" stroke="black" points="{place(0, most_y)} {place(0, 0)} {place(most_x, 0)}"/>',
        f'<text x="{_WIDTH - 20}" y="{_HEIGHT - 10}" text-anchor="end">{across}, up to {most_x:,.0f}</text>',
        f'<text x="{_LEFT}" y="36">{up}, up to {most_y:,.0f}</text>',
    ]
    for number, (name, points) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(place(x, y) for x, y in points)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>')
        parts.append(f'<text x="{_WIDTH - 250}" y="{60 + 16 * number}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
