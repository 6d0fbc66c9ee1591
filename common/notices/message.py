"""The messages of subscriptions: what they contain, as JSON. docs/subscriptions.md describes the format. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from common.notices.grouping import Report
from common.notices.state import FAILED, OVERDUE, Problem
from common.runs.outcome import TYPE_BYTES, cut
from common.timing.instants import rfc3339

if TYPE_CHECKING:
    from common.notices.subscription import Subscription

# How many jobs of each kind a message describes; it counts all.
MAX_JOBS: Final = 10
TEXT_BYTES: Final = 200
# How many job ids the summary names.
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class About:
    """What a message says of a job beside its problem: the last error, and who answers for the job."""

    execution_id: str = ""
    error_type: str = ""
    error: str = ""
    owner: str = ""
    runbook: str = ""

    def shown(self) -> dict[str, str]:
        """Without what is empty. A tenant wrote the texts, so they are cut: an item and a topic take so many bytes."""
        names = ("execution_id", "error_type", "error", "owner", "runbook")
        most = {"error_type": TYPE_BYTES, "error": TEXT_BYTES, "owner": TEXT_BYTES}
        return {
            name: cut(value, most[name]) if name in most else value
            for name in names
            if (value := getattr(self, name))
        }


def listed(reported: Report) -> list[Problem]:
    """The problems that the message describes."""
    return [
        *_first(reported.problems, FAILED),
        *_first(reported.problems, OVERDUE),
        *reported.recovered[:MAX_JOBS],
    ]


def body(
    subscription: Subscription, reported: Report, about: Mapping[str, About], message_id: str, now: float
) -> str:
    """The message as JSON; `about` has what is known by the problem's key."""
    failed = [one for one in reported.problems if one.kind == FAILED]
    overdue = [one for one in reported.problems if one.kind == OVERDUE]
    return _encoded(
        {
            **_head("minute8.notice", subscription, message_id, now),
            "text": summary(
                subscription.tenant, failed, overdue, reported.recovered, complete=reported.complete
            ),
            "complete": reported.complete,
            "failed": {
                "jobs": _jobs(failed),
                "runs": sum(one.runs for one in failed),
                "first": [_failed(one, about) for one in failed[:MAX_JOBS]],
            },
            "overdue": {
                "jobs": len(overdue),
                "first": [_overdue(one, about) for one in overdue[:MAX_JOBS]],
            },
            "recovered": {
                "jobs": _jobs(reported.recovered),
                "first": [_recovered(one, about) for one in reported.recovered[:MAX_JOBS]],
            },
        }
    )


def test_body(subscription: Subscription, message_id: str, now: float) -> str:
    """The message that a test sends."""
    text = f"Minute8: a test of the subscription {subscription.name} of {subscription.tenant}."
    return _encoded({**_head("minute8.test", subscription, message_id, now), "text": text})


def summary(
    tenant: str,
    failed: Sequence[Problem],
    overdue: Sequence[Problem],
    recovered: Sequence[Problem],
    *,
    complete: bool,
) -> str:
    """One line for a person, such as a chat shows it."""
    parts = [
        f"{_counted(part)} {word} ({_names(part)})"
        for part, word in ((failed, "failed"), (overdue, "overdue"), (recovered, "recovered"))
        if part
    ]
    more = "" if complete else "; more has happened than is counted here"
    return f"Minute8, {tenant}: {', '.join(parts)}{more}."


def _head(kind: str, subscription: Subscription, message_id: str, now: float) -> dict[str, Any]:
    return {
        "type": kind,
        "id": message_id,
        "timestamp": rfc3339(int(now)),
        "tenant": subscription.tenant,
        "subscription": subscription.name,
    }


def _first(problems: Sequence[Problem], kind: str) -> list[Problem]:
    return [one for one in problems if one.kind == kind][:MAX_JOBS]


def _jobs(problems: Sequence[Problem]) -> int:
    return len({one.job_id for one in problems})


def _counted(problems: Sequence[Problem]) -> str:
    jobs = _jobs(problems)
    return "1 job" if jobs == 1 else f"{jobs} jobs"


def _names(problems: Sequence[Problem]) -> str:
    names = list(dict.fromkeys(one.job_id for one in problems))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _failed(one: Problem, about: Mapping[str, About]) -> dict[str, Any]:
    return {
        "job_id": one.job_id,
        "runs": one.runs,
        "first_at": rfc3339(int(one.first_at)),
        "last_at": rfc3339(int(one.last_at)),
        **about.get(one.key, About()).shown(),
    }


def _overdue(one: Problem, about: Mapping[str, About]) -> dict[str, Any]:
    return {
        "job_id": one.job_id,
        "due_at": rfc3339(int(one.first_at)),
        **about.get(one.key, About()).shown(),
    }


def _recovered(one: Problem, about: Mapping[str, About]) -> dict[str, Any]:
    return {
        "job_id": one.job_id,
        "was": one.kind,
        "since_at": rfc3339(int(one.first_at)),
        "noticed_at": rfc3339(int(one.recovered_at or 0)),
        **about.get(one.key, About()).shown(),
    }


def _encoded(message: Mapping[str, Any]) -> str:
    # ASCII: SNS refuses some characters that JSON may contain.
    return json.dumps(message, separators=(",", ":"))
