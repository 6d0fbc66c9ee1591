"""How each project reads expressions and handles clock changes; the classes of disagreement."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from common.timing.cron import runs_freely
from tests.foreign.dialects import Dialect, Read

WHY = {
    "year": "A seventh field for years. Here `start_at` and `end_at` bound a schedule.",
    "seconds sixth": (
        "Of six fields the last is the second there; here the first is, as in Quartz, Spring and Cronos."
    ),
    "seconds sixth, refused there": "Its first field of six is a minute, and so is out of range or never comes.",
    "weekdays from 1": "Weekdays count from 1 = Sunday there; here 0 and 7 are Sunday, as in crontab(5).",
    "L-n": "Days before the last (`L-3`): not in our syntax.",
    "LW": "The last weekday of the month: refused here; `31W` says the same.",
    "5L": "The last Friday is written `5L` there, `L5` here.",
    "#-n": "Counting from the month's end (`1#-2`): not in our syntax.",
    "L with a step": "A step after `L` means nothing; taken there, refused here.",
    "W alone": "`W` alone for every weekday: `MON-FRI` in the day of week here.",
    "L alone as a weekday": "`L` alone as a weekday (Sunday, or Saturday in Quartz): refused here as unclear.",
    "list with # or W": "`#`, `L5` or `W` listed with plain days: refused here, since croniter drops one of them.",
    "W or # with the other day field": "Refused here: croniter ignores one of the fields, or finds no date.",
    "? in any field": "`?` stands for a day only here.",
    "wrapping range with a step": "`23-3/2`: refused here, since croniter reads it in another phase than others do.",
    "wrapping range": "A range that wraps (`22-2`, `FRI-MON`) is refused there; here it goes over the turn.",
    "step out of range": "`*/100`, or `*/7` of weekdays: refused here, because it means the first value only.",
    "5-5 is all": "A range of one value (`5-5`) is everything in croniter; here it is that value.",
    "macro": "`@every_minute`, `@secondly` and such: write `* * * * *`, or use `every`.",
    "@every": "`@every 5m`: `every` is a key of its own here.",
    "line break": "A line break between or after fields: refused here, blanks and tabs separate.",
    "leap second": "Leap seconds (`L60`): instants here are POSIX time, which has none.",
    "both days": (
        "With both day fields restricted both must match there; here either, as in crontab(5), and the preview "
        "warns."
    ),
    "both days after a star": (
        "`*/2` counts as unrestricted there, so both day fields must match; here only a plain `*` does, and the "
        "preview warns."
    ),
    "day or week": "Quartz wants a `?` in one of the day fields; here `*` will do.",
    "31W where there is no 31st": "Passed over there; here it is the last weekday of the month, as in croniter.",
    "hash": "`H`, or a macro with a seed: drawn by another hash, so the number differs by intent.",
    "no seed": "`H` without a seed is refused there; here the job's id always is one.",
    "field count": "The test told its parser to take five fields only, or six.",
    "the text compared": "Two texts of the same meaning (`31` and `L` in January) count as different there.",
    "several #": "Several `#` in a list are refused there; here `1#1,3#3` is either.",
    "steps from the start": (
        "An option there: steps count from the time one asks at. Here an expression has one meaning, and `every` "
        "with an anchor counts from a time."
    ),
    "strict": (
        "An option there refuses dates that do not come every year, or not soon. Here a date may be rare, and the "
        "preview warns."
    ),
    "never fires": "A date that never comes is refused here when the job is registered.",
    "whole minute": "Its `match` takes a whole minute for five fields; here the fire is the first second of it.",
    "gap: lost there": "A time that the clock skips is lost there; here it fires once, at the end of the gap.",
    "gap: lost there after a star": (
        "A skipped time is lost there if its minute or hour begins with `*`, or if there is a field for seconds; "
        "here it is owed once whenever an hour is named."
    ),
    "gap: asked at its end": (
        "The skipped time fires at the gap's end if asked from before, and not if asked from exactly there; here "
        "the answer does not depend on who asks."
    ),
    "gap: backwards": "Read backwards, a skipped time lies before the gap there; here it is the fire that was made.",
    "gap: owed to a full range": (
        "`0-23` counts as naming an hour there, so a skipped time is owed; here it leaves out no hour, and so "
        "names none."
    ),
    "gap: every skipped time there": (
        "Each skipped time starts after the gap there, several at once; here they are one."
    ),
    "gap: over three hours": (
        "Debian takes a change of three hours or more for a correction: nothing is owed or held back; here the "
        "size of a change does not matter."
    ),
    "a change that is not of whole hours": (
        "cronsim loses fires where a clock changes by half an hour (Lord Howe) or within an hour (Chatham, 02:45 "
        "-> 03:45): `* 4 * * *` begins at 04:30 on such a day. Here none is lost."
    ),
    "a gap at midnight": (
        "Where midnight is skipped, cronsim is wrong in the first hour of that day: `* 1 * * tue` does not fire "
        "between 01:00 and 01:59 after 00:00 -> 01:00."
    ),
    "overlap: twice there": "A fixed time that the clock repeats fires in both passes there, in the first one here.",
    "overlap: ranges are free there": (
        "A range (`1-9`), or a step in the seconds, runs freely there and fires in both passes; here only `*`, "
        "`*/n`, `a/n` in the minute or hour do."
    ),
    "overlap: seconds are free there": (
        "With a field for seconds nothing is fixed there; here seconds change nothing."
    ),
    "overlap: star not first": (
        "Only a minute or hour that begins with `*` runs freely there: `5,*/20` and `5/20` are fixed; here they "
        "are free."
    ),
    "not its syntax": "`a/n`, `L`, `#` and such are not in crontab(5).",
    "no answer in 2 s": "It did not come back; here a window takes microseconds.",
}

Clock = Callable[[Read], dict[str, bool]]
_ALL_HOURS = set(range(24))


def our_clock(seen: Read) -> dict[str, bool]:
    """Our two conditions: `names_hour` owes a skipped time, `repeats` fires in both passes."""
    return {
        "names_hour": seen.hours != _ALL_HOURS,
        "repeats": runs_freely(seen.texts[1]) or runs_freely(seen.texts[2]),
    }


def _lost_and_twice(seen: Read) -> dict[str, bool]:
    return {"names_hour": False, "repeats": True}


def _twice(seen: Read) -> dict[str, bool]:
    return {"repeats": True}


def _by_first_character(seen: Read) -> dict[str, bool]:
    star = seen.texts[1][0] == "*" or seen.texts[2][0] == "*" or seen.by_second
    return {"names_hour": not star, "repeats": star}


def _ranges_free(seen: Read) -> dict[str, bool]:
    return {"names_hour": True, "repeats": any(re.search(r"[*/-]", text) for text in seen.texts[:3])}


@dataclass(frozen=True)
class Manner:
    """How a suite reads, and its rule for clock changes."""

    dialect: Dialect
    clock: Clock = our_clock
    named: dict[tuple[str, bool], str] = field(default_factory=dict)
    """What it is called if the clock rule differs from ours in this."""
    otherwise: tuple[tuple[str, Clock], ...] = ()
    """Classes and their clock rules for what the first rule does not explain."""
    rules: dict[str, str] = field(default_factory=dict)
    """Class -> pattern of a fact (kind, expression, note, time of day) for what cannot be computed."""


_HASHED = r".*(\bH\b|@).*\t(seed|hash id)"
_BY_FIRST_CHARACTER = {
    ("names_hour", False): "gap: lost there after a star",
    ("names_hour", True): "gap: owed to a full range",
    ("repeats", False): "overlap: star not first",
    ("repeats", True): "overlap: seconds are free there",
}
_PLAIN = {("names_hour", False): "gap: lost there", ("repeats", True): "overlap: twice there"}
MANNERS = {
    "cronos": Manner(
        Dialect(days="and", nearest_stays_in_month=True),
        _ranges_free,
        {
            ("repeats", True): "overlap: ranges are free there",
            ("names_hour", True): "gap: owed to a full range",
        },
        rules={
            "hash": _HASHED,
            "field count": r"refused.*\t(five|six) fields only",
            "no seed": r"refused.*\tno seed",
            "the text compared": r"differs",
            "gap: backwards": r"last\t30 (0 L|0 LW|2 \*) ",
            "gap: asked at its end": r"next\t30 0 LW? ",
        },
    ),
    "debian": Manner(
        Dialect(days="star", wraps=False),
        _by_first_character,
        _BY_FIRST_CHARACTER,
        otherwise=(("gap: over three hours", _lost_and_twice),),
    ),
    "cronsim": Manner(Dialect(days="star", wraps=False), _by_first_character, _BY_FIRST_CHARACTER),
    "croniter": Manner(
        Dialect(seconds_sixth=True, equal_is_all=True, special_days_and=True),
        _twice,
        _PLAIN,
        rules={
            "hash": _HASHED,
            "steps from the start": r".*\texpanded from start",
            "strict": r".*\t(strict|both days, bounded|bounded)",
            "list with # or W": r"next\t0 0 \* \* \*,sat#3",
            "year": r"next\t.* 2099/1\t",
            "wrapping range with a step": r"(next|last)\t.*[A-Za-z0-9]-[A-Za-z0-9]+/\d",
            "whole minute": r"at\t.*\d\d:\d\d:59",
        },
    ),
    "quartz": Manner(
        Dialect(sunday=1),
        rules={"day or week": r"refused\t0 0 \* (\* \* (\*|4)|4 \* \*)\t"},
    ),
    "robfig": Manner(
        Dialect(days="star", wraps=False), _lost_and_twice, _PLAIN, rules={"@every": r"accepted\t@every "}
    ),
    "supertinycron": Manner(
        Dialect(days="and", wraps=False),
        _lost_and_twice,
        _PLAIN,
        rules={"leap second": r"same\tL5", "several #": r"refused.*#.*,.*#"},
    ),
}
