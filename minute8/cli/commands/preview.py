"""`minute8 preview`: when a schedule fires. Works offline: it only reads the clock.

With --stdin it answers NDJSON, one line in, one out; thousands of lines a second.
In: `{"id", "cron" | "every" | "at", "timezone", "from", "count", "until"}` and the other keys of a schedule; `from`
is inclusive, `until` exclusive. Out: `{"id", "fire_times": [RFC 3339 UTC...]}`, or
`{"id", "error": {"type", "message"}}`. A line's `id` seeds `H`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from common.clock import SystemClock
from common.errors import InvalidInput
from common.preview.preview import MAX_COUNT, Preview, check_count, read_schedule
from common.preview.preview import preview as look_ahead
from common.registration.job_warnings import catch_up_warnings
from common.timing.durations import duration_text, parse_instant
from common.timing.excluded_days import Dates, ExcludedDays, OutsideDays
from common.timing.fires import next_fires
from common.timing.instants import rfc3339
from minute8.cli.calendar_sources import resolved
from minute8.cli.clock_picture import CELL_S, Cell, ClockPicture, clock_pictures
from minute8.cli.job_options import read_json, read_json_file
from minute8.cli.options import AsJson, with_options
from minute8.cli.output import console, print_json, say, table

DEFAULT_COUNT: Final = 10


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """The schedule to preview."""

    cron: Annotated[
        str | None, typer.Argument(help="Five fields, six with seconds first, or @daily and such.")
    ] = None
    cron_option: Annotated[
        str | None, typer.Option("--cron", help="The same as an option, as jobs create has it.")
    ] = None
    every: Annotated[str | None, typer.Option(help="An interval: 90m, 1h30m, PT90M.")] = None
    at: Annotated[str | None, typer.Option(help="One time: RFC 3339, or local with --timezone.")] = None
    timezone: Annotated[
        str | None, typer.Option("--timezone", "--tz", help="An IANA zone; UTC if left out.")
    ] = None
    dialect: Annotated[str | None, typer.Option(help="How cron is read: minute8 or eventbridge.")] = None
    dst: Annotated[str | None, typer.Option(help="The rule for clock changes: minute8 or eventbridge.")] = (
        None
    )
    anchor: Annotated[str | None, typer.Option(help="With --every: a time it fires at.")] = None
    schedules: Annotated[str | None, typer.Option(help="Several schedules: a JSON list, or @file.json.")] = (
        None
    )
    max_runs: Annotated[int | None, typer.Option(help="It ends after so many fire times.")] = None
    exclude_dates: Annotated[
        list[str] | None,
        typer.Option("--exclude-date", help="A date on which it does not fire; repeatable."),
    ] = None
    exclude_weekdays: Annotated[
        list[str] | None,
        typer.Option("--exclude-weekday", help="sat or such: no fire on that day of a week; repeatable."),
    ] = None
    exclude_calendars: Annotated[
        list[str] | None,
        typer.Option("--exclude-calendar", help="A file of dates on which it does not fire; repeatable."),
    ] = None
    include_calendars: Annotated[
        list[str] | None,
        typer.Option("--include-calendar", help="A file of dates: it fires only on these; repeatable."),
    ] = None
    on_excluded: Annotated[
        str | None,
        typer.Option(help="On an excluded date: skip, or move to the next or previous other date."),
    ] = None

    catch_up: Annotated[str, typer.Option(help="The job's: none, latest or all; only for warnings.")] = "none"
    start_deadline_s: Annotated[int | None, typer.Option(help="The job's; only for warnings.")] = None

    def raw(self) -> dict[str, Any]:
        """The schedule as a client writes it. Raises typer.BadParameter."""
        if self.cron and self.cron_option:
            raise typer.BadParameter("give the cron expression once: as an argument, or as --cron")
        names = ("every", "at", "timezone", "anchor", "dialect", "dst", "max_runs", "on_excluded")
        fields = {name: getattr(self, name) for name in names}
        exclude = {"dates": self.exclude_dates, "weekdays": self.exclude_weekdays}
        if given_parts := {name: values for name, values in exclude.items() if values}:
            fields["exclude"] = given_parts
        if self.schedules:
            fields["schedules"] = read_json(self.schedules, "--schedules")
        return {"cron": self.cron or self.cron_option} | fields

    def calendar_days(self, now: int) -> ExcludedDays:
        """What the calendar files exclude. Raises InvalidInput."""
        excluded = ExcludedDays(_dates_in(path, now) for path in self.exclude_calendars or ())
        if not self.include_calendars:
            return excluded
        return excluded + OutsideDays(_dates_in(path, now) for path in self.include_calendars)


def _dates_in(path: str, now: int) -> Dates:
    """A calendar from a file: iCalendar, JSON as `calendars show --json` prints it, or a date a line."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            "calendar", "cannot be read", value=path, accepted=f"a UTF-8 file ({error})"
        ) from None
    source: dict[str, Any] = {"icalendar": text}
    if text.lstrip().startswith("{"):
        source = {"dates": read_json_file(path).get("dates")}
    elif "BEGIN:VCALENDAR" not in text:
        source = {"dates": text.split()}
    return Dates(resolved(source, now)[0])


@dataclass(frozen=True, slots=True)
class PreviewRange:
    """Which fire times to show."""

    start: Annotated[str | None, typer.Option("--from", help="Begin here (inclusive); now if left out.")] = (
        None
    )
    until: Annotated[str | None, typer.Option(help="End before this time.")] = None
    count: Annotated[int, typer.Option("--count", "-n", help="How many fire times.")] = DEFAULT_COUNT
    job: Annotated[str, typer.Option(help='"tenant/job", which resolves H.')] = "tenant/job"


@with_options
def preview(
    written: ScheduleOptions,
    span: PreviewRange,
    as_json: AsJson = False,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Answer NDJSON lines; see docs/timekeeping.md.")
    ] = False,
    year: Annotated[
        bool, typer.Option("--year", help="Draw its firing around each clock change of a year.")
    ] = False,
) -> None:
    """Show when a schedule fires next, in words, and what may surprise you about it."""
    now = int(SystemClock().now())
    if stdin:
        _answer_lines(now)
        return
    raw = written.raw()
    try:
        after = now if span.start is None else parse_instant(span.start, "from")
        before = None if span.until is None else parse_instant(span.until, "until")
        days = written.calendar_days(now)
        ahead = look_ahead(
            raw, now=after, count=span.count, until=before, job_key=span.job, excluded=days or None
        )
        late = catch_up_warnings(written.catch_up, written.start_deadline_s)
        ahead = replace(ahead, warnings=(*ahead.warnings, *late))
        schedule, zone = read_schedule(raw, job_key=span.job, now=after)
    except InvalidInput as error:
        say(str(error))
        raise typer.Exit(2) from error
    if as_json:
        from msgspec import to_builtins  # slow to load

        print_json(to_builtins(ahead))
        return
    out = console()
    _print(out, ahead)
    if year:
        _draw(out, zone, clock_pictures(schedule, zone, after))


def _answer_lines(now: int) -> None:
    """One answer per line, flushed, so that a program can ask and wait."""
    for line in sys.stdin.buffer:
        if line.strip():
            sys.stdout.write(answer_line(line, now=now) + "\n")
            sys.stdout.flush()


def _print(out: Console, ahead: Preview) -> None:
    out.print(Text(ahead.sentence, style="bold"))
    is_local = ahead.timezone != "UTC"
    rows = [(fire.utc, *([fire.local] if is_local else [])) for fire in ahead.fires]
    out.print(table(("UTC", *([ahead.timezone] if is_local else [])), rows))
    for warning in ahead.warnings:
        out.print(Text(f"! {warning}", style="yellow"))
    out.print(Text(f"tzdata {ahead.tzdata}", style="dim"))


def _draw(out: Console, zone: str, pictures: list[ClockPicture]) -> None:
    """Draw for each clock change the local clock, ten-minute cells with their fires, and UTC."""
    if not pictures:
        out.print("", f"The clock of {zone} does not change in this year.", sep="\n")
        return
    for picture in pictures:
        out.print()
        out.print(Text(f"{picture.title}:", style="bold"), Text(_what_happens(picture)))
        for row in draw_rows(picture):
            out.print(row, soft_wrap=True)
    legend = "each is ten minutes: ● fires  ○ fires elsewhere instead  ░ the clock skips it"
    out.print("", legend, sep="\n", style="dim")


def _what_happens(picture: ClockPicture) -> str:
    kind = "skips" if picture.gap_s > 0 else "repeats"
    return f"{kind} {duration_text(abs(picture.gap_s))}; {picture.verdict}"


def draw_rows(picture: ClockPicture) -> tuple[Text, ...]:
    """The rows of one picture; a cell is ten minutes and one character wide."""
    clock, marks, utc, passes = Text("clock "), Text("fires "), Text("UTC   "), Text("      ")
    for cell in picture.cells:
        style = "yellow" if cell.second_pass else "red" if cell.skipped else ""
        shown = cell.at + CELL_S // 2 if cell.skipped else cell.at
        marks.append(_mark(cell), style=style or ("green" if cell.fires else "dim"))
        _label(clock, marks, cell.clock, style)
        _label(utc, marks, f"{shown // 3600 % 24:02}:{shown // 60 % 60:02}", "dim")
        passes.append(_pass(cell, picture), style=style)
    if picture.gap_s > 0:
        return clock, marks, utc
    return passes, clock, marks, utc


def _mark(cell: Cell) -> str:
    if cell.instead:
        return "○"
    return "●" if cell.fires else "░" if cell.skipped else "·"


def _pass(cell: Cell, picture: ClockPicture) -> str:
    """A line above the repeated hours: `1─────2─────`."""
    first_pass_at = picture.change_at + picture.gap_s
    into = cell.at - (picture.change_at if cell.second_pass else first_pass_at)
    if not 0 <= into < abs(picture.gap_s):
        return " "
    return ("2" if cell.second_pass else "1") if into < CELL_S else "─"


def _label(row: Text, marks: Text, time: str, style: str) -> None:
    """The hour above the cell in which it begins, after the spaces that are needed."""
    hour, _, minute = time.partition(":")
    if minute and -int(minute) % 60 < CELL_S // 60 and len(row) < len(marks):
        row.append(f"{(int(hour) + (minute != '00')) % 24:02}", style=style)
    if len(row) < len(marks):
        row.append(" ")


def answer_line(line: str | bytes, *, now: int) -> str:
    """The answer to one line, without a line end. `now` is used if the line has no `from`. Never raises."""
    name: object = None
    try:
        request = _read(line)
        name = request.pop("id", None)
        return json.dumps({"id": name, "fire_times": _fire_times(request, name, now)})
    except InvalidInput as error:
        return json.dumps({"id": name, "error": {"type": type(error).__name__, "message": str(error)}})


def _read(line: str | bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            "line", f"not JSON: {type(error).__name__}", value=line, accepted="a JSON object"
        ) from error
    if not isinstance(request, dict):
        raise InvalidInput(
            "line", "not a JSON object", value=line, accepted='such as {"id": "a", "every": "1h"}'
        )
    return request


def _fire_times(request: dict[str, Any], name: object, now: int) -> list[str]:
    start, until, count = request.pop("from", None), request.pop("until", None), request.pop("count", None)
    after = now if start is None else parse_instant(start, "from")
    end = None if until is None else parse_instant(until, "until")
    if count is None:
        count = DEFAULT_COUNT if end is None else MAX_COUNT
    schedule, _ = read_schedule(request, job_key=str(name), now=after)
    return [rfc3339(at) for at in next_fires(schedule, after, check_count(count), end)]
