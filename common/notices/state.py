"""What a subscription knows: problems that wait, problems that were reported, and the message on its way.

Stored as one text of JSON with the subscription. Old texts must stay readable (tests/golden).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, TypeVar

FAILED: Final = "failed"
OVERDUE: Final = "overdue"

Stored = TypeVar("Stored")


@dataclass(frozen=True, slots=True)
class Problem:
    """A job that fails or is overdue.

    `last_at` is the end of the last failed run, or the due instant without a run. `run_name` is that run's part of the
    execution id, or the beginning of it. `by_hand`: the run was not of the schedule, so only its own retry ends this.
    """

    kind: str
    job_id: str
    first_at: float
    last_at: float
    run_name: str
    runs: int = 1
    by_hand: bool = False
    reported_at: float | None = None
    recovered_at: float | None = None

    @property
    def key(self) -> str:
        return f"{self.kind}#{self.job_id}{'#by_hand' if self.by_hand else ''}"


@dataclass(frozen=True, slots=True)
class Message:
    """A message on its way. Each try sends the same id and body."""

    message_id: str
    body: str
    made_at: float
    tries: int = 0
    next_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of one try."""

    at: float
    ok: bool
    error: str = ""


@dataclass(slots=True)
class State:
    """All that a subscription knows. Instants are epoch seconds.

    Failures before `looked_at` are known. The search for overdue jobs began at `searched_at` and goes on after the job
    `searched_after`, if there is one. `complete` is false if more has happened than was read or kept.
    """

    looked_at: float
    searched_at: float = 0.0
    searched_after: str = ""
    waiting: dict[str, Problem] = field(default_factory=dict)
    reported: dict[str, Problem] = field(default_factory=dict)
    over: dict[str, Problem] = field(default_factory=dict)
    complete: bool = True
    quiet_until: float = 0.0
    message: Message | None = None
    test: Message | None = None
    last_sent: Sent | None = None
    last_test: Sent | None = None
    delivered_at: float | None = None
    failing_since: float | None = None
    disabled_at: float | None = None

    def to_text(self) -> str:
        """JSON; what has its default is left out."""
        shown = {
            "waiting": [_some(one) for one in self.waiting.values()],
            "reported": [_some(one) for one in self.reported.values()],
            "over": [_some(one) for one in self.over.values()],
            **{
                name: asdict(value)
                for name in ("message", "test", "last_sent", "last_test")
                if (value := getattr(self, name)) is not None
            },
        }
        plain = {
            one.name: value
            for one in fields(self)
            if one.name not in ("waiting", "reported", "over", "message", "test", "last_sent", "last_test")
            and (value := getattr(self, one.name)) is not None
        }
        return json.dumps({**plain, **shown}, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> State:
        """The inverse of `to_text`; fields of a later version are ignored."""
        given: dict[str, Any] = json.loads(text)
        for name in ("waiting", "reported", "over"):
            problems = (_read(Problem, one) for one in given.get(name, ()))
            given[name] = {problem.key: problem for problem in problems}
        for name, kind in _PARTS.items():
            if given.get(name) is not None:
                given[name] = _read(kind, given[name])
        return _read(cls, given)


_PARTS: Final[dict[str, type]] = {"message": Message, "test": Message, "last_sent": Sent, "last_test": Sent}


def _some(problem: Problem) -> dict[str, Any]:
    return {
        name: value for name, value in asdict(problem).items() if value is not None and value is not False
    }


def _read(kind: type[Stored], given: dict[str, Any]) -> Stored:
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in given.items() if name in known})
