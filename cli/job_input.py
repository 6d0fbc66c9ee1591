"""A job from files or an editor, and changes of one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import typer

from cli.output import unreadable

_TARGET_FIELDS = (
    *("arn", "url", "role_arn", "external_id", "invocation", "method", "headers", "subject"),
    *("message_group_id", "deduplication_id", "source", "detail_type"),
)
_TIMINGS = ("cron", "every", "at")


def as_patch(changes: dict[str, Any], old_kind: str) -> dict[str, Any]:
    """The merge patch for the given options: a new kind of timing replaces the old one, and the zone stays.

    Another kind of target than `old_kind` replaces the whole target.
    """
    schedule = changes.get("schedule", {})
    given = [kind for kind in _TIMINGS if kind in schedule]
    if changes.get("target", {}).get("kind", old_kind) != old_kind:
        changes = _with_whole_target(changes)
    if not given:
        return changes
    others = {kind: None for kind in _TIMINGS if kind not in given}
    others |= {"anchor": None} if "every" not in given else {"timezone": None}
    return changes | {"schedule": others | schedule}


def _with_whole_target(changes: dict[str, Any]) -> dict[str, Any]:
    """Another kind of target replaces the fields that belong to the old kind alone."""
    target = changes["target"]
    kept = {
        "kind",
        "envelope",
        *({"url"} if target["kind"] == "http" else {"arn", "role_arn", "external_id"}),
    }
    others = {name: None for name in _TARGET_FIELDS if name not in kept}
    return changes | {"target": others | target}


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
    from minute8_client.jobs import definition_to_create

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
    import subprocess  # these only where an editor is opened
    import tempfile

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    if not editor and not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal for an editor: give options or --file, or set EDITOR")
    editor = editor or "vi"
    with tempfile.TemporaryDirectory(prefix="minute8-") as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps(definition, indent=2, ensure_ascii=False) + "\n", "utf-8")
        try:
            import shlex  # only where an editor is opened

            subprocess.run([*shlex.split(editor), str(path)], check=True)
        except subprocess.CalledProcessError as error:
            raise typer.BadParameter(f"the editor {editor!r} ended with {error.returncode}") from None
        except OSError as error:
            raise typer.BadParameter(f"the editor {editor!r} did not start: {error.strerror}") from None
        return read_json_file(str(path))


def read_payload(text: str) -> Any:
    """The JSON of `--payload`, or of its @file. Raises typer.BadParameter."""
    try:
        return json.loads(Path(text[1:]).read_text("utf-8") if text.startswith("@") else text)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"--payload is neither JSON nor @file: {unreadable(error)}") from None
