"""Write the boxes and presets of the console's editor: `python -m scripts.console_fields`.

The boxes come from the declaration of a job, the words of presets from those of all schedules.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from msgspec import NODEFAULT, Struct

from common.preview.words import cron_words
from common.registration.definition import JobDefinition
from common.timing.cron import compile_cron
from minute8.cli.job_fields import Field, fields

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
_TAIL: Final = """} as const satisfies Record<string, FieldOfJob>;

/** Expressions that people often start from, in words; H is a minute of the job's own. */
export const PRESETS: readonly [words: string, cron: string][] = [
"""
_PRESETS: Final = ("*/5 * * * *", "H * * * *", "0 9 * * *", "0 9 * * 1-5", "0 9 * * 1", "0 9 1 * *")


def generated(definition: type[Struct] = JobDefinition) -> str:
    """The module's text."""
    of_job = [field for field in fields(definition) if not field.path.startswith("target.")]
    boxes = "".join(f"  {_box(field)}: {_text(field)},\n" for field in of_job)
    return f"{_HEAD}{boxes}{_TAIL}{''.join(map(_preset, _PRESETS))}];\n"


def _preset(cron: str) -> str:
    words = cron_words(compile_cron(cron.replace("H", "0")))
    return f"  {json.dumps([words, cron])},\n"


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
