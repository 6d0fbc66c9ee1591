"""The messages of subscriptions: what they contain, as JSON. docs/subscriptions.md describes the format. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from common.limits import TYPE_BYTES
from common.notices.grouping import Digest
from common.notices.subscription import (
    ALERTS,
    FAILED,
    NO_SUCCESS,
    NOT_RUNNING,
    OVERDUE,
    TOO_LONG,
    TOO_SHORT,
    Problem,
    Subscription,
)
from common.runs.outcome import cut
from common.timing.instants import rfc3339

# Of each kind. A message counts the others.
MAX_JOBS: Final = 10
# Of each kind that alerts find: the message and the item that keeps it have bounds.
MAX_ALERTS: Final = 4
TEXT_BYTES: Final = 200
_MAX_NAMED: Final = 3
# Of problems, by their keys: what `context_of` returns.
Contexts = Mapping[str, Mapping[str, str]]
# How the line for a person says each kind of problem.
_WORDS: Final = {
    FAILED: "failed",
    OVERDUE: "overdue",
    NOT_RUNNING: "not running",
    TOO_LONG: "took too long",
    TOO_SHORT: "took too little time",
    NO_SUCCESS: "without a success",
}


def context_of(execution_id: str, error_type: str, error: str, owner: str, runbook: str) -> dict[str, str]:
    """The last error of a job with a problem, and who answers for the job: the fields that are not empty.

    A tenant wrote the texts, so they are cut: items and topics have bounds.
    """
    fields = {
        "execution_id": execution_id,
        "error_type": cut(error_type, TYPE_BYTES),
        "error": cut(error, TEXT_BYTES),
        "owner": cut(owner, TEXT_BYTES),
        "runbook": runbook,
    }
    return {name: value for name, value in fields.items() if value}


def described(digest: Digest) -> list[Problem]:
    """The problems that the message describes."""
    of_kinds = (
        problem
        for kind in _WORDS
        for problem in _first(_of(digest, kind))[: MAX_ALERTS if kind in ALERTS else None]
    )
    return [*of_kinds, *_first(digest.recovered)]


def body(
    subscription: Subscription,
    digest: Digest,
    contexts: Contexts,
    message_id: str,
    now: float,
) -> str:
    """The message as JSON, with the `contexts` of problems by their keys."""
    kinds = (FAILED, OVERDUE, NO_SUCCESS, NOT_RUNNING)
    failed, overdue, no_success, stopped = (_of(digest, kind) for kind in kinds)
    return _encoded(
        {
            **_head("minute8.notice", subscription, message_id, now),
            "text": summary(subscription.tenant, digest),
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
            "not_running": {
                "jobs": _jobs(stopped),
                "first": [_stopped(problem, contexts) for problem in _first(stopped)],
            },
            **{kind: _timed(_of(digest, kind), contexts) for kind in (TOO_LONG, TOO_SHORT)},
            "no_success": {
                "jobs": len(no_success),
                "first": [_no_success(problem, contexts) for problem in no_success[:MAX_ALERTS]],
            },
            "recovered": {
                "jobs": _jobs(digest.recovered),
                "first": [_recovered(problem, contexts) for problem in _first(digest.recovered)],
            },
        }
    )


def test_body(subscription: Subscription, message_id: str, now: float) -> str:
    """The message that a test sends."""
    text = f"Minute8: a test of the subscription {subscription.name} of {subscription.tenant}."
    return _encoded({**_head("minute8.test", subscription, message_id, now), "text": text})


def summary(tenant: str, digest: Digest) -> str:
    """One line for a person, such as a chat shows it."""
    groups = [group for kind, word in _WORDS.items() for group in _groups(_of(digest, kind), word)]
    groups += [
        ([problem for problem in digest.recovered if problem.over_by == word], word)
        for word in dict.fromkeys(problem.over_by for problem in digest.recovered)
    ]
    parts = [f"{_counted(group)} {word} ({_names(group)})" for group, word in groups if group]
    more = "" if digest.complete else "; more has happened than is counted here"
    return f"Minute8, {tenant}: {', '.join(parts)}{more}."


def _groups(problems: Sequence[Problem], word: str) -> list[tuple[list[Problem], str]]:
    """What is not running is grouped by its reason."""
    reasons = dict.fromkeys(problem.reason for problem in problems)
    return [
        (
            [problem for problem in problems if problem.reason == reason],
            f"{word}: {reason}" if reason else word,
        )
        for reason in reasons
    ]


def _head(kind: str, subscription: Subscription, message_id: str, now: float) -> dict[str, Any]:
    return {
        "type": kind,
        "id": message_id,
        "timestamp": rfc3339(int(now)),
        "tenant": subscription.tenant,
        "subscription": subscription.name,
    }


def _of(digest: Digest, kind: str) -> list[Problem]:
    return [problem for problem in digest.problems if problem.kind == kind]


def _first(problems: Sequence[Problem]) -> list[Problem]:
    """Those that the message describes, each by its name."""
    return [problem for problem in problems if not problem.more][:MAX_JOBS]


def _jobs(problems: Sequence[Problem]) -> int:
    named = {_name(problem) for problem in problems if not problem.more}
    return len(named) + sum(problem.more for problem in problems)


def _counted(problems: Sequence[Problem]) -> str:
    jobs = _jobs(problems)
    singular, plural = ("address", "addresses") if problems[0].address else ("job", "jobs")
    return f"1 {singular}" if jobs == 1 else f"{jobs} {plural}"


def _name(problem: Problem) -> str:
    return problem.address or problem.job_id


def _names(problems: Sequence[Problem]) -> str:
    names = list(dict.fromkeys(_name(problem) for problem in problems if not problem.more))[:_MAX_NAMED]
    unnamed = _jobs(problems) - len(names)
    return ", ".join(names) + (f"{' and' if names else ''} {unnamed} more" if unnamed else "")


def _failed(problem: Problem, contexts: Contexts) -> dict[str, Any]:
    return {
        "job_id": problem.job_id,
        "runs": problem.runs,
        "first_at": rfc3339(int(problem.first_at)),
        "last_at": rfc3339(int(problem.last_at)),
        **contexts.get(problem.key, {}),
    }


def _overdue(problem: Problem, contexts: Contexts) -> dict[str, Any]:
    return {
        "job_id": problem.job_id,
        "due_at": rfc3339(int(problem.first_at)),
        **contexts.get(problem.key, {}),
    }


def _stopped(problem: Problem, contexts: Contexts) -> dict[str, Any]:
    return {
        **_subject(problem),
        "reason": problem.reason,
        "detail": cut(problem.detail, TEXT_BYTES),
        "since_at": rfc3339(int(problem.first_at)),
        **({} if problem.address else contexts.get(problem.key, {})),
    }


def _subject(problem: Problem) -> dict[str, Any]:
    return {"subscription": problem.address} if problem.address else {"job_id": problem.job_id}


def _timed(problems: Sequence[Problem], contexts: Contexts) -> dict[str, Any]:
    """Of runs that took too long or too little."""
    first = [
        {
            **_failed(problem, contexts),
            "took_s": round(problem.took_s or 0.0, 3),
            "limit_s": problem.limit_s,
        }
        for problem in problems[:MAX_ALERTS]
    ]
    return {"jobs": len(problems), "runs": sum(problem.runs for problem in problems), "first": first}


def _no_success(problem: Problem, contexts: Contexts) -> dict[str, Any]:
    limit_s = problem.limit_s or 0
    return {
        "job_id": problem.job_id,
        "since_at": rfc3339(int(problem.first_at - limit_s)),
        "limit_s": limit_s,
        **contexts.get(problem.key, {}),
    }


def _recovered(problem: Problem, contexts: Contexts) -> dict[str, Any]:
    return {
        **_subject(problem),
        "was": problem.kind,
        "over_by": problem.over_by,
        **({"reason": problem.reason} if problem.reason else {}),
        "since_at": rfc3339(int(problem.first_at)),
        "noticed_at": rfc3339(int(problem.recovered_at or 0)),
        **contexts.get(problem.key, {}),
    }


def _encoded(message: Mapping[str, Any]) -> str:
    # ASCII: SNS refuses some characters that JSON may contain.
    return json.dumps(message, separators=(",", ":"))
