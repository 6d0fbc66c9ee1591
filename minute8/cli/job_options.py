"""A job from options, from a file or from an editor, and changes of one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from common.registration.schedule_definition import SingleSchedule
from minute8.cli.job_fields import Field, Kind, fields
from minute8.cli.options import OptionGroup, with_options
from minute8.cli.output import unreadable

# The options that are not called as their fields.
_NAMES: Final = {
    "schedule.timezone": ("--timezone", "--tz"),
    "schedule.exclude.dates": ("--exclude-date",),
    "schedule.exclude.weekdays": ("--exclude-weekday",),
    "schedule.exclude.calendars": ("--exclude-calendar",),
    "schedule.pace.key": ("--pace-key",),
    "retry.base_s": ("--retry-base",),
    "retry.factor": ("--retry-factor",),
    "retry.cap_s": ("--retry-cap",),
    "retry.max_age_s": ("--retry-max-age",),
    "concurrency.key": ("--concurrency-key",),
    "concurrency.limit": ("--concurrency",),
}
_TYPES: Final[dict[Kind, Any]] = {
    "integer": int | None,
    "number": float | None,
    "flag": bool | None,
    "list": list[str] | None,
    "map": list[str] | None,
}
_MORE: Final[dict[Kind, str]] = {
    "list": "; repeatable",
    "map": '; "name: value", repeatable',
    "json": "; JSON, or @file.json",
}
# One option says all three.
_ADDRESS: Final = ("target.kind", "target.arn", "target.url")
_TARGET_KINDS: Final = {
    "sqs": "sqs",
    "sns": "sns",
    "events": "event_bus",
    "states": "step_functions",
    "scheduler": "aws_operation",
}


def with_job_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field of a job, which it gets as the definition's parts `changes`."""
    options = {name: (kind, None) for name, kind in options_of_fields(fields()).items()}
    return with_options(command, changes=OptionGroup(options, definition_of))


def options_of_fields(of_job: Iterable[Field]) -> dict[str, Any]:
    """The types of the options, by parameter."""
    target = Annotated[str | None, typer.Option("--target", help="The ARN or URL to call.")]
    return {"target": target} | {
        _parameter(field): _option(field) for field in of_job if field.path not in _ADDRESS
    }


def _parameter(field: Field) -> str:
    return field.path.replace(".", "_")


def _option(field: Field) -> Any:
    """`--start-at` of `start_at`, `--jitter` of `jitter_s`, `--tag` of `tags`, `--durable/--no-durable` of a flag."""
    words = (
        field.name.removesuffix("_s")
        .removesuffix("s" if field.kind in ("list", "map") else "")
        .replace("_", "-")
    )
    names = (f"--{words}/--no-{words}",) if field.kind == "flag" else _NAMES.get(field.path, (f"--{words}",))
    choice = f": {field.accepted}" if field.words else ""
    text = f"{field.description.removesuffix('.')}{choice}{_MORE.get(field.kind, '')}."
    return Annotated[_TYPES.get(field.kind, str | None), typer.Option(*names, help=text)]


def definition_of(**options: Any) -> dict[str, Any]:
    """The parts of a job definition that the options set. The API validates them."""
    definition: dict[str, Any] = {}
    if options.get("target") is not None:
        definition["target"] = target_in(options["target"])
    for field in fields():
        if (value := options.get(_parameter(field))) in (None, []):
            continue
        if field.kind == "map":
            value = dict(_header(text) for text in value)
        elif field.kind == "json":
            value = read_json(value, f"--{field.name}")
        *parts, name = field.path.split(".")
        reduce(lambda inside, part: inside.setdefault(part, {}), parts, definition)[name] = value
    return definition


def target_in(text: str) -> dict[str, Any]:
    """The target of an ARN or a URL; the ARN's service gives its kind."""
    if text.startswith(("http://", "https://")):
        return {"kind": "http", "url": text}
    if not text.startswith("arn:"):
        raise typer.BadParameter(
            f"--target {text!r} is neither an ARN nor a URL; accepted: https://…, or the ARN of a function, queue, "
            "topic, bus or state machine, such as arn:aws:lambda:eu-west-1:123456789012:function:report"
        )
    service = (*text.split(":"), "", "", "")[2]
    return {"kind": _TARGET_KINDS.get(service, "lambda"), "arn": text}


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise typer.BadParameter(f"--header {text!r} has no colon; accepted: such as 'x-team: a'")
    return name.strip(), value.strip()


_TIMINGS = ("cron", "every", "at", "schedules")
# What goes into each of several schedules, and not beside them.
_OF_ONE = set(SingleSchedule.__struct_fields__) - {*_TIMINGS, "start_at", "end_at"}


def as_patch(changes: dict[str, Any], old_kind: str) -> dict[str, Any]:
    """The merge patch for the options. A new kind of timing replaces the old one, and the zone stays.

    Another kind of target than `old_kind` replaces the whole target.
    """
    schedule = changes.get("schedule", {})
    timings = [kind for kind in _TIMINGS if kind in schedule]
    if changes.get("target", {}).get("kind", old_kind) != old_kind:
        changes = _with_whole_target(changes)
    if not timings:
        return changes
    removed = {kind: None for kind in _TIMINGS if kind not in timings}
    if "schedules" in timings:
        removed |= dict.fromkeys(_OF_ONE)
    removed |= {"anchor": None} if "every" not in timings else {"timezone": None}
    return changes | {"schedule": removed | schedule}


def _with_whole_target(changes: dict[str, Any]) -> dict[str, Any]:
    """Another kind of target replaces the fields that belong to the old kind alone."""
    target = changes["target"]
    kept = {
        "kind",
        "envelope",
        *({"url"} if target["kind"] == "http" else {"arn", "role_arn", "external_id", "schedule_arn"}),
    }
    of_targets = [field.name for field in fields() if field.path.startswith("target.")]
    removed = {name: None for name in of_targets if name not in kept}
    return changes | {"target": removed | target}


def read_json_file(path: str) -> dict[str, Any]:
    """A JSON object from a file, or from stdin. Raises typer.BadParameter."""
    try:
        value = json.loads(sys.stdin.read() if path == "-" else Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path} cannot be read: {unreadable(error)}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{path} holds no JSON object")
    return value


def read_job_file(path: str) -> dict[str, Any]:
    """A job from a file: a definition, or what `jobs show --json` printed. Raises typer.BadParameter."""
    from minute8.client.jobs import definition_to_create

    return definition_to_create(read_json_file(path))


def merged(definition: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The definition with the options over it: another timing or target replaces the old one whole."""
    result = dict(definition)
    for name, change in changes.items():
        before = definition.get(name)
        replaces = name == "payload" or (name == "target" and "kind" in change)
        replaces = replaces or (name == "schedule" and any(kind in change for kind in _TIMINGS))
        if isinstance(before, dict) and isinstance(change, dict) and not replaces:
            result[name] = {**before, **change}
        else:
            result[name] = change
    return result


def edited_in_editor(definition: dict[str, Any]) -> dict[str, Any]:
    """The definition as edited with $VISUAL or $EDITOR. Raises typer.BadParameter."""
    # Only an editor needs these modules.
    import shlex
    import subprocess
    import tempfile

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    if not editor and not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal for an editor: give options or --file, or set EDITOR")
    editor = editor or "vi"
    with tempfile.TemporaryDirectory(prefix="minute8-") as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps(definition, indent=2, ensure_ascii=False) + "\n", "utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(path)], check=True)
        except subprocess.CalledProcessError as error:
            raise typer.BadParameter(f"the editor {editor!r} ended with {error.returncode}") from None
        except OSError as error:
            raise typer.BadParameter(f"the editor {editor!r} did not start: {error.strerror}") from None
        return read_json_file(str(path))


def read_json(text: str, option: str) -> Any:
    """The JSON of an option, or of its @file. Raises typer.BadParameter."""
    try:
        return json.loads(Path(text[1:]).read_text("utf-8") if text.startswith("@") else text)
    except (OSError, ValueError) as error:
        quoted = f"; the text itself is {option} '{json.dumps(text)}'" if text[:1] not in '@{["' else ""
        raise typer.BadParameter(f"{option} is neither JSON nor @file: {unreadable(error)}{quoted}") from None
