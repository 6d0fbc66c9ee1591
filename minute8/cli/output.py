"""Output for people: answers first, times in words."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from minute8.client import Minute8Problem

_WIDE = 200
_STYLES = {
    "active": "green",
    "succeeded": "green",
    "dispatched": "green",
    "running": "cyan",
    "retrying": "yellow",
    "paused": "yellow",
    "suspended": "yellow",
    "deleting": "red",
    "skipped": "yellow",
    "expired": "yellow",
    "failed": "bold red",
    "revoked": "red",
    "working": "green",
    "failing": "bold red",
    "disabled": "red",
}


# What a terminal obeys instead of showing: controls but for the tab, and what turns the direction of reading or ends a
# line. Half of a surrogate pair cannot be written at all.
_OBEYED: Final = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """A text as data in one line: what a terminal would obey is shown as `\\u{…}`, a tab as spaces."""
    return _OBEYED.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", text.expandtabs())


def _as_data(shown: Any) -> Any:
    """What is to be printed, each of its texts as one line."""
    if isinstance(shown, str):
        return Text(visible(shown))
    if isinstance(shown, Text) and (plain := visible(shown.plain)) != shown.plain:
        return shown.blank_copy(plain)
    return shown


class _Terminal(Console):
    """Each text that it prints is data in one line: it comes from tenants, AWS or a file. More lines are more texts."""

    def print(self, *objects: Any, sep: str = " ", **options: Any) -> None:
        super().print(*map(_as_data, objects), sep=sep, **options)


def console(*, on_stderr: bool = False) -> Console:
    """A console; output to a pipe or a file is not cut to a terminal's width."""
    stream = sys.stderr if on_stderr else sys.stdout
    return _Terminal(
        stderr=on_stderr,
        width=None if stream.isatty() else _WIDE,
        highlight=False,
        markup=False,
        emoji=False,
    )


SUSPENDED: Final = "minute8: the platform has suspended the tenant: nothing runs"


def say(line: str) -> None:
    """Print a line on stderr."""
    typer.echo(visible(line), err=True)


def confirm(question: str, **options: Any) -> bool:
    """Ask; with `abort`, a no ends the command."""
    return typer.confirm(visible(question), **options)


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print a value as JSON."""
    print_exact(json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


def print_exact(text: str) -> None:
    """Print JSON, or YAML that quotes like it: what a terminal would obey is escaped, and read back as it was."""
    lines = (_OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", line) for line in text.split("\n"))
    sys.stdout.write("\n".join(lines))
    sys.stdout.flush()


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> Table:
    """A table without borders; long cells are folded. A tuple is a cell with several lines."""
    drawn = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*map(_cell, row))
    return drawn


def _cell(value: Any) -> Text:
    lines = value if isinstance(value, tuple) else (value,)
    return Text("\n").join(_as_data(line if isinstance(line, Text) else str(line)) for line in lines)


def show_list(
    listed: Sequence[Any],
    as_json: bool,
    columns: Iterable[str],
    row: Callable[[Any], Iterable[Any]],
    if_empty: str,
) -> None:
    """Print what a request has listed: as JSON, or as a table with a `row` of each."""
    if as_json:
        print_json(listed)
    else:
        console().print(table(columns, map(row, listed)) if listed else if_empty)


def state(word: str) -> Text:
    """A state or status in its colour."""
    return Text(word, style=_STYLES.get(word, ""))


def used(count: int, of: int) -> Text:
    """The used part of a quota in percent, rounded up to 100 only if it is full; highlighted if little is left."""
    if not of:
        return Text("-")
    percent = count * 100 // of
    return Text(f"{percent} %", style="red" if percent >= 100 else "yellow" if percent >= 80 else "")


def share(value: float | None) -> str:
    """A share of a whole in percent; "-" for none."""
    return "-" if value is None else f"{value:.2%}"


def seconds(value: float | None) -> str:
    """0.03 s, 4.2 s, 50 s, 3 min 20 s."""
    if value is None:
        return "-"
    if value < 60:
        return f"{value:.2g} s" if value < 1 else f"{value:.1f}".removesuffix(".0") + " s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def schedule_words(schedule: Mapping[str, Any]) -> str:
    """A schedule in one line, as the client wrote it."""
    if "schedules" in schedule:
        return "; ".join(map(schedule_words, schedule["schedules"]))
    if "cron" in schedule:
        from common.timing.schedule import EVENTBRIDGE  # loads msgspec

        zone, cron = schedule.get("timezone", "UTC"), schedule["cron"]
        return f"{f'cron({cron})' if schedule.get('dialect') == EVENTBRIDGE else cron} ({zone})"
    if "every" in schedule:
        return f"every {schedule['every']}{' s' if isinstance(schedule['every'], int) else ''}"
    return f"at {schedule.get('at')}"


def target_words(target: Mapping[str, Any]) -> str:
    """A target in one line: its address, then what else it says."""
    address = target.get("arn") or target.get("url") or target
    rest = [
        f"{name} {field_text(value)}" for name, value in target.items() if name not in ("arn", "url", "kind")
    ]
    return " ".join([str(address), ", ".join(filter(None, rest))]).strip()


def field_text(value: Any) -> str:
    """A value of a job's field: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


# What the API accepts, and the option that says the same.
_OPTIONS: Final = (
    (r'"(every|at)": "([^"]+)" in the place of cron$', r"\g<0> (--\1 \2)"),
    (r"with past=true\b", r"\g<0> (--past)"),
    (r"an object with cron, every or at$", r"\g<0> (--cron, --every, --at)"),
    (r"an object with a kind, and its arn or url$", r"\g<0> (--target)"),
)


def _with_options(line: str) -> str:
    """The API's words, with the command's options behind the fields that they name."""
    for pattern, option in _OPTIONS:
        line = re.sub(pattern, option, line)
    return line


def problem_lines(problem: Minute8Problem) -> list[str]:
    """A refusal, with one line for each invalid field."""
    lines = [
        f"{error.get('field', '')}: {error['message']}"
        + (f" (got {error['value']})" if error.get("value") else "")
        + (f"; accepted: {error['accepted']}" if error.get("accepted") else "")
        for error in problem.errors
        if error.get("field")
    ]
    request = f" (request {problem.request_id})" if problem.status >= 500 else ""
    return list(map(_with_options, lines or [f"{problem}{request}"]))


def why(run: Mapping[str, Any]) -> str:
    """Why a run did not simply succeed, in one line."""
    if run["status"] == "skipped":
        reason = str(run.get("detail") or run.get("reason", ""))
        times = run.get("skipped_count", 1)
        return f"{times} fire times, {reason}" if times > 1 else reason
    if run["status"] in ("failed", "retrying") and not run.get("detail"):
        error = f"{run.get('error_type', '')}: {run.get('error', '')}".strip(": ")
        return error.splitlines()[0] if error else ""
    # What goes on says what it waits for.
    return str(run.get("detail") or "")


def plural(number: int, noun: str, *, is_whole: bool = True) -> str:
    """`1 run`, `2 runs`; `2+ runs` if not all are counted."""
    return f"{number}{'' if is_whole else '+'} {noun}{'' if number == 1 and is_whole else 's'}"


def unreadable(error: OSError | ValueError) -> str:
    """Why a file or a text cannot be read, without the words of the parser."""
    if isinstance(error, json.JSONDecodeError):
        return f"it is not JSON from line {error.lineno}, column {error.colno} on"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
