"""Write the boxes of the console's editor from the declaration of a job: `python -m scripts.console_fields`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from msgspec import NODEFAULT, Struct

from common.registration.definition import JobDefinition
from common.registration.fields import Field, fields

OUTPUT: Final = Path(__file__).resolve().parents[1] / "console" / "src" / "lib" / "fields.ts"
_HEAD: Final = """/**
 * The fields of a job that have boxes in the editor; those of its target are in definition.ts.
 *
 * Generated from the declaration of a job by `python -m scripts.console_fields`; a test holds that it is up to date.
 */

export interface FieldOfJob {
  path: string;
  kind: string;
  default?: string | number | boolean;
  words?: readonly string[];
}

export const FIELDS = {
"""
_TAIL: Final = "} as const satisfies Record<string, FieldOfJob>;\n"


def generated(definition: type[Struct] = JobDefinition) -> str:
    """The module's text."""
    of_job = [field for field in fields(definition) if not field.path.startswith("target.")]
    return _HEAD + "".join(f"  {_box(field)}: {_text(field)},\n" for field in of_job) + _TAIL


def _box(field: Field) -> str:
    """`cron` of `schedule.cron`, `pace_key` of `schedule.pace.key`."""
    path = field.path.removeprefix("schedule.").removeprefix("retry.").removeprefix("alert.")
    return path.replace(".", "_")


def _text(field: Field) -> str:
    value: dict[str, Any] = {"path": field.path, "kind": field.kind}
    if field.default not in (NODEFAULT, None, "", []):
        value["default"] = field.default
    if field.words and field.kind == "choice":
        value["words"] = field.words
    members = (f"{name}: {json.dumps(member, ensure_ascii=False)}" for name, member in value.items())
    return f"{{ {', '.join(members)} }}"


def main() -> None:
    """Write the module."""
    OUTPUT.write_text(generated())


if __name__ == "__main__":
    main()
