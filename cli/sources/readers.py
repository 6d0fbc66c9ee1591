"""The formats from which jobs can be imported: one file each, from text to definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from cli.sources import cronjob_yaml, crontab
from cli.sources.source_job import Defaults, SourceJob, read_ndjson
from eventbridge import importing

READERS: Mapping[str, Callable[[str, Defaults], Iterator[SourceJob]]] = {
    "ndjson": read_ndjson,
    "crontab": crontab.read,
    "cronjob": cronjob_yaml.read,
    "eventbridge": importing.read,
}


def format_of(name: str, text: str) -> str:
    """The format that a file probably has."""
    if name.endswith((".yaml", ".yml")):
        return "cronjob"
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return "crontab"
    return "eventbridge" if '"ScheduleExpression"' in text else "ndjson"
