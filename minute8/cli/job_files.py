"""Jobs as code: files of jobs, as YAML or JSON, one job or many in each."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from minute8.cli.output import unreadable
from minute8.cli.sources.source_job import NoEquivalent, loads, payload_of
from minute8.client.jobs import definition_to_create

_SUFFIXES: Final = (".yaml", ".yml", ".json", ".ndjson")


class BadFile(ValueError):
    """A file does not hold jobs; the message names the file."""


@dataclass(frozen=True, slots=True)
class WrittenJob:
    """A job as a file has it. `state` is None if the file does not say it: the job keeps its own."""

    where: str
    job_id: str
    definition: dict[str, Any]
    state: str | None = None
    note: str = ""

    @property
    def line(self) -> dict[str, Any]:
        """The job for a bulk request."""
        paused = {"state": "paused", "note": self.note} if self.state == "paused" else {}
        return {"job_id": self.job_id, **self.definition, **paused}


def read_files(paths: list[str]) -> list[WrittenJob]:
    """The jobs of files and folders; a folder's files in the order of their names. Raises BadFile."""
    jobs = [job for path in paths for file in _files(path) for job in _jobs(file)]
    seen: dict[str, str] = {}
    for job in jobs:
        if job.job_id in seen:
            raise BadFile(
                f"{job.where}: job {job.job_id!r} is in {seen[job.job_id]} too; accepted: each job once"
            )
        seen[job.job_id] = job.where
    if not jobs:
        raise BadFile(f"{', '.join(paths)}: no jobs; accepted: files that end with {', '.join(_SUFFIXES)}")
    return jobs


def _files(path: str) -> Iterator[str]:
    if path != "-" and Path(path).is_dir():
        yield from (str(file) for file in sorted(Path(path).rglob("*")) if file.suffix in _SUFFIXES)
    else:
        yield path


def _jobs(file: str) -> Iterator[WrittenJob]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{file} cannot be read: {unreadable(error)}") from None
    documents = _documents(file, text)
    jobs = [job for document in documents for job in (document if isinstance(document, list) else [document])]
    for number, raw in enumerate(jobs, 1):
        yield _job(file if len(jobs) == 1 else f"{file}, job {number}", raw)


def _documents(file: str, text: str) -> list[Any]:
    try:
        if file.endswith(".ndjson"):
            return [loads(line) for line in text.split("\n") if line.strip()]
        if file.endswith(".json"):
            return [loads(text)]
        return [document for document in yaml_documents(text) if document is not None]
    except (ValueError, NoEquivalent) as error:
        why = unreadable(error) if isinstance(error, ValueError) else error
        raise BadFile(f"{file} cannot be read: {why}") from None


def yaml_documents(text: str) -> list[Any]:
    """The documents of a YAML text as JSON. Dates and times stay texts. Raises ValueError, NotHere."""
    import yaml  # only for this format

    class Loader(yaml.SafeLoader):
        """As in YAML 1.2's core: no dates, no numbers of the form 10:30, and no `yes` or `on` for true."""

    plain, words = (
        re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z"),
        re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
    )
    dropped = (":timestamp", ":int", ":bool")
    resolvers = {
        first: [(tag, regexp) for tag, regexp in patterns if not tag.endswith(dropped)]
        for first, patterns in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.yaml_implicit_resolvers = resolvers
    Loader.add_implicit_resolver("tag:yaml.org,2002:int", plain, list("-+0123456789"))
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", words, list("tTfF"))
    try:
        documents = list(yaml.load_all(text, Loader))
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"not YAML: {error}") from None
    return [payload_of(document, lambda text: text, "the document") for document in documents]


def yaml_text(job: dict[str, Any]) -> str:
    """A job as an entry of a YAML list; `yaml_documents` reads it back."""
    import yaml

    # PyYAML reads some control characters back as others unless they are escaped.
    readable = json.dumps(job, ensure_ascii=False).isprintable()
    return str(yaml.safe_dump([job], sort_keys=False, allow_unicode=readable, width=100))


def _job(where: str, raw: Any) -> WrittenJob:
    if not isinstance(raw, dict) or not isinstance(raw.get("job_id"), str):
        raise BadFile(f"{where}: not a job; accepted: an object with job_id, schedule and target")
    state, note = raw.get("state"), raw.get("note", "")
    if state not in (None, "active", "paused"):
        raise BadFile(f"{where}: state {json.dumps(state)} is not valid; accepted: active, paused")
    definition = definition_to_create(raw)
    for name in ("state", "note"):
        definition.pop(name, None)
    return WrittenJob(where, raw["job_id"], definition, state, note if isinstance(note, str) else "")
