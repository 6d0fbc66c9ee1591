"""A job from options, from a file or from an editor, and changes of one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from minute8.cli.options import OptionGroup, with_options
from minute8.cli.output import unreadable

Text = str | None
Number = int | None
Texts = list[str] | None

_SCHEDULE: Final[dict[str, Any]] = {
    "cron": Annotated[Text, typer.Option(help="Five fields, or six with the seconds first; in quotes.")],
    "every": Annotated[Text, typer.Option(help="An interval: 90m, PT90M.")],
    "at": Annotated[Text, typer.Option(help="One time: RFC 3339, or local with --timezone.")],
    "schedules": Annotated[Text, typer.Option(help="Several schedules: a JSON list, or @file.json.")],
    "timezone": Annotated[Text, typer.Option("--timezone", "--tz", help="An IANA zone.")],
    "dialect": Annotated[Text, typer.Option(help="How --cron is read: minute8 or eventbridge.")],
    "dst": Annotated[Text, typer.Option(help="The rule for clock changes: minute8 or eventbridge.")],
    "anchor": Annotated[Text, typer.Option(help="With --every: the time from which the intervals count.")],
    "start_at": Annotated[Text, typer.Option(help="Nothing fires before this time.")],
    "end_at": Annotated[Text, typer.Option(help="Nothing fires at this time or after it.")],
    "max_runs": Annotated[Number, typer.Option(help="The job ends after so many fire times.")],
    "include_calendars": Annotated[
        Texts,
        typer.Option(
            "--include-calendar", help="A calendar: the job fires only on dates of one of them; repeatable."
        ),
    ],
    "on_excluded": Annotated[
        Text,
        typer.Option(help="Instead of an excluded date: skip, or fire on the next or previous other date."),
    ],
    "spread_s": Annotated[
        Number, typer.Option("--spread", help="Delay all runs by the same 0 to this many seconds.")
    ],
    "jitter_s": Annotated[Number, typer.Option("--jitter", help="Delay each run by 0 to this many seconds.")],
}
_PACE: Final[dict[str, Any]] = {
    "per_second": Annotated[
        Number,
        typer.Option(
            help="At most this many executions a second, of all jobs with the same target or --pace-key."
        ),
    ],
    "tolerance_s": Annotated[
        Number, typer.Option("--tolerance", help="Seconds by which --per-second may delay a run.")
    ],
    "key": Annotated[Text, typer.Option("--pace-key", help="The jobs that share --per-second.")],
}
_EXCLUDE: Final[dict[str, Any]] = {
    "dates": Annotated[
        Texts, typer.Option("--exclude-date", help="A date on which the job does not fire; repeatable.")
    ],
    "weekdays": Annotated[
        Texts,
        typer.Option("--exclude-weekday", help="sat or such: no fire on that day of a week; repeatable."),
    ],
    "calendars": Annotated[
        Texts,
        typer.Option(
            "--exclude-calendar", help="A calendar on whose dates the job does not fire; repeatable."
        ),
    ],
}
_TARGET: Final[dict[str, Any]] = {
    "target": Annotated[Text, typer.Option(help="The ARN or URL to call.")],
    "invocation": Annotated[
        Text, typer.Option(help="For a function: RequestResponse (wait for the result) or Event.")
    ],
    "tenant_isolation": Annotated[
        bool | None,
        typer.Option(
            "--tenant-isolation/--no-tenant-isolation",
            help="For a function that isolates its tenants: each call names the job's tenant.",
        ),
    ],
    "durable": Annotated[
        bool | None,
        typer.Option("--durable/--no-durable", help="For a durable function: the run follows it to its end."),
    ],
    "envelope": Annotated[
        bool | None,
        typer.Option(
            "--envelope/--no-envelope", help="With --no-envelope the target gets the payload alone."
        ),
    ],
    "role_arn": Annotated[Text, typer.Option(help="A role to assume for the call.")],
    "external_id": Annotated[
        Text, typer.Option(help="The external id after its first part, minute8:<tenant>:")
    ],
    "schedule_arn": Annotated[Text, typer.Option(help="An EventBridge schedule that the job replaces.")],
    "method": Annotated[Text, typer.Option(help="For a URL: POST, PUT, PATCH, GET or DELETE.")],
    "headers": Annotated[Texts, typer.Option("--header", help='For a URL: "name: value"; repeatable.')],
    "subject": Annotated[Text, typer.Option(help="For a topic: the subject that e-mail subscribers see.")],
    "message_group_id": Annotated[Text, typer.Option(help="For a queue or topic: the message group.")],
    "deduplication_id": Annotated[
        Text, typer.Option(help="For a FIFO queue or topic: the deduplication id.")
    ],
    "source": Annotated[Text, typer.Option(help="For a bus: the event's source.")],
    "detail_type": Annotated[Text, typer.Option(help="For a bus: the event's detail type.")],
    "started": Annotated[
        Text, typer.Option(help="For an operation of AWS: where its answer names what it has started.")
    ],
    "stop": Annotated[
        Text, typer.Option(help="For an operation of AWS: what stops it, as JSON with arn and parameters.")
    ],
}
_RETRY: Final[dict[str, Any]] = {
    "max_attempts": Annotated[Number, typer.Option(help="The number of attempts of a run.")],
    "base_s": Annotated[Number, typer.Option("--retry-base", help="Seconds before the second attempt.")],
    "factor": Annotated[
        float | None, typer.Option("--retry-factor", help="The factor by which each wait grows.")
    ],
    "cap_s": Annotated[Number, typer.Option("--retry-cap", help="The longest wait in seconds.")],
    "max_age_s": Annotated[
        Number, typer.Option("--retry-max-age", help="No attempt starts later, in seconds.")
    ],
}
_ALERT: Final[dict[str, Any]] = {
    "longer_than_s": Annotated[
        Number, typer.Option("--longer-than", help="Subscribers hear of a run that takes more seconds.")
    ],
    "shorter_than_s": Annotated[
        Number,
        typer.Option("--shorter-than", help="Subscribers hear of a run that succeeds in fewer seconds."),
    ],
    "no_success_for_s": Annotated[
        Number,
        typer.Option("--no-success-for", help="Subscribers hear if no run succeeds for so many seconds."),
    ],
}
_CONCURRENCY_: Final = "concurrency_"
_CONCURRENCY: Final[dict[str, Any]] = {
    f"{_CONCURRENCY_}key": Annotated[
        Text, typer.Option("--concurrency-key", help="Jobs with the same key share --concurrency.")
    ],
    f"{_CONCURRENCY_}limit": Annotated[
        Number, typer.Option("--concurrency", help="A run begins if fewer of its --concurrency-key go.")
    ],
    "when_full": Annotated[Text, typer.Option(help="What a run does if as many go: wait or skip.")],
    "max_wait_s": Annotated[Number, typer.Option("--max-wait", help="Skip a run that has waited so long.")],
}
_JOB: Final[dict[str, Any]] = {
    "payload": Annotated[Text, typer.Option(help="JSON, or @file.json.")],
    "name": Annotated[Text, typer.Option(help="A name for people.")],
    "tags": Annotated[Texts, typer.Option("--tag", help="A tag; repeatable.")],
    "timeout_s": Annotated[Number, typer.Option("--timeout", help="Seconds that a call may take.")],
    "completion": Annotated[
        Text, typer.Option(help="What ends an attempt: the call's answer, or a callback of the target.")
    ],
    "callback_timeout_s": Annotated[
        Number, typer.Option("--callback-timeout", help="Seconds that a run waits for each callback.")
    ],
    "start_deadline_s": Annotated[
        Number, typer.Option("--start-deadline", help="Skip a run that is later than this many seconds.")
    ],
    "catch_up": Annotated[Text, typer.Option(help="Missed fire times that still run: none, latest or all.")],
    "overlap": Annotated[
        Text, typer.Option(help="While a run is going: allow, skip or queue_one further runs.")
    ],
    "pause_after_failures": Annotated[
        Number, typer.Option(help="Pause the job after this many failed runs in a row.")
    ],
    "on_crash": Annotated[Text, typer.Option(help="When the executor dies during a call: retry or fail.")],
    "after_completion": Annotated[
        Text, typer.Option(help="When its last run has ended: keep or delete the job.")
    ],
    "dead_letter": Annotated[Text, typer.Option(help="An SQS queue for runs that fail: its ARN.")],
    "owner": Annotated[Text, typer.Option(help="The person or team that answers for the job.")],
    "runbook": Annotated[Text, typer.Option(help="The URL of the instructions for a failure.")],
}
OPTIONS: Final[dict[str, Any]] = {
    **_SCHEDULE,
    **_PACE,
    **_EXCLUDE,
    **_TARGET,
    **_RETRY,
    **_ALERT,
    **_CONCURRENCY,
    **_JOB,
}
_TARGET_KINDS: Final = {
    "sqs": "sqs",
    "sns": "sns",
    "events": "event_bus",
    "states": "step_functions",
    "scheduler": "aws_operation",
}


def with_job_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field of a job, which it gets as the definition's parts `changes`."""
    options = {name: (kind, None) for name, kind in OPTIONS.items()}
    return with_options(command, changes=OptionGroup(options, definition_of))


def definition_of(**options: Any) -> dict[str, Any]:
    """The parts of a job definition that the options set. The API validates them."""
    values = {name: value for name, value in options.items() if value not in (None, [])}
    definition = _of(_JOB, values)
    if "payload" in definition:
        definition["payload"] = read_json(definition["payload"], "--payload")
    if "schedules" in values:
        values["schedules"] = read_json(values["schedules"], "--schedules")
    schedule = _without_empty(_of(_SCHEDULE, values), exclude=_of(_EXCLUDE, values), pace=_of(_PACE, values))
    parts = {"retry": _of(_RETRY, values), "alert": _of(_ALERT, values)}
    of_key = _of(_CONCURRENCY, values)
    parts["concurrency"] = {name.removeprefix(_CONCURRENCY_): value for name, value in of_key.items()}
    return _without_empty(definition, schedule=schedule, target=_target(values), **parts)


def _of(options: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in options if name in values}


def _without_empty(fields: dict[str, Any], **parts: dict[str, Any]) -> dict[str, Any]:
    return fields | {name: part for name, part in parts.items() if part}


def _target(values: dict[str, Any]) -> dict[str, Any]:
    options = _of(_TARGET, values)
    target = (target_in(options.pop("target")) if "target" in options else {}) | options
    if "headers" in target:
        target["headers"] = dict(_header(text) for text in target["headers"])
    if "stop" in target:
        target["stop"] = read_json(target["stop"], "--stop")
    return target


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


_TARGET_FIELDS = (
    *("arn", "url", "role_arn", "external_id", "invocation", "tenant_isolation", "durable"),
    *("method", "headers", "subject"),
    *("message_group_id", "deduplication_id", "source", "detail_type", "started", "stop"),
)
_TIMINGS = ("cron", "every", "at", "schedules")
# What goes into each of several schedules, and not beside them.
_OF_ONE = ("timezone", "dialect", "dst", "anchor", "exclude", "include_calendars", "on_excluded")


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
        *({"url"} if target["kind"] == "http" else {"arn", "role_arn", "external_id"}),
    }
    removed = {name: None for name in _TARGET_FIELDS if name not in kept}
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
