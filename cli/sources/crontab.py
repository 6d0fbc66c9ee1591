"""Crontabs: `CRON_TZ`, `@daily` and such; a command becomes the payload of the target that the command line names."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator

from cli.sources.found import Defaults, Found

_VARIABLE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$")
_ENTRY = re.compile(r"\s*(@\w+|(?:\S+\s+){4}\S+)\s+(.*\S)\s*$")
_ZONES = ("CRON_TZ", "TZ")
# cron's own, which are about the machine or the mail, and mean nothing to a target.
_CRONS_OWN = frozenset({"SHELL", "MAILTO", "MAILFROM", "HOME", "LOGNAME", "RANDOM_DELAY", *_ZONES})
_NICKNAMES = {"@midnight": "@daily", "@annually": "@yearly"}
_SLUG_CHARS = 60


def read(text: str, defaults: Defaults) -> Iterator[Found]:
    zone, environment = defaults.timezone, dict[str, str]()
    seen = Counter[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if variable := _VARIABLE.match(line):
            name, value = variable[1], variable[2].strip("\"'")
            if name in _ZONES:
                zone = value or defaults.timezone
            elif name not in _CRONS_OWN:
                environment[name] = value
            continue
        yield _job(f"line {number}", line, zone, environment, seen, defaults)


def _job(
    where: str,
    line: str,
    zone: str | None,
    environment: dict[str, str],
    seen: Counter[str],
    defaults: Defaults,
) -> Found:
    entry = _ENTRY.match(line)
    if not entry:
        return Found(where, refusal=f"not a crontab line: {line.strip()[:100]!r}")
    cron, command = entry[1], entry[2]
    if cron == "@reboot":
        return Found(where, refusal="@reboot: nothing reboots here")
    if not defaults.target:
        return Found(where, refusal="a command needs a target that runs it: --target")
    command, stdin = _split_stdin(command)
    job_id = _id_of(command, seen)
    payload: dict[str, object] = {"command": command}
    if stdin is not None:
        payload["stdin"] = stdin
    if environment:
        payload["environment"] = dict(environment)
    schedule = {"cron": _NICKNAMES.get(cron, re.sub(r"\s+", " ", cron))} | (
        {"timezone": zone} if zone else {}
    )
    return Found(where, job_id, {"schedule": schedule, "target": defaults.target, "payload": payload})


def _split_stdin(command: str) -> tuple[str, str | None]:
    """crontab(5): behind the first % is the standard input, the others are line breaks, and \\% is a %."""
    first, *rest = re.split(r"(?<!\\)%", command)
    unescaped = [part.replace("\\%", "%") for part in rest]
    return first.replace("\\%", "%").strip(), "\n".join(unescaped) if rest else None


def _id_of(command: str, seen: Counter[str]) -> str:
    """The same for the same command, so that a crontab can be imported again after its times have changed."""
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", command).strip("-._")[:_SLUG_CHARS].strip("-._")
    base = f"{words or 'job'}-{hashlib.sha256(command.encode()).hexdigest()[:6]}"
    seen[base] += 1
    return base if seen[base] == 1 else f"{base}-{seen[base]}"
