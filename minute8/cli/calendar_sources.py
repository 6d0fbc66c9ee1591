"""The sources of a calendar's dates: a list, iCalendar text, or a country's holidays. All bounded.

`holidays` and `icalendar` would add 12 MB to the 15 MB of the Lambda package, and a tenant needs them a few times a
year. So the package does not contain them. The `minute8` command resolves the dates on the user's machine and sends
them. Foreign text is then parsed only on the machine of its user. The API accepts only dates, even if the libraries are
there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from common.declared import read
from common.errors import InvalidInput, shown
from common.limits import MAX_DATES
from common.registration.calendar_store import CalendarDefinition

# A recurring source is resolved for this year and so many more: store it again once a year.
YEARS_AHEAD: Final = 5

_KINDS: Final = ("dates", "icalendar", "country")
_CODE: Final = re.compile(r"[A-Za-z0-9-]{1,8}")

Resolved = tuple[tuple[str, ...], dict[str, Any]]


def resolved(raw: object, now: int) -> Resolved:
    """The dates of a calendar as a tenant writes it, ascending, and a description of their source.

    Exactly one of
    - {"dates": ["2026-12-24", …]}, optionally with {"source": {…}}, a small object that describes their source;
    - {"icalendar": "BEGIN:VCALENDAR…"}: its all-day events;
    - {"country": "DE", "subdivision": "BY", "years": [2026, 2027]}: public holidays; without `years` for this year and
      five more.

    Raises InvalidInput and nothing else.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput("calendar", "must be an object", value=raw, accepted='{"dates": ["2026-12-24"]}')
    fields = {key: value for key, value in raw.items() if value is not None}
    kinds = [kind for kind in _KINDS if kind in fields]
    if len(kinds) != 1:
        problem = f"{' and '.join(kinds)} together" if kinds else "says nothing about dates"
        raise InvalidInput("calendar", problem, accepted="exactly one of dates, icalendar, country")
    known, resolve = _SOURCES[kinds[0]]
    for key in fields:
        if key not in known:
            raise InvalidInput(
                "calendar", f"unknown field {shown(key)}", value=key, accepted=", ".join(known)
            )
    dates, source = resolve(fields, datetime.fromtimestamp(now, UTC).year)
    if len(dates) > MAX_DATES:
        raise InvalidInput("calendar", f"has {len(dates)} dates", accepted=f"at most {MAX_DATES} dates")
    return dates, source


def _of_dates(fields: Mapping[str, Any], year: int) -> Resolved:
    calendar = read(fields, CalendarDefinition, "calendar")
    return _ascending(calendar.dates), calendar.source or {"kind": "dates"}


def _of_icalendar(fields: Mapping[str, Any], year: int) -> Resolved:
    from minute8.cli.icalendar_dates import all_day_dates

    first, last = date(year, 1, 1), date(year + YEARS_AHEAD, 12, 31)
    events = all_day_dates(fields["icalendar"], first, last)
    source = {"kind": "icalendar", "from_year": year, "to_year": year + YEARS_AHEAD, "events": events.events}
    # Reported, because a timed event excludes no date.
    return _ascending(day.isoformat() for day in events.dates), source | {
        "timed_events_ignored": events.timed
    }


def _of_country(fields: Mapping[str, Any], year: int) -> Resolved:
    from importlib.metadata import version

    import holidays

    country, subdivision = _code(fields, "country"), _code(fields, "subdivision")
    years = _years(fields.get("years"), year)
    known = holidays.list_supported_countries(include_aliases=True)
    if country not in known:
        raise InvalidInput(
            "country", "is not known", value=country, accepted="an ISO 3166 code such as DE, US, JP"
        )
    if subdivision and subdivision not in known[country]:
        accepted = ", ".join(known[country]) or "none for this country"
        raise InvalidInput("subdivision", "is not known", value=subdivision, accepted=accepted)
    public_holidays = holidays.country_holidays(country, subdiv=subdivision or None, years=years)
    source: dict[str, Any] = {"kind": "holidays", "country": country}
    source |= {"subdivision": subdivision} if subdivision else {}
    source |= {"from_year": years[0], "to_year": years[-1], "holidays_version": version("holidays")}
    # Observed holidays can fall into the year before or after.
    return _ascending(day.isoformat() for day in public_holidays if years[0] <= day.year <= years[-1]), source


def _years(value: object, year: int) -> list[int]:
    if value is None:
        return list(range(year, year + YEARS_AHEAD + 1))
    if (
        isinstance(value, list | tuple)
        and 0 < len(value) <= YEARS_AHEAD + 1
        and all(
            isinstance(n, int) and not isinstance(n, bool) and 1970 <= n <= year + YEARS_AHEAD for n in value
        )
        and sorted(set(value)) == list(range(min(value), max(value) + 1))
    ):
        return sorted(set(value))
    accepted = f"1 to {YEARS_AHEAD + 1} successive years, up to {year + YEARS_AHEAD}"
    raise InvalidInput("years", "are out of range", value=value, accepted=accepted)


def _code(fields: Mapping[str, Any], key: str) -> str:
    text = fields.get(key, "")
    if key in fields and not (isinstance(text, str) and _CODE.fullmatch(text)):
        raise InvalidInput(key, "must be a code", value=text, accepted="a code such as DE or BY")
    return text.upper() if isinstance(text, str) else ""


def _ascending(dates: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(dates)))


_SOURCES: Final[dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any], int], Resolved]]]] = {
    "dates": (("dates", "source"), _of_dates),
    "icalendar": (("icalendar",), _of_icalendar),
    "country": (("country", "subdivision", "years"), _of_country),
}
