"""The result of reading a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


class NotHere(Exception):
    """Something in the source has no equivalent in Minute8; the text says what."""


# Fields that are read, with the fields inside them; None reads everything in the field.
Known = Mapping[str, "Known | None"]


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values from the command line for jobs that do not have their own."""

    target: dict[str, Any] | None = None
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """One job of a source, or why it cannot become one.

    `where` is its place in the source. `notes` say what means something else in Minute8. A `suspended` job is created
    paused; an existing job keeps its state.
    """

    where: str
    job_id: str = ""
    definition: dict[str, Any] = field(default_factory=dict)
    refusal: str = ""
    notes: tuple[str, ...] = ()
    suspended: bool = False
    # The schedule of EventBridge Scheduler that it is, for a bulk line (`eventbridge`).
    schedule: dict[str, Any] | None = None


def left_out(
    given: Mapping[str, Any], known: Known, why: Mapping[str, str], within: str = ""
) -> Iterator[str]:
    """A note for each field of the source that is not read; `why` has reasons for some."""
    for name, value in given.items():
        path = f"{within}{name}"
        inner = known.get(name)
        if value is None:
            continue
        if name not in known:
            yield f"{path} is left out" + (f": {why[path]}" if path in why else "")
        elif inner is not None and isinstance(value, Mapping):
            yield from left_out(value, inner, why, f"{path}.")
