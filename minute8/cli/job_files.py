"""Jobs as code: files of jobs, as YAML or JSON, one job or many in each."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecoder
from pathlib import Path
from typing import Any, Final

from minute8.cli.output import unreadable
from minute8.cli.sources.source_job import NoEquivalent, loads, payload_of
from minute8.cli.sources.yaml_text import beyond, bounded_loader, check_repeated
from minute8.client.jobs import definition_to_create

_SUFFIXES: Final = (".yaml", ".yml", ".json", ".ndjson")


class BadFile(ValueError):
    """A file does not hold jobs; the message names the file."""


@dataclass(frozen=True, slots=True)
class NoJob:
    """An entry of a file that is no job."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class WrittenJob:
    """A job as a file has it; `where` is the file and its line. A job whose `state` is None keeps its own."""

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


def read_files(paths: list[str]) -> tuple[list[WrittenJob], list[NoJob]]:
    """The jobs of files and folders, and the entries that are none; a folder's files in the order of their names.

    Raises BadFile.
    """
    return jobs_of(read_entries(paths))


def read_entries(paths: list[str]) -> list[tuple[str, Any]]:
    """The entries of files and folders, each with its file and line. Raises BadFile."""
    entries = [
        (f"{file}:{line}", raw) for path in paths for file in _files(path) for line, raw in _entries(file)
    ]
    if not entries:
        raise BadFile(f"{', '.join(paths)}: no jobs; accepted: files that end with {', '.join(_SUFFIXES)}")
    return entries


def jobs_of(entries: list[tuple[str, Any]]) -> tuple[list[WrittenJob], list[NoJob]]:
    """The jobs that the entries are, and the entries that are none."""
    jobs: dict[str, WrittenJob] = {}
    malformed = []
    for where, raw in entries:
        faults = list(_faults(raw))
        if not faults and (other := jobs.get(raw["job_id"])):
            faults.append(f"job {raw['job_id']!r} is in {other.where} too; accepted: each job once")
        if faults:
            malformed.append(NoJob(where, "; ".join(faults)))
        else:
            jobs[raw["job_id"]] = _job(where, raw)
    return list(jobs.values()), malformed


def _files(path: str) -> Iterator[str]:
    if path != "-" and Path(path).is_dir():
        yield from (str(file) for file in sorted(Path(path).rglob("*")) if file.suffix in _SUFFIXES)
    else:
        yield path


def _entries(file: str) -> list[tuple[int, Any]]:
    """The entries of a file, each with the line on which it begins. Raises BadFile."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
        if file.endswith(".ndjson") or (not file.endswith(_SUFFIXES) and _is_ndjson(text)):
            lines = enumerate(text.split("\n"), 1)
            return [(number, _of_line(line)) for number, line in lines if line.strip()]
        if file.endswith(".json"):
            return _json_entries(text)
        return yaml_entries(text)
    except (OSError, ValueError, NoEquivalent) as error:
        why = error if isinstance(error, NoEquivalent) else unreadable(error)
        raise BadFile(f"{file} cannot be read: {why}") from None


def _is_ndjson(text: str) -> bool:
    return isinstance(_of_line(text.partition("\n")[0]), dict)


def _of_line(line: str) -> Any:
    """A line's JSON, or what is wrong with it."""
    try:
        return loads(line)
    except ValueError as error:
        return BadFile(f"not JSON: {unreadable(error)}")


def _json_entries(text: str) -> list[tuple[int, Any]]:
    document = loads(text)
    if not isinstance(document, list):
        return [(1, document)]
    entries, line, begin, between = [], 1, 0, re.compile(r"[\s,]*")
    place = text.index("[") + 1
    for entry in document:
        place = between.match(text, place).end()  # type: ignore[union-attr]  # it matches nothing, too
        line += text.count("\n", begin, place)
        entries.append((line, entry))
        begin, place = place, JSONDecoder().raw_decode(text, place)[1]
    return entries


def yaml_entries(text: str) -> list[tuple[int, Any]]:
    """The documents of a YAML text, of a list its entries, as JSON, each with its line. Dates and times stay texts.

    Raises ValueError, NoEquivalent.
    """
    import yaml  # only for this format

    class Loader(bounded_loader()):  # type: ignore[misc]
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
    entries: list[tuple[int, Any]] = []
    try:
        loader = Loader(text)
        while loader.check_node():
            node: Any = loader.get_node()
            is_list = isinstance(node, yaml.SequenceNode)
            lines = [part.start_mark.line + 1 for part in (node.value if is_list else [node])]
            value = loader.construct_document(node)
            check_repeated(value, text)
            document = payload_of(value, lambda part: part, "the document")
            if document is not None:  # as behind a last `---`
                entries += zip(lines, document if is_list else [document], strict=True)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {error}") from None
    except (RecursionError, OverflowError) as error:
        raise ValueError(f"not YAML: {beyond(error)}") from None
    return entries


def yaml_text(job: dict[str, Any]) -> str:
    """A job as an entry of a YAML list; `yaml_entries` reads it back."""
    import yaml

    # PyYAML reads some control characters back as others unless they are escaped.
    readable = json.dumps(job, ensure_ascii=False).isprintable()
    return str(yaml.safe_dump([job], sort_keys=False, allow_unicode=readable, width=100))


def _faults(raw: Any) -> Iterator[str]:
    if isinstance(raw, BadFile):
        yield str(raw)
    elif not isinstance(raw, dict) or not isinstance(raw.get("job_id"), str):
        yield "not a job; accepted: an object with job_id, schedule and target"
    elif raw.get("state") not in (None, "active", "paused"):
        yield f"state {json.dumps(raw['state'])} is not valid; accepted: active, paused"


def _job(where: str, raw: dict[str, Any]) -> WrittenJob:
    state, note = raw.get("state"), raw.get("note", "")
    definition = definition_to_create(raw)
    for name in ("state", "note"):
        definition.pop(name, None)
    return WrittenJob(where, raw["job_id"], definition, state, note if isinstance(note, str) else "")
