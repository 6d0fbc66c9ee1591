"""Crontabs: `CRON_TZ`, `@daily` and so on. A command becomes the payload of the target given on the command line."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator

from cli.sources import day_fields
from cli.sources.found import Defaults, Found, NotHere
from cli.sources.text import payload_of

_VARIABLE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$")
_ENTRY = re.compile(r"\s*(@\w+|(?:\S+\s+){4}\S+)\s+(.*\S)\s*$")
# Variables about the machine or mail, which mean nothing to a target.
_CRONS_OWN = frozenset(
    {"SHELL", "MAILTO", "MAILFROM", "HOME", "LOGNAME", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"}
)
_WHY = {
    "TZ": "the command's zone only; cron reads the times in the machine's, which --timezone or CRON_TZ names",
    "RANDOM_DELAY": "is left out: the schedule's jitter_s spreads the runs of a job",
}
_NICKNAMES = {"@midnight": "@daily", "@annually": "@yearly"}
_SLUG_CHARS = 60


def read(text: str, defaults: Defaults) -> Iterator[Found]:
    """Each entry. The effect of a variable is noted with the first entry after it."""
    zone, environment = defaults.timezone, dict[str, str]()
    seen = Counter[str]()
    notes: list[str] = []
    noted_zone: str | None = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if variable := _VARIABLE.match(line):
            name, value = variable[1], variable[2].strip("\"'")
            if name == "CRON_TZ":
                zone = value or defaults.timezone
            elif name not in _CRONS_OWN and name != "RANDOM_DELAY":
                environment[name] = value
            if name in _WHY or name in _CRONS_OWN:
                notes.append(f"{name} of line {number}: {_WHY.get(name, 'is left out')}")
            continue
        if zone != noted_zone and zone is None:
            notes.append(
                "no zone is named, so the times are read as UTC; cron reads them in the machine's zone"
            )
        noted_zone = zone
        yield _job(f"line {number}", line, zone, environment, seen, defaults, tuple(notes))
        notes.clear()


def _job(
    where: str,
    line: str,
    zone: str | None,
    environment: dict[str, str],
    seen: Counter[str],
    defaults: Defaults,
    notes: tuple[str, ...],
) -> Found:
    entry = _ENTRY.match(line)
    if not entry:
        return Found(where, refusal=f"not a crontab line: {line.strip()[:100]!r}", notes=notes)
    cron, command = entry[1], entry[2]
    if cron == "@reboot":
        return Found(where, refusal="@reboot: nothing reboots here", notes=notes)
    if not defaults.target:
        return Found(where, refusal="a command needs a target that runs it: --target", notes=notes)
    try:
        written = day_fields.vixie(_NICKNAMES.get(cron, re.sub(r"\s+", " ", cron)))
    except NotHere as refusal:
        return Found(where, refusal=str(refusal), notes=notes)
    command, stdin = _split_stdin(command)
    job_id = _id_of(command, seen)
    payload: dict[str, object] = {"command": command}
    if stdin is not None:
        payload["stdin"] = stdin
    if environment:
        payload["environment"] = dict(environment)
    schedule = {"cron": written} | ({"timezone": zone} if zone else {})
    definition = {"schedule": schedule, "target": defaults.target, "payload": payload_of(payload)}
    return Found(where, job_id, definition, notes=notes)


def _split_stdin(command: str) -> tuple[str, str | None]:
    """crontab(5): the text after the first % is the standard input, other % are line breaks, and \\% is a %."""
    first, *rest = re.split(r"(?<!\\)%", command)
    unescaped = [part.replace("\\%", "%") for part in rest]
    return first.replace("\\%", "%").strip(), "\n".join(unescaped) if rest else None


def _id_of(command: str, seen: Counter[str]) -> str:
    """The same for the same command, so that a crontab can be imported again after its times change."""
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", command).strip("-._")[:_SLUG_CHARS].strip("-._")
    base = f"{words or 'job'}-{hashlib.sha256(command.encode(errors='replace')).hexdigest()[:6]}"
    seen[base] += 1
    return base if seen[base] == 1 else f"{base}-{seen[base]}"
