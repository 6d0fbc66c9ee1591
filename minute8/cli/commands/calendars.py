"""`minute8 calendars`: dates on which the jobs that name them do not fire.

iCalendar files and countries' holidays are resolved on this machine and sent as dates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from common.errors import InvalidInput
from common.timing.excluded_days import Dates
from common.timing.instants import relative
from minute8.cli.calendar_sources import resolved
from minute8.cli.commands.apply import CHANGES
from minute8.cli.fire_changes import Consequences, consequences, dates_by_name, resolved_schedule, show_fires
from minute8.cli.options import AsJson, with_options
from minute8.cli.output import console, plural, print_json, show_list
from minute8.cli.session import session
from minute8.client import Client

app = typer.Typer(no_args_is_help=True, help="Dates on which the jobs that name them do not fire.")

_Name = Annotated[str, typer.Argument(help="The calendar's name.")]


@dataclass(frozen=True, slots=True)
class DateSource:
    """Where a calendar's dates come from."""

    date: Annotated[list[str] | None, typer.Option(help="A date, 2026-12-24; may be repeated.")] = None
    icalendar: Annotated[Path | None, typer.Option(help="An iCalendar file: its all-day events.")] = None
    country: Annotated[str | None, typer.Option(help="A country's public holidays, such as DE.")] = None
    subdivision: Annotated[str | None, typer.Option(help="A part of the country, such as BY.")] = None

    def fields(self) -> dict[str, Any]:
        """As the API takes them. Raises InvalidInput."""
        return {
            "dates": self.date or None,
            "icalendar": _text(self.icalendar) if self.icalendar else None,
            "country": self.country,
            "subdivision": self.subdivision,
        }


@app.command("put")
@with_options
def put(
    ctx: typer.Context,
    name: _Name,
    dates_from: DateSource,
    revision: Annotated[int | None, typer.Option(help="Only if this is still the current revision.")] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only show which fire times would change; exit code 0: none, 2: some."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a calendar or replace the whole of it."""
    now = int(session(ctx).clock.now())
    dates, source = resolved(dates_from.fields(), now)
    with session(ctx).client() as client:
        if dry_run:
            changed = dict(_changed_fires(client, name, Dates(dates), now))
            _show_changes(changed, as_json)
            raise typer.Exit(CHANGES if changed else 0)
        stored = client.put_calendar(name, {"dates": list(dates), "source": source}, revision)
    print_json(stored) if as_json else console().print(f"{name}: {plural(len(stored['dates']), 'date')}")
    if not as_json:
        for warning in stored["warnings"] or ():
            console().print(f"! {warning}", soft_wrap=True)


@app.command("list")
def list_calendars(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the calendars."""
    with session(ctx).client() as client:
        calendars = list(client.list_calendars())
    now = session(ctx).clock.now()
    show_list(
        calendars,
        as_json,
        ("CALENDAR", "DATES", "LAST", "CHANGED"),
        lambda calendar: (
            calendar["name"],
            len(calendar["dates"]),
            calendar["dates"][-1] if calendar["dates"] else "",
            relative(calendar["updated_at"], now),
        ),
        "no calendars",
    )


@app.command("show")
def show(ctx: typer.Context, name: _Name, as_json: AsJson = False) -> None:
    """Show a calendar's dates."""
    with session(ctx).client() as client:
        calendar = client.get_calendar(name)
    print_json(calendar) if as_json else console().print(*calendar["dates"], sep="\n")


@app.command("delete")
def delete(ctx: typer.Context, name: _Name) -> None:
    """Delete a calendar that no job names."""
    with session(ctx).client() as client:
        client.delete_calendar(name)
    console().print(f"{name} is deleted")


def _changed_fires(client: Client, name: str, dates: Dates, now: int) -> Iterator[tuple[str, Consequences]]:
    """The active jobs whose fire times change if the calendar has these dates."""
    dates_of = dates_by_name(client)
    for job in client.list_jobs():
        schedule = resolved_schedule(job["schedule_resolved"])
        if job["state"] != "active" or name not in schedule.named_calendars:
            continue
        changes = consequences(
            schedule, schedule, now, dates_of, lambda other: dates if other == name else dates_of(other)
        )
        if changes.appear or changes.vanish:
            yield job["job_id"], changes


def _show_changes(changed: Mapping[str, Consequences], as_json: bool) -> None:
    if as_json:
        print_json([{"job_id": job_id, **changes.view()} for job_id, changes in changed.items()])
        return
    for job_id, changes in changed.items():
        console().print(f"~ {job_id}")
        show_fires(console(), changes)
    if not changed:
        console().print("no fire time changes")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            "icalendar", "cannot be read", value=str(path), accepted=f"a UTF-8 file ({error})"
        ) from None
