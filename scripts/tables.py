"""Write the tables of the documents from what declares them: `python -m scripts.tables`.

docs/limits.md is made from the rows in common/limits.py, docs/api.md from the routes, docs/job.md from the
declaration of a job, docs/runbook/README.md from deploy/alarms.yml, docs/deploying.md from deploy/parameters.yml.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import NODEFAULT, Struct, json, to_builtins

from common import limits
from common.platform.api_keys import OPERATOR
from common.registration.definition import JobDefinition
from minute8.api.app import ROUTES
from minute8.cli.job_fields import Field, sections
from scripts import parameters
from scripts.cloudwatch import alarms

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
_LIMITS: Final = ROOT / "common" / "limits.py"
_UNITS: Final = {"": 1, "s": 1, "days": 86_400, "KB": 1024, "KiB": 1024, "MiB": 1024 * 1024}
_TABLE: Final = re.compile(
    r"^#+ (?P<heading>.+)$"
    r"|^(?P<head>\| (?:quantity|record|operation|field|alarm|parameter) \|.*\|\n\| ---.*\|\n)(?P<rows>(?:\|.*\|\n)*)",
    re.MULTILINE,
)


def rows_of_limits() -> dict[str, list[str]]:
    """The rows below each heading. Raises AttributeError if a row names what is no constant."""
    of_heading: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in _LIMITS.read_text().splitlines():
        if line.startswith("# ## "):
            rows = of_heading[line.removeprefix("# ## ")] = []
        elif line.startswith("# | "):
            rows.append(line.removeprefix("# "))
        elif line.startswith("#   "):
            rows[-1] += f" {line.removeprefix('#   ')}"
    return {heading: [_filled(row) for row in rows] for heading, rows in of_heading.items()}


def rows_of_operations() -> dict[str, list[str]]:
    """A row for each route, with the first line of its handler's docstring."""
    of_heading: dict[str, list[str]] = {"Operations of a tenant": [], "Operations of the platform": []}
    tenant, platform = of_heading.values()
    for route, handler in ROUTES.items():
        summary = (inspect.getdoc(handler) or "").split("\n")[0].removesuffix(".")
        row = f"| `{route}` | `{handler.__name__}` | {route.role or 'none'} | {summary} |"
        (platform if route.role == OPERATOR else tenant).append(row)
    return of_heading


def rows_of_fields(definition: type[Struct] = JobDefinition) -> dict[str, list[str]]:
    """The rows of a job's fields, by heading."""
    return {heading: list(map(_row, fields)) for heading, fields in sections(definition).items()}


def _row(field: Field) -> str:
    heading = field.name if field.path == field.name else ""
    page = field.page or (f"job.md#{heading}" if field.kind == "object" and heading else "")
    place = page.removeprefix("job.md")
    link = f" ([{'below' if place.startswith('#') else place.partition('#')[0]}]({place}))" if page else ""
    accepted = re.sub(r"\d{5,}", lambda digits: f"{int(digits[0]):,}", field.accepted)
    accepted = f"`{accepted}`" if "<" in accepted else accepted
    cells = (
        f"`{field.name}`",
        field.description.removesuffix(".") + link,
        accepted,
        _default(field),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(field: Field) -> str:
    if field.default is NODEFAULT:
        return "required"
    return (
        f"`{'{}' if isinstance(field.default, Struct) else json.encode(to_builtins(field.default)).decode()}`"
    )


def rows_of_alarms(text: str | None = None) -> dict[str, list[str]]:
    """A row for each alarm that notifies somebody."""
    declared = alarms.declared(text)
    return {
        "Runbook": [
            f"| [`{name}`]({name}.md) | {alarm['AlarmDescription']['Fn::Sub'].rpartition(' ')[0]} |"
            f" {alarms.waits_s(name, declared) // 60} min |"
            for name, alarm in declared.items()
            if "AlarmActions" in alarm
        ]
    }


def rows_of_parameters() -> dict[str, list[str]]:
    """A row for each parameter of a deployment, with its default."""
    defaults = parameters.read("", {})
    rows = {
        name: f"| `{name}` | `{defaults[name]}` | {parameter.accepted} | {_linked(parameter.meaning)} |"
        for name, parameter in parameters.PARAMETERS.items()
    }
    tokens = [row for name, row in rows.items() if name in parameters.OF_TOKENS]
    return {"Parameters": [row for row in rows.values() if row not in tokens], "Signed tokens": tokens}


def _linked(text: str) -> str:
    """The text of a parameter, where pages that stand in brackets are links."""
    text = re.sub(r"\((deploying\.md)(#[\w-]+)\)", r"([below](\2))", text)
    return re.sub(r"\(([\w/-]+\.md)(#[\w-]+)?\)", r"([\1](\1\2))", text)


# By page, its rows by heading.
TABLES: Final[dict[str, Callable[[], dict[str, list[str]]]]] = {
    "limits.md": rows_of_limits,
    "api.md": rows_of_operations,
    "job.md": rows_of_fields,
    "runbook/README.md": rows_of_alarms,
    "deploying.md": rows_of_parameters,
}


def written(name: str, page: str) -> str:
    """The page's text with its tables as they are now. Raises KeyError if it lacks a heading or its table."""
    missing = TABLES[name]()
    heading = ""

    def table(match: re.Match[str]) -> str:
        nonlocal heading
        if match["heading"]:
            heading = match["heading"]
            return match[0]
        rows = missing.pop(heading, None)
        return match[0] if rows is None else match["head"] + "".join(f"{row}\n" for row in rows)

    filled = _TABLE.sub(table, page)
    if missing:
        raise KeyError(f"{name} has no table below: {', '.join(missing)}")
    return filled


def _filled(row: str) -> str:
    return re.sub(r"\{(\w+):?(\w*)\}", lambda name: _number(getattr(limits, name[1]), name[2]), row)


def _number(value: float, unit: str) -> str:
    return f"{value / _UNITS[unit]:,.10g}{unit and f' {unit}'}"


def main() -> int:
    """Write the pages; returns the exit status."""
    for name in TABLES:
        page = DOCS / name
        page.write_text(written(name, page.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
