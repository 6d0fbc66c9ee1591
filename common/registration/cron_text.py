"""Reads the cron expression that a tenant typed: returns canonical text, or an error with position and reason.

croniter reads many expressions differently from what was meant (docs/timekeeping.md lists them). So every item is first
read here and written anew: names as numbers, `H` resolved, `5-5` as `5`, macros expanded. croniter sees only this text.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

from common.errors import InvalidInput
from common.hints import cron_hints, other_dialect, other_kind
from common.timing.cron import Cron, checked_text, compile_cron, ever_fires, refused, shortest_interval_s
from common.timing.eventbridge_cron import read_eventbridge

_MONTHS: Final = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS: Final = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
MACROS: Final = {
    "@HOURLY": "0 * * * *",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@WEEKLY": "0 0 * * 0",
    "@MONTHLY": "0 0 1 * *",
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
}


class Field(NamedTuple):
    """One of the six fields: its name in messages, its range, the numbers of its names, and what it accepts."""

    name: str
    low: int
    high: int
    names: dict[str, int]
    accepted: str

    @property
    def size(self) -> int:
        return self.high - self.low + 1


_PLAIN: Final = "`*`, `n`, `a-b`, `a-b/n`, `*/n`, `a/n`, `H`, `H/n`, `H(a-b)` or a list of these with commas"
_SECOND: Final = Field("second", 0, 59, {}, f"0-59; {_PLAIN}")
_MINUTE: Final = Field("minute", 0, 59, {}, f"0-59; {_PLAIN}")
_HOUR: Final = Field("hour", 0, 23, {}, f"0-23; {_PLAIN}")
_DAY: Final = Field(
    "day of month", 1, 31, {}, f"1-31; {_PLAIN}; `L` the last day, `15W` the nearest weekday, `?`"
)
_MONTH: Final = Field("month", 1, 12, dict(zip(_MONTHS, count(1))), f"1-12, JAN-DEC; {_PLAIN}")
_WEEKDAY: Final = Field(
    "day of week",
    0,
    6,
    dict(zip(_WEEKDAYS, count())),
    f"0-7 (0 and 7 are Sunday), SUN-SAT; {_PLAIN}; `MON#2` the second Monday, `L5` the last Friday, `?`",
)
_FIELDS: Final = (_SECOND, _MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)

_VALUE: Final = r"(?:\d+|[A-Z]+)"
_RANGE: Final = re.compile(rf"(?P<low>\*|{_VALUE})(?:-(?P<high>{_VALUE}))?(?:/(?P<step>\d+))?", re.ASCII)
_HASHED: Final = re.compile(r"H(?:\((?P<low>\d+)-(?P<high>\d+)\))?(?:/(?P<step>\d+))?", re.ASCII)
_NTH: Final = re.compile(rf"(?P<low>{_VALUE})(?:-(?P<high>{_VALUE}))?#(?P<nth>\d+)", re.ASCII)
_LAST_WEEKDAY: Final = re.compile(r"L(?P<day>[0-7])", re.ASCII)
_NEAREST: Final = re.compile(r"(?P<before>\d+)W|W(?P<after>\d+)", re.ASCII)
# `R` of Jenkins' kin; `~` and `0~30` of OpenBSD and cronie.
_RANDOM: Final = re.compile(r"R(?:\(.*\))?(?:/.*)?|\d*~\d*(?:/\d+)?", re.ASCII)


class _Item(NamedTuple):
    """One comma-separated item, upper-cased, and its position in the expression."""

    text: str
    position: int
    field: Field
    seed: str

    def refuse(self, message: str, accepted: str = "") -> InvalidInput:
        problem = f"{self.field.name}: {message}"
        return refused(problem, self.text, accepted or self.field.accepted, self.position)


def read_cron(expression: object, *, job_key: str, shortest_s: int = 1) -> str:
    """The canonical text of an expression: five fields, six with seconds first, or a macro such as `@daily`.

    `job_key` resolves `H`; `shortest_s` is the least allowed distance between two fires, in seconds.
    Raises InvalidInput and nothing else, for any value. A usual mistake is answered by what to write instead.
    """
    try:
        return _read(expression, job_key, shortest_s)
    except InvalidInput as error:
        if accepted := instead_of(expression, job_key):
            raise InvalidInput(
                error.field, error.message, value=expression, accepted=accepted, position=error.position
            ) from None
        raise


def instead_of(expression: object, job_key: str, *, deeper: bool = True) -> str:
    """What to write in the place of an expression that is refused; empty if nobody knows.

    `deeper`: what is proposed may have a second mistake.
    """
    if other := other_kind(expression):
        return other
    if of_aws := other_dialect(expression):
        with suppress(InvalidInput):
            return f'"cron": "{read_eventbridge(of_aws)}" with "dialect": "eventbridge"'
    for hint, words in cron_hints(expression):
        try:
            _read(hint, job_key, 1)
        except InvalidInput:
            if deeper and (second := instead_of(hint, job_key, deeper=False)):
                return f"{words}{second}"
            continue
        return f"{words}{hint}"
    return ""


def _read(expression: object, job_key: str, shortest_s: int) -> str:
    text = checked_text(expression)
    macro = MACROS.get(text.strip(" \t"))
    columns = [(m.group(), m.start()) for m in re.finditer(r"[^ \t]+", macro or text)]
    if len(columns) not in (5, 6):
        accepted = (
            "5 fields (minute hour day month weekday), 6 with the seconds first, or one of "
            + ", ".join(name.lower() for name in MACROS)
        )
        count = "has 1 field" if len(columns) == 1 else f"has {len(columns)} fields"
        raise refused(count, expression, accepted, 0)
    fields = [
        _read_field(_FIELDS[index], column, 0 if macro else position, job_key)
        for index, (column, position) in enumerate(columns, start=6 - len(columns))
    ]
    _check_days(fields[-3], fields[-1], columns[-3][1], expression)
    canonical = " ".join(fields)
    check_fires(_compiled(canonical, expression), expression, shortest_s)
    return canonical


def _read_field(field: Field, column: str, position: int, job_key: str) -> str:
    if column == "?":
        if field in (_DAY, _WEEKDAY):
            return "*"
        raise _Item(column, position, field, job_key).refuse("`?` stands for a day only", "`*`")
    items = []
    for text in column.split(","):
        items.append(_Item(text, position, field, job_key))
        position += len(text) + 1
    written = [_read_item(item) for item in items]
    special = [item for item, text in zip(items, written, strict=True) if re.search("[#WL]", text)]
    for item in special:
        if len(items) > 1 and not (field is _DAY and item.text == "L") and not _all_nth(items):
            raise item.refuse("cannot be listed together with other kinds of days", "it alone in its field")
    return "*" if "*" in written else ",".join(written)


def _all_nth(items: list[_Item]) -> bool:
    return all(_NTH.fullmatch(item.text) or _LAST_WEEKDAY.fullmatch(item.text) for item in items)


def _read_item(item: _Item) -> str:
    field, text = item.field, item.text
    if _RANDOM.fullmatch(text):
        raise item.refuse(
            f"`{'~' if '~' in text else 'R'}` is random: it would differ each time it is read",
            "`H`, fixed by the job's name",
        )
    if hashed := _HASHED.fullmatch(text):
        return _read_hashed(item, hashed)
    if field is _DAY and text == "L":
        return "L"
    if field is _DAY and (nearest := _NEAREST.fullmatch(text)):
        return f"{_number(item, nearest['before'] or nearest['after'])}W"
    if field is _WEEKDAY and (last := _LAST_WEEKDAY.fullmatch(text)):
        return f"L{int(last['day']) % 7}"
    if field is _WEEKDAY and (nth := _NTH.fullmatch(text)):
        return _read_nth(item, nth)
    if match := _RANGE.fullmatch(text):
        return _read_range(item, match)
    raise item.refuse("cannot be read" if text else "an empty item")


def _number(item: _Item, text: str) -> int:
    """The number of a value of the field; the weekday 7 is kept."""
    field = item.field
    if text in field.names:
        return field.names[text]
    if not text.isdigit():
        raise item.refuse(f"{text!r} is not a name of this field")
    if field.low <= int(text) <= field.high + (field is _WEEKDAY):
        return int(text)
    raise item.refuse(f"{int(text)} is out of range")


def _read_range(item: _Item, match: re.Match[str]) -> str:
    field, step = item.field, match["step"]
    if not match["high"]:
        first = match["low"] if match["low"] == "*" else str(_first_number(item, match["low"]))
        return f"{first}/{_free_step(item, step)}" if step else first
    if match["low"] == "*":
        raise item.refuse("`*` cannot begin a range")
    low = _number(item, match["low"])
    high = field.high if field is _DAY and match["high"] == "L" else _number(item, match["high"])
    low, high = _weekday_range(low, high) if field is _WEEKDAY else (low, high)
    if step is not None and not 1 <= int(step) <= field.size:
        raise item.refuse(f"the step {int(step)} is out of range", f"a step from 1 to {field.size}")
    if low > high and step is not None and int(step) > 1:
        raise item.refuse("a range that wraps cannot have a step", "two items, one on each side of the turn")
    if low == high:
        return str(low)
    return f"{low}-{high}/{int(step)}" if step else f"{low}-{high}"


def _first_number(item: _Item, text: str) -> int:
    """The number of a value that is no range. Sunday is 0."""
    number = _number(item, text)
    return number % 7 if item.field is _WEEKDAY else number


def _weekday_range(low: int, high: int) -> tuple[int, int]:
    """Sunday as 0 at the beginning of a range and as 7 at its end, so that FRI-SUN does not wrap."""
    if (low, high) == (0, 7):
        return 0, 6
    if low % 7 == high % 7:
        return low % 7, low % 7
    low %= 7
    return low, 7 if high == 0 and low > 0 else high


def _free_step(item: _Item, step: str) -> int:
    """The step of `*/n`, `a/n` or `H/n`. `*/60` would fire once and `5/100` at 5, which few mean: refused."""
    if not 1 <= int(step) < item.field.size:
        raise item.refuse(f"the step {int(step)} is out of range", f"a step from 1 to {item.field.size - 1}")
    return int(step)


def _read_hashed(item: _Item, match: re.Match[str]) -> str:
    """`H` as the job's own number, `H/n` as `a/n`, `H(a-b)/n` as a range with a step."""
    field, step = item.field, match["step"]
    low, high = field.low, 28 if field is _DAY else field.high  # every month has 28 days
    if match["low"]:
        low, high = _number(item, match["low"]), _number(item, match["high"])
        if low >= high or high > field.high:
            raise item.refuse("the range in `H(a-b)` must rise", f"{field.low} <= a < b <= {field.high}")
    # The field is the salt: one checksum for all fields would reach few of the 1,440 pairs of minute and hour.
    digest = hashlib.blake2b(f"{field.name}|{item.seed}".encode(errors="replace"), digest_size=8).digest()
    drawn = int.from_bytes(digest)
    if step is None:
        return str(low + drawn % (high - low + 1))
    if match["low"] and not 1 <= int(step) <= field.size:
        raise item.refuse(f"the step {int(step)} is out of range", f"a step from 1 to {field.size}")
    stride = int(step) if match["low"] else _free_step(item, step)
    first = low + drawn % min(stride, high - low + 1)
    if not match["low"]:
        return f"{first}/{stride}"
    return f"{first}-{high}/{stride}" if first < high else str(first)


def _read_nth(item: _Item, match: re.Match[str]) -> str:
    if not 1 <= int(match["nth"]) <= 5:
        raise item.refuse("a month has no such week", "`#1` to `#5`, or `L5` for the last Friday")
    low = _number(item, match["low"]) % 7
    high = _number(item, match["high"]) % 7 if match["high"] else low
    return ",".join(f"{(low + n) % 7}#{int(match['nth'])}" for n in range((high - low) % 7 + 1))


def _check_days(day: str, weekday: str, position: int, expression: object) -> None:
    """With `W`, `#` or `L5` croniter ignores the other day field, or finds no date."""
    if day != "*" and weekday != "*" and ("W" in day or "#" in weekday or "L" in weekday):
        raise refused(
            "`W`, `#` and `L5` cannot be combined with the other day field",
            expression,
            "`*` or `?` in the other day field",
            position,
        )


def _compiled(canonical: str, expression: object) -> Cron:
    try:
        return compile_cron(canonical)
    except (InvalidInput, ValueError, LookupError) as error:
        raise refused("cannot be read", expression, "five fields, as in 30 9 * * MON-FRI") from error


def check_fires(cron: Cron, expression: object, shortest_s: int) -> None:
    """Whether it ever fires, and not more often than allowed. Raises InvalidInput."""
    if not ever_fires(cron):
        raise refused("never fires: no such date comes", expression, "a date that exists")
    shortest = shortest_interval_s(cron)
    if shortest is not None and shortest < shortest_s:
        raise refused(
            f"fires {shortest} s apart, which is too frequent here",
            expression,
            f"at least {shortest_s} s between two fires",
        )
