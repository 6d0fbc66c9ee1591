"""What to write in the place of a usual mistake in a schedule: other crons' dialects, quotes, missing parts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from common.errors import InvalidInput
from common.timing.durations import duration_text, instant_hint, parse_duration
from common.timing.zones import check_zone

_WORD_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_NUMBER_AND_WORD: Final = re.compile(
    r"(\d{1,9}(?:\.\d{1,3})?)[.\s]*(s|m|h|d|w)(?:ec|in|our|ay|eek)?(?:ond|ute)?s?", re.I
)
_CALLED: Final = re.compile(r"(rate|cron|at)\s*\([\s\"']*(.*?)[\s\"')]*", re.I | re.S)
_ZONED: Final = re.compile(r"(?:(?:CRON_)?TZ=|(?=[A-Z][a-z]+/[A-Z]))(\S+)\s+(.+)", re.S)
# What other schedulers, and Minute8's own answers, call a key.
_OTHER_KEYS: Final = {
    "tz": "timezone",
    "time_zone": "timezone",
    "zone": "timezone",
    "schedule_timezone": "timezone",
    "anchor_at": "anchor",
    "interval": "every",
    "rate": "every",
    "expression": "cron",
    "start": "start_at",
    "end": "end_at",
    "until": "end_at",
    "jitter": "jitter_s",
    "spread": "spread_s",
}
# `May` has three letters already; `Sept`, `Tues` and such are usual too.
_LONG_NAMES: Final = re.compile(
    r"\b(?:Sun|Mon|Tues?|Wed(?:nes)?|Thu(?:rs?)?|Fri|Sat(?:ur)?)days?\b|\b(?:Tues|Thurs?|Sept)\b"
    r"|\b(?:January|February|March|April|June|July|August|September|October|November|December)\b",
    re.I,
)
_MAX_HINTED_CHARS: Final = 128


def duration_hint(value: object) -> str:
    """The duration that was probably meant: 5m for `5 minutes`; empty if there is none."""
    if not isinstance(value, str) or len(value) > _MAX_HINTED_CHARS:
        return ""
    text = re.sub(r"^(?:@?every|rate\()\s*|\)$", "", value.strip(" \"'"), flags=re.I).strip()
    if text.isascii() and text.isdigit() and 0 < int(text[:10]) <= 366 * 86_400:
        return duration_text(int(text))
    match = _NUMBER_AND_WORD.fullmatch(text)
    if match:
        text = duration_text(round(float(match[1]) * _WORD_UNITS[match[2].lower()]))
    try:
        parse_duration(text)
    except InvalidInput:
        return ""
    return text


def seconds_hint(value: object) -> str:
    """The whole number for a duration with a unit: 300 for `5m`; empty if there is none."""
    if not (text := duration_hint(value)) or str(value).strip().isdigit():
        return ""
    return f"the number of seconds, {parse_duration(text)}"


def meant_key(key: str, keys: Iterable[str]) -> str:
    """The key that was probably meant by an unknown one; empty if none is near."""
    import difflib  # only for a message: no cold start pays for it

    name, known = key[:_MAX_HINTED_CHARS].lower(), list(keys)
    if (other := _OTHER_KEYS.get(name)) in known:
        return other or ""
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.7)), "")


_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LAST_WEEKDAY: Final = re.compile(rf"([0-7]|{'|'.join(day[:3] for day in _WEEKDAYS)})L", re.I)
_YEARS: Final = re.compile(r"[*?]|(?:19|20)\d\d(?:[-,/]\d+)*", re.ASCII)
# The last alternative is an abbreviation, such as PST.
_ZONE_BEHIND: Final = re.compile(
    r"(.+?)\s+\(?([A-Za-z]+/[A-Za-z0-9_/+-]+|(?:UTC|GMT)(?:[+-][\d:]+)?|[+-]\d[\d:]*|(?!SAT|OCT|SEP)[A-Z]{1,3}T)\)?",
    re.S | re.ASCII,
)
# What editors, chats and pages make of quotes, hyphens and blanks.
_TYPESET: Final = str.maketrans(dict.fromkeys("“”‘’`", '"') | dict.fromkeys("‐‑‒–—−", "-") | {"\xa0": " "})

# An entry of a file, with its key: `schedule: "*/5 * * * *"`, `{"cron": "@daily"}`, `OnCalendar=hourly`.
_KEYED: Final = re.compile(
    r"[-{\s]*[\"']?(?:cron|schedule|schedule_interval|ScheduleExpression|OnCalendar)[\"']?\s*[:=]\s*(.+?)[\s,}]*",
    re.I | re.S,
)
_WEEKDAY: Final = r"(?:sun|mon|tue(?:s)?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?)(?:days?)?|weekdays?"
# Words that are a whole schedule. `weekly` of systemd is Monday's, of cron Sunday's.
_WORDS: Final = {
    **dict.fromkeys(("minutely", "every minute"), "* * * * *"),
    "every hour": "0 * * * *",
    "quarterly": "0 0 1 1,4,7,10 *",
    "semiannually": "0 0 1 1,7 *",
    "noon": "0 12 * * *",
}
_OF_SYSTEMD: Final = _WORDS | {"weekly": "0 0 * * 1"}
# What stands around a time: Heroku's `Daily at 7:30 AM`, App Engine's `every day 09:00`, `1.day, at: '4:30 am'`.
_FILLERS: Final = re.compile(r"\b(?:every|daily|at|on|(?:1\.)?days?)\b:?|['\"]|,(?=\s)", re.I)
_HOURLY: Final = re.compile(r"\b(?:hourly|every hour) at\s+:?(?=\d\d?$)", re.I)
_NUMBERS: Final = r"[\d*/,.]+"
_CALENDAR: Final = re.compile(
    rf"(?:(?P<days>(?:{_WEEKDAY})(?:(?:,|-|\.\.)(?:{_WEEKDAY}))*)\s+)?(?:\*-(?P<month>{_NUMBERS})-(?P<day>{_NUMBERS})\s+)?"
    rf"(?P<hour>{_NUMBERS})(?=:|\s*[ap]m)(?::(?P<minute>{_NUMBERS})(?::(?P<second>{_NUMBERS}))?)?\s*(?:(?P<half>[ap])m)?",
    re.I | re.ASCII,
)
# App Engine's `2nd,third mon,wed of march 17:00` and `1,15 of month 09:00`.
_OF_MONTH: Final = re.compile(
    r"(?P<nth>\w+(?:,\w+)*)(?:\s+(?P<days>[a-z]+(?:,[a-z]+)*))?\s+of\s+(?P<months>[a-z]+(?:,[a-z]+)*)"
    r"\s+(?P<hour>\d\d?):(?P<minute>\d\d)",
    re.I | re.ASCII,
)
_ORDINALS: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_CELERY: Final = re.compile(r"(?:celery\.schedules\.)?crontab\((.*)\)", re.S)
_CELERY_VALUE: Final = re.compile(r"(?:(\w+)\s*=\s*)?(?:'([^']*)'|\"([^\"]*)\"|(\d+))\s*(?:,\s*|$)", re.ASCII)
_CELERY_FIELDS: Final = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
_STEPPED: Final = re.compile(r"([*?H]|\d+(?=[-/]))(?:(?<=\d)-(\d+))?/(\d+)", re.ASCII | re.I)
_WEEKS: Final = ("1-7", "8-14", "15-21", "22-28")
# The lowest and highest number of each field, seconds first.
_RANGES: Final = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def cron_hints(expression: object) -> Iterator[tuple[str, str]]:
    """What was probably meant: expressions to try, each with the words that introduce it."""
    if not isinstance(expression, str) or len(expression) > 2 * _MAX_HINTED_CHARS:
        return
    text = expression.strip()
    if (typed := text.translate(_TYPESET)) != text or text != expression.strip(" \t"):
        yield typed.strip(" \"'"), "in plain characters: "
    if text[:1] in "\"'" and text.strip(" \"'") != text:
        yield text.strip(" \"'"), "without the quotes: "
    if called := _CALLED.fullmatch(text):
        yield from _fields_hints(called[2].split(), sunday_is_one=True)
    if zoned := _ZONED.fullmatch(text):
        yield zoned[2], f"the zone as timezone ({_zone(zoned[1])}), and as cron: "
    if zoned := _ZONE_BEHIND.fullmatch(text):
        words = f"the zone as timezone ({_zone(zoned[2])}), and as cron: "
        yield zoned[1], words
        yield f"{zoned[1]} *", words
    if keyed := _KEYED.fullmatch(text):
        value = keyed[1].strip(" \"'")
        is_systemd = text.lower().startswith("oncalendar")
        yield _OF_SYSTEMD.get(value.lower(), value) if is_systemd else value, "without the key: "
    if (stepped := steps_in_range(text)) != text:
        yield stepped, "what cron makes of it: "
    yield from _word_hints(text)
    if (shortened := _LONG_NAMES.sub(lambda name: name[0][:3].upper(), text)) != text:
        yield shortened, "names have three letters: "
    yield from _fields_hints(text.split(), sunday_is_one=False)


def _word_hints(text: str) -> Iterator[tuple[str, str]]:
    """What was probably meant by a word, by a day alone, or by a time of the day in words."""
    if re.fullmatch(r"[A-Za-z]+", text):
        yield f"@{text}", ""
    if words := _WORDS.get(text.lower()):
        yield words, ""
    if day := re.fullmatch(r"(LW?)|(?:\w{1,3}#\d|\w{1,3}L|L\d)", text, re.ASCII | re.I):
        yield f"0 0 {text} * *" if day[1] else f"0 0 * * {text}", "a time before the day, such as midnight: "
    if calendar := _CALENDAR.fullmatch(_FILLERS.sub(" ", _spoken(_HOURLY.sub("*:", text))).strip()):
        yield _calendar_cron(calendar), "minute and hour first: "
    if of_month := _OF_MONTH.fullmatch(text):
        yield _of_month_cron(of_month), "minute and hour first: "
    if (celery := _CELERY.fullmatch(text)) and (cron := _celery_cron(celery[1].strip())):
        yield cron, "the five fields: "


def _spoken(text: str) -> str:
    """`monday and friday at 9` as `monday,friday at 9:00`."""
    text = re.sub(r"(?:,\s*|\s+)and\s+|,\s+(?!at\b)", ",", text, flags=re.I)
    text = re.sub(r"(?<=[a-z])\s+(?:to|through)\s+(?=[a-z])", "-", text, flags=re.I)
    text = re.sub(r"\bat (noon|midnight)$", lambda word: f"at {'12' if word[1] == 'noon' else '0'}", text)
    return re.sub(r"\bat\s+(\d\d?(?:,\d\d?)*)$", r"at \1:00", text)


def steps_in_range(cron: str) -> str:
    """The expression in which a step that leads out of its range, such as `*/60` of minutes, is its first number."""
    fields = cron.split()
    if len(fields) not in (5, 6):
        return cron
    return " ".join(
        ",".join(_in_range(item, *bounds) for item in field.split(","))
        for field, bounds in zip(fields, _RANGES[-len(fields) :], strict=True)
    )


def _in_range(text: str, low: int, high: int) -> str:
    item = _STEPPED.fullmatch(text)
    if not item:
        return text
    first = str(low) if item[1] in "*?" else item[1]
    size = int(item[2]) - int(item[1]) if item[2] else high - low
    return first if 0 <= size < int(item[3]) else text


def _calendar_cron(calendar: re.Match[str]) -> str:
    """The cron expression of a time of the day, with systemd's date or the names of days before it.

    Empty if a date and a day of the week both have to match, and no week of the month is meant by it.
    """
    hour = calendar["hour"]
    if calendar["half"]:
        hour = str(int(hour) % 12 + (12 if calendar["half"] in "pP" else 0)) if hour.isdigit() else hour
    days = re.sub(r"[a-z]+", lambda name: name[0][:3].upper(), calendar["days"] or "*", flags=re.I)
    days = "MON-FRI" if re.fullmatch("weekdays?", calendar["days"] or "", re.I) else days.replace("..", "-")
    day = re.sub(r"\b0+(?=\d)", "", calendar["day"] or "*").replace("..", "-")
    if "*" not in (day, days):
        day, days = "*", _in_week(day, days)
    if not days:
        return ""
    fields = [calendar["minute"] or "0", hour, day, calendar["month"] or "*", days]
    if (calendar["second"] or "0").strip("0"):
        fields.insert(0, calendar["second"])
    return re.sub(r"\b0+(?=\d)", "", " ".join(fields).replace("..", "-"))


def _in_week(day: str, days: str) -> str:
    """Weekdays that are in a week of the month, as `MON#1` is; empty if these days are no such week."""
    number = _WEEKS.index(day) + 1 if day in _WEEKS else 0
    return ",".join(f"{names}#{number}" for names in days.split(",")) if number else ""


def _of_month_cron(text: re.Match[str]) -> str:
    """The cron expression of App Engine's days of a month, or of its first, second… weekdays."""
    numbers = [_ORDINALS.get(word.lower(), word.rstrip("sthnrdSTHNRD")) for word in text["nth"].split(",")]
    days = [day[:3].upper() for day in (text["days"] or "").split(",") if day]
    months = ",".join(
        "*" if month.lower() == "month" else month[:3].upper() for month in text["months"].split(",")
    )
    weekdays = ",".join(f"{day}#{number}" for number in numbers for day in days)
    day = "*" if days else ",".join(map(str, numbers))
    return f"{int(text['minute'])} {int(text['hour'])} {day} {months} {weekdays or '*'}"


def _celery_cron(values: str) -> str:
    """The five fields of Celery's crontab; empty if it cannot be read, or both of its days have to match."""
    fields, end = dict.fromkeys(_CELERY_FIELDS, "*"), 0
    unnamed = iter(_CELERY_FIELDS[:2])  # the order of the others differs between versions
    for value in _CELERY_VALUE.finditer(values):
        name = value[1] or next(unnamed, "")
        if value.start() != end or name not in fields:
            return ""
        fields[name] = re.sub(r"\s", "", value[2] or value[3] or value[4] or "")
        end = value.end()
    both_days = "*" not in (fields["day_of_month"], fields["day_of_week"])
    return "" if end < len(values) or both_days else " ".join(fields.values())


def _zone(name: str) -> str:
    """The zone, or what was probably meant by it."""
    try:
        return check_zone(name)
    except InvalidInput as error:
        return error.accepted


def _fields_hints(fields: list[str], *, sunday_is_one: bool) -> Iterator[tuple[str, str]]:
    """The same without a year, which EventBridge and Quartz have as the last field, and without their `L`.

    Those two count Sunday as 1, and each of their expressions has a `?`.
    """
    sunday_is_one = sunday_is_one or "?" in fields
    if len(fields) in (6, 7) and _YEARS.fullmatch(fields[-1]):
        weekday = _from_zero(fields[-2]) if sunday_is_one else fields[-2]
        words = "without the year"
        if fields[-1] not in ("*", "?"):
            words += f" {fields[-1]}, for which start_at and end_at stand"
        if weekday != fields[-2]:
            words += ", and with Sunday as 0"
        yield " ".join([*fields[:-2], weekday]), f"{words}: "
    elif sunday_is_one:
        yield " ".join(fields), ""
    if len(fields) in (5, 6):
        yield from _last_weekday_hints(fields)


def _from_zero(weekday: str) -> str:
    """A weekday's field with Sunday as 0 that had Sunday as 1."""
    if weekday.upper() == "L":
        return "6"
    counted = re.sub(r"(?<![#/\d])[1-7](?!\d)", lambda day: str(int(day[0]) - 1), weekday)
    last = _LAST_WEEKDAY.fullmatch(counted)
    return f"L{_number_of(last[1])}" if last else counted


def _number_of(day: str) -> int:
    if day.isdigit():
        return int(day) % 7
    return next(number for number, name in enumerate(_WEEKDAYS) if name[:3].upper() == day.upper())


def _last_weekday_hints(fields: list[str]) -> Iterator[tuple[str, str]]:
    """`6L` is the last Friday where Sunday is 1, and the last Saturday where it is 0."""
    *rest, weekday = fields
    if weekday.upper() == "L":
        last_day = " ".join([*rest[:-2], "L", rest[-1], "*"])
        yield " ".join([*rest, "6"]), f"the last day of the month: {last_day}; or Saturday, as AWS reads L: "
    if not (last := _LAST_WEEKDAY.fullmatch(weekday)):
        return
    number = _number_of(last[1])
    written = " ".join([*rest, f"L{number}"])
    if not last[1].isdigit() or last[1] in "07":
        yield written, f"the last {_WEEKDAYS[number]} of the month: "
        return
    from_one = int(last[1]) - 1
    words = f"if 0 is Sunday, the last {_WEEKDAYS[number]}: {written}; if 1 is Sunday, the last"
    yield " ".join([*rest, f"L{from_one}"]), f"{words} {_WEEKDAYS[from_one]}: "


def other_dialect(expression: object) -> str:
    """The same for `dialect: eventbridge`, which alone has `LW`, `L-3` and years; empty if it has none of them."""
    if not isinstance(expression, str) or len(expression) > _MAX_HINTED_CHARS:
        return ""
    called = _CALLED.fullmatch(expression.strip())
    fields = (called[2] if called else expression).split()
    has_second = len(fields) == 7 or (len(fields) == 6 and re.fullmatch(r"L.+", fields[3], re.I))
    if has_second and not fields[0].strip("0"):
        fields = fields[1:]
    if len(fields) == 5 and fields[4] in ("*", "?"):
        fields = [*fields[:4], "?", "*"]
    if len(fields) != 6 or not (
        re.fullmatch(r"LW|L-\d+", fields[2], re.I) or (_YEARS.fullmatch(fields[5]) and fields[5] not in "*?")
    ):
        return ""
    return " ".join(fields)


_OF_AIRFLOW: Final = {
    "@once": '"at" with a time in the place of cron; or any cron with "max_runs": 1',
    "none": '"state": "paused" with any cron, such as @yearly: nothing fires by itself',
    "@continuous": '"every" with a duration in the place of cron, and "overlap": "skip"',
}


def other_kind(expression: object) -> str:
    """What to use in the place of cron: `every` or `at`; empty if cron is right."""
    if not isinstance(expression, str):
        return ""
    if words := _OF_AIRFLOW.get(expression.strip().lower()):
        return words
    if re.match(r"\s*(?:at\(|\d{4}-\d\d-\d\d)", expression, re.I) and (instant := instant_hint(expression)):
        return f'"at": "{instant}" in the place of cron'
    if " " not in expression.strip() or re.match(r"\s*(@?every\b|rate\()", expression, re.I):
        duration = duration_hint(expression)
        if duration and not expression.strip().isdigit():
            return f'"every": "{duration}" in the place of cron'
    return ""
