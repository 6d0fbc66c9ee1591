"""Crontabs: `CRON_TZ`, `@daily` and so on. A command becomes the payload of the target given on the command line.

Both day fields of an expression: in some crons both must match, and in Minute8 either.
In Vixie cron, and in cronie, Debian's and FreeBSD's, both must match if one of the fields begins with `*`.
https://github.com/cronie-crond/cronie/blob/master/src/entry.c (DOM_STAR, DOW_STAR)
In Kubernetes' cron a `*` with a step over 1 does not count as one.
https://github.com/robfig/cron/blob/v3/parser.go (starBit)
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from common.hints import steps_in_range
from common.limits import CRON_CHARS
from minute8.cli.sources.source_job import Defaults, NoEquivalent, SourceJob, payload_of

_VARIABLE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*\S|)\s*$")
# Each entry's payload has all of them.
_MAX_VARIABLES: Final = 200
# The first words of entries of a system crontab (/etc/crontab, cron.d), which have a column for the user.
_USERS: Final = frozenset(("root", "nobody", "daemon", "www-data", "postgres", "apache", "ubuntu"))
# Users that are also commands: `mail -s report` is no column.
_USERS_OR_COMMANDS: Final = _USERS | {"backup", "mail", "mysql", "nginx"}
_USER_NAME: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
# Above its fields such a crontab says "# m h dom mon dow user command".
_USER_COLUMN: Final = re.compile(r"^#.*\bdow\s+user(?:-name)?\b|^#.*\* user-name\b", re.MULTILINE)
_ENTRY = re.compile(r"\s*(@\w+|(?:\S+\s+){4}\S+)\s+(.*\S)\s*$")
# Variables about the machine or mail, which mean nothing to a target.
_CRONS_OWN = frozenset(
    {"SHELL", "MAILTO", "MAILFROM", "HOME", "LOGNAME", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"}
)
_WHY = {
    "TZ": "the command's zone only; cron reads the times in the machine's, which --timezone or CRON_TZ names",
    "RANDOM_DELAY": "is left out: the schedule's jitter_s spreads the runs of a job",
}
_NICKNAMES = {"@midnight": "@daily", "@annually": "@yearly", "@every_minute": "* * * * *"}
_SLUG_CHARS = 60


def read(text: str, defaults: Defaults) -> Iterator[SourceJob]:
    """Each entry. The effect of a variable is noted with the first entry after it."""
    has_users = bool(_USER_COLUMN.search(text)) or _have_users(_commands(text))
    counts = Counter(hash(_without_user(command, has_users)) for command in _commands(text))
    repeated = {command for command, count in counts.items() if count > 1}
    crontab = _Crontab(defaults, defaults.timezone, has_users, repeated)
    for number, line in _lines(text):
        if variable := _VARIABLE.match(line):
            crontab.set_variable(variable[1], _unquoted(variable[2]), number)
        else:
            yield crontab.job(f"line {number}", line)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    # splitlines() would also end a comment at a separator that cron does not know, and make what follows an entry.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line


def _commands(text: str) -> Iterator[str]:
    for _, line in _lines(text):
        if not _VARIABLE.match(line) and (entry := _ENTRY.match(line)):
            yield entry[2]


def _have_users(commands: Iterator[str]) -> bool:
    """Each entry begins with a user before its command: one is root's, or all are known and one is a user alone."""
    users = set()
    for user, *command in (text.split(None, 1) for text in commands):
        if not _USER_NAME.fullmatch(user) or not command:
            return False
        users.add(user)
    return "root" in users or bool(users & _USERS and users <= _USERS_OR_COMMANDS)


def _unquoted(value: str) -> str:
    """Without the quotes around the whole value: cron keeps those inside (crontab(5))."""
    is_quoted = len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]
    return value[1:-1] if is_quoted else value


def _without_user(command: str, has_users: bool) -> str:
    _, *rest = command.split(None, 1)
    return rest[0] if has_users and rest else command


@dataclass(slots=True)
class _Crontab:
    """The variables so far, the ids in use, and the notes for the next entry."""

    defaults: Defaults
    zone: str | None
    has_users: bool
    # Hashes of the commands that several entries have.
    repeated: set[int]
    environment: dict[str, str] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    noted_zone: str | None = ""

    def set_variable(self, name: str, value: str, line_number: int) -> None:
        if name == "CRON_TZ":
            self.zone = value or self.defaults.timezone
        elif name not in _CRONS_OWN and name != "RANDOM_DELAY":
            self.environment[name] = value
        if name in _WHY or name in _CRONS_OWN:
            self.notes.append(f"{name} of line {line_number}: {_WHY.get(name, 'is left out')}")

    def job(self, where: str, line: str) -> SourceJob:
        if self.zone != self.noted_zone and self.zone is None:
            self.notes.append(
                "no zone is named, so the times are read as UTC; cron reads them in the machine's zone"
            )
        self.noted_zone = self.zone
        is_never = False
        try:
            job_id, family, definition = self._definition(line)
            if never := never_comes(definition["schedule"]["cron"]):
                is_never, definition["schedule"]["cron"] = True, FOR_NEVER
                self.notes.append(never)
        except NoEquivalent as refusal:
            return SourceJob(where, refusal=str(refusal), notes=self._taken_notes())
        notes = self._taken_notes()
        return SourceJob(where, job_id, definition, notes=notes, suspended=is_never, family=family)

    def _taken_notes(self) -> tuple[str, ...]:
        notes = tuple(self.notes)
        self.notes.clear()
        return notes

    def _definition(self, line: str) -> tuple[str, str, dict[str, Any]]:
        """The entry's id, what the ids of all entries with its command begin with, and its definition.

        Raises NoEquivalent.
        """
        entry = _ENTRY.match(line)
        if not entry:
            raise NoEquivalent(f"not a crontab line: {line.strip()[:100]!r}")
        cron = entry[1]
        if cron == "@reboot":
            raise NoEquivalent("@reboot: nothing reboots here")
        if not self.defaults.target:
            raise NoEquivalent("a command needs a target that runs it: --target")
        if cron.startswith("-"):
            cron = cron[1:]
            self.notes.append(
                "the - before the minute, which keeps a run out of the system's log, is left out"
            )
        cron = re.sub(r"\s+", " ", cron)
        converted = vixie_cron(_NICKNAMES.get(cron, cron))
        self.notes += steps_note(cron, converted) + _open_steps_note(cron)
        text = _without_user(entry[2], self.has_users)
        if self.has_users:
            self.notes.append(f"the column of the user, {entry[2].split()[0]!r}, is left out")
        command, stdin = _split_stdin(text)
        payload: dict[str, object] = {"command": command}
        if stdin is not None:
            payload["stdin"] = stdin
            self.notes.append(
                "what follows the first % is the standard input; a percent sign of a command is \\%"
            )
        if len(self.environment) > _MAX_VARIABLES:
            raise NoEquivalent(f"more than {_MAX_VARIABLES} variables stand before it")
        if self.environment:
            payload["environment"] = dict(self.environment)
        definition = {
            "schedule": {"cron": converted} | ({"timezone": self.zone} if self.zone else {}),
            "target": self.defaults.target,
            "payload": payload_of(payload),
        }
        family = _family(command)
        several = hash(text) in self.repeated
        return self._id_in(family, definition["schedule"] if several else None), family, definition

    def _id_in(self, family: str, schedule: Mapping[str, str] | None) -> str:
        """An id without a place in the file: the schedule tells entries with the same command apart."""
        base = f"{family}-{_digest(' '.join(schedule.values()))[:4]}" if schedule else family
        self.seen[base] += 1
        return base if self.seen[base] == 1 else f"{base}-{self.seen[base]}"


def _split_stdin(command: str) -> tuple[str, str | None]:
    """crontab(5): the text after the first % is the standard input, other % are line breaks, and \\% is a %."""
    first, *rest = re.split(r"(?<!\\)%", command)
    unescaped = [part.replace("\\%", "%") for part in rest]
    # cron ends it with a line break: https://github.com/cronie-crond/cronie/blob/master/src/do_command.c
    return first.replace("\\%", "%").strip(), "\n".join(unescaped).rstrip("\n") + "\n" if rest else None


def _family(command: str) -> str:
    """The same for the same command, so that a crontab can be imported again after its times change."""
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", command).strip("-._")[:_SLUG_CHARS].strip("-._")
    return f"{words or 'job'}-{_digest(command)[:6]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


# In the place of a date that never comes, such as `0 0 31 2 *`: people write it for what is started by hand alone.
FOR_NEVER: Final = "0 0 29 2 *"
_LENGTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_ALL_DAYS: Final = set(range(1, 32))
_ITEM: Final = re.compile(r"(?:(?P<free>[*?])|(?P<low>\d+)(?:-(?P<high>\d+))?)(?:/(?P<step>\d+))?", re.ASCII)
_WEEKDAY_NAMES: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_WEEKS: Final = [set(range(first, min(first + 7, 32))) for first in range(1, 32, 7)]


def vixie_cron(cron: str) -> str:
    """A crontab's expression for Minute8. Raises NotHere."""
    return steps_in_range(_with_both_days(cron, re.compile(r"\*")))


def kubernetes_cron(cron: str) -> str:
    """A CronJob's expression for Minute8. Raises NotHere."""
    return steps_in_range(_with_both_days(cron, re.compile(r"(?:.*,)?[*?](?:/1)?(?:,|$)")))


def steps_note(cron: str, converted: str) -> list[str]:
    """The note that names the steps of an expression that were converted."""
    fields = zip(cron.split(), converted.split(), strict=False)
    beyond = [field for field, number in fields if "/" in field and number.isdecimal()]
    words = "cron takes the first value of a step that leads out of its range"
    return [f"{', '.join(beyond)}: {words}"] if beyond else []


def _open_steps_note(cron: str) -> list[str]:
    """A note of steps behind a single number.

    https://github.com/cronie-crond/cronie/blob/master/src/entry.c (get_range)
    """
    items = [item for item in re.split(r"[ ,]", cron) if re.fullmatch(r"\d+/\d+", item)]
    words = (
        "cron refuses a step behind a single number or takes the number alone; here it repeats from there on"
    )
    return [f"{', '.join(items)}: {words}"] if items else []


def _five_fields(cron: str) -> list[str]:
    """The fields; empty if there are not five. Raises NoEquivalent."""
    if len(cron) > CRON_CHARS:
        raise NoEquivalent(f"an expression of {len(cron)} characters; accepted: at most {CRON_CHARS}")
    fields = cron.split()
    return fields if len(fields) == 5 else []


def _with_both_days(cron: str, starred: re.Pattern[str]) -> str:
    if not (fields := _five_fields(cron)):
        return cron
    minute, hour, day, month, weekday = fields
    if {day, weekday} & {"*", "?"} or not (starred.match(day) or starred.match(weekday)):
        return cron  # either field matches, in both
    month_days, week_days = _numbers(day, 1, 31), _week_days(weekday)
    if not month_days or not week_days:
        return cron  # the API refuses it with the reason
    if month_days == _ALL_DAYS:
        return f"{minute} {hour} * {month} {weekday}"
    if len(week_days) == 7:
        return f"{minute} {hour} {day} {month} *"
    weeks = [number for number, week in enumerate(_WEEKS, 1) if week <= month_days]
    if set().union(*(_WEEKS[number - 1] for number in weeks)) != month_days:
        raise NoEquivalent(
            f"{cron!r}: its day of month and its day of week both have to match there, since one begins with `*`; "
            "here either is enough. Accepted: `*` in one of the two, or days of whole weeks such as 1-7"
        )
    nth = ",".join(f"{number}#{week}" for week in weeks for number in sorted(week_days))
    return f"{minute} {hour} * {month} {nth}"


def never_comes(cron: str) -> str:
    """Why a job with this expression is created paused; empty if its dates come."""
    fields = cron.split()
    if len(fields) != 5 or fields[4] not in ("*", "?"):
        return ""
    days, months = _numbers(fields[2], 1, 31), _numbers(fields[3], 1, 12)
    if not days or not months or any(min(days) <= _LENGTHS[month - 1] for month in months):
        return ""
    return f"the date of {cron!r} never comes: the job is paused, with {FOR_NEVER!r}, and `minute8 jobs run` runs it"


def _week_days(field: str) -> set[int]:
    for number, name in enumerate(_WEEKDAY_NAMES):
        field = re.sub(name, str(number), field, flags=re.IGNORECASE)
    return {number % 7 for number in _numbers(field, 0, 7)}


def _numbers(field: str, low: int, high: int) -> set[int]:
    """The numbers of a field; empty if cron cannot read it."""
    numbers: set[int] = set()
    for item in map(_ITEM.fullmatch, field.split(",")):
        step = int(item["step"] or 1) if item else 0
        if not item or step < 1:
            return set()
        first = low if item["free"] else int(item["low"])
        last = high if item["free"] or (item["step"] and not item["high"]) else int(item["high"] or first)
        if not low <= first <= last <= high:
            return set()
        numbers.update(range(first, last + 1, step))
    return numbers
