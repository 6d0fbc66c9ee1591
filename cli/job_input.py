"""A job from command line options, files or an editor."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

_KINDS = {"sqs": "sqs", "sns": "sns", "events": "event_bus", "states": "step_functions"}
_TIMINGS = ("cron", "every", "at")


class JobOptions:
    """The options that `jobs create` and `jobs edit` share."""

    cron = Annotated[str | None, typer.Option(help="Five fields, or six with the seconds first.")]
    every = Annotated[str | None, typer.Option(help="An interval: 90m, PT90M.")]
    at = Annotated[str | None, typer.Option(help="One time: RFC 3339, or local with --timezone.")]
    timezone = Annotated[str | None, typer.Option("--timezone", "--tz", help="An IANA zone.")]
    target = Annotated[str | None, typer.Option(help="The ARN or URL to call.")]
    invocation = Annotated[str | None, typer.Option(help="RequestResponse (wait for it) or Event.")]
    payload = Annotated[str | None, typer.Option(help="JSON, or @file.json.")]
    name = Annotated[str | None, typer.Option(help="A name for people.")]
    tag = Annotated[list[str] | None, typer.Option(help="A tag; can be given several times.")]
    timeout_s = Annotated[int | None, typer.Option("--timeout", help="Seconds that a call may take.")]


def definition_of(
    *,
    cron: str | None,
    every: str | None,
    at: str | None,
    timezone: str | None,
    target: str | None,
    invocation: str | None,
    payload: str | None,
    name: str | None,
    tag: list[str] | None,
    timeout_s: int | None,
) -> dict[str, Any]:
    """The given parts of a job definition. The API validates them."""
    schedule = _given(cron=cron, every=every, at=at, timezone=timezone)
    call = (target_in(target) if target else {"kind": "lambda"} if invocation else {}) | _given(
        invocation=invocation
    )
    fields = _given(name=name, tags=tag or None, timeout_s=timeout_s)
    if payload is not None:
        fields["payload"] = read_payload(payload)
    return fields | ({"schedule": schedule} if schedule else {}) | ({"target": call} if call else {})


def target_in(text: str) -> dict[str, Any]:
    """The target of an ARN or a URL; the ARN's service gives its kind."""
    if text.startswith(("http://", "https://")):
        return {"kind": "http", "url": text}
    service = (*text.split(":"), "", "", "")[2]
    return {"kind": _KINDS.get(service, "lambda"), "arn": text}


def as_patch(changes: dict[str, Any]) -> dict[str, Any]:
    """The merge patch for the given options: a new kind of timing replaces the old one, and the zone stays."""
    schedule = changes.get("schedule", {})
    given = [kind for kind in _TIMINGS if kind in schedule]
    if not given:
        return changes
    others = {kind: None for kind in _TIMINGS if kind not in given}
    others |= {"anchor": None} if "every" not in given else {"timezone": None}
    return changes | {"schedule": others | schedule}


def read_json_file(path: str) -> dict[str, Any]:
    """A JSON object from a file, or from stdin. Raises typer.BadParameter."""
    try:
        value = json.loads(sys.stdin.read() if path == "-" else Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path} cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{path} holds no JSON object")
    return value


def edited_in_editor(definition: dict[str, Any]) -> dict[str, Any]:
    """The definition as edited with $VISUAL or $EDITOR. Raises typer.BadParameter."""
    import subprocess  # these only where an editor is opened
    import tempfile

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="minute8-") as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps(definition, indent=2, ensure_ascii=False) + "\n", "utf-8")
        try:
            import shlex  # only where an editor is opened

            subprocess.run([*shlex.split(editor), str(path)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise typer.BadParameter(f"the editor {editor!r} failed: {error}") from None
        return read_json_file(str(path))


def read_payload(text: str) -> Any:
    """The JSON of `--payload`, or of its @file. Raises typer.BadParameter."""
    try:
        return json.loads(Path(text[1:]).read_text("utf-8") if text.startswith("@") else text)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"--payload is neither JSON nor @file: {error}") from None


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
