"""NDJSON: a definition with its `job_id` on each line, as `minute8 export` writes it."""

from __future__ import annotations

from collections.abc import Iterator

from cli.sources.found import Defaults, Found
from cli.sources.text import loads


def read(text: str, defaults: Defaults) -> Iterator[Found]:
    """Each line's job, or why it is none."""
    for number, line in enumerate(text.split("\n"), 1):  # splitlines() also splits inside JSON strings
        if line.strip():
            yield _job(f"line {number}", line, defaults)


def _job(where: str, line: str, defaults: Defaults) -> Found:
    try:
        job = loads(line)
    except ValueError as error:
        return Found(where, refusal=f"not JSON: {error}")
    if not isinstance(job, dict) or not isinstance(job.get("job_id"), str):
        return Found(where, refusal="not an object with a job_id")
    job_id, suspended = job.pop("job_id"), False
    if job.get("state") in ("active", "paused"):  # the API refuses other values
        suspended = job.pop("state") == "paused"
    if defaults.target:
        job.setdefault("target", defaults.target)
    return Found(where, job_id, job, suspended=suspended)
