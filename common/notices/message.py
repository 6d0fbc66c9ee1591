"""The messages of subscriptions: what they contain, as JSON. docs/subscriptions.md describes the format. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from common.notices.grouping import Digest
from common.notices.subscription import FAILED, OVERDUE, Problem, Subscription
from common.runs.outcome import TYPE_BYTES, cut
from common.timing.instants import rfc3339

# Of each kind. A message counts the others.
MAX_JOBS: Final = 10
TEXT_BYTES: Final = 200
_MAX_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class JobContext:
    """The last error of a job with a problem, and who answers for the job."""

    execution_id: str = ""
    error_type: str = ""
    error: str = ""
    owner: str = ""
    runbook: str = ""

    def shown(self) -> dict[str, str]:
        """The fields that are not empty. A tenant wrote the texts, so they are cut: items and topics have bounds."""
        names = ("execution_id", "error_type", "error", "owner", "runbook")
        most = {"error_type": TYPE_BYTES, "error": TEXT_BYTES, "owner": TEXT_BYTES}
        return {
            name: cut(value, most[name]) if name in most else value
            for name in names
            if (value := getattr(self, name))
        }


def described(digest: Digest) -> list[Problem]:
    """The problems that the message describes."""
    return [
        *_first(digest.problems, FAILED),
        *_first(digest.problems, OVERDUE),
        *digest.recovered[:MAX_JOBS],
    ]


def body(
    subscription: Subscription,
    digest: Digest,
    contexts: Mapping[str, JobContext],
    message_id: str,
    now: float,
) -> str:
    """The message as JSON, with the `contexts` of problems by their keys."""
    failed = [problem for problem in digest.problems if problem.kind == FAILED]
    overdue = [problem for problem in digest.problems if problem.kind == OVERDUE]
    return _encoded(
        {
            **_head("minute8.notice", subscription, message_id, now),
            "text": summary(subscription.tenant, failed, overdue, digest.recovered, complete=digest.complete),
            "complete": digest.complete,
            "failed": {
                "jobs": _jobs(failed),
                "runs": sum(problem.runs for problem in failed),
                "first": [_failed(problem, contexts) for problem in failed[:MAX_JOBS]],
            },
            "overdue": {
                "jobs": len(overdue),
                "first": [_overdue(problem, contexts) for problem in overdue[:MAX_JOBS]],
            },
            "recovered": {
                "jobs": _jobs(digest.recovered),
                "first": [_recovered(problem, contexts) for problem in digest.recovered[:MAX_JOBS]],
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
    return [problem for problem in problems if problem.kind == kind][:MAX_JOBS]


def _jobs(problems: Sequence[Problem]) -> int:
    return len({problem.job_id for problem in problems})


def _counted(problems: Sequence[Problem]) -> str:
    jobs = _jobs(problems)
    return "1 job" if jobs == 1 else f"{jobs} jobs"


def _names(problems: Sequence[Problem]) -> str:
    names = list(dict.fromkeys(problem.job_id for problem in problems))
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


def _failed(problem: Problem, contexts: Mapping[str, JobContext]) -> dict[str, Any]:
    return {
        "job_id": problem.job_id,
        "runs": problem.runs,
        "first_at": rfc3339(int(problem.first_at)),
        "last_at": rfc3339(int(problem.last_at)),
        **contexts.get(problem.key, JobContext()).shown(),
    }


def _overdue(problem: Problem, contexts: Mapping[str, JobContext]) -> dict[str, Any]:
    return {
        "job_id": problem.job_id,
        "due_at": rfc3339(int(problem.first_at)),
        **contexts.get(problem.key, JobContext()).shown(),
    }


def _recovered(problem: Problem, contexts: Mapping[str, JobContext]) -> dict[str, Any]:
    return {
        "job_id": problem.job_id,
        "was": problem.kind,
        "since_at": rfc3339(int(problem.first_at)),
        "noticed_at": rfc3339(int(problem.recovered_at or 0)),
        **contexts.get(problem.key, JobContext()).shown(),
    }


def _encoded(message: Mapping[str, Any]) -> str:
    # ASCII: SNS refuses some characters that JSON may contain.
    return json.dumps(message, separators=(",", ":"))
