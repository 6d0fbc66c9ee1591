"""Dead letters for the platform's operator: how many, what they are about, send them again, discard them."""

from __future__ import annotations

from typing import Any, Final

from api.http.requests import Request
from api.http.routing import Query, Reply, Route
from api.services import Services
from common.errors import InvalidInput
from common.platform.dead_letters import MOST, Done, write_down
from common.platform.letter import QUEUES, Letter
from common.tenants.audit import AuditedCommit
from common.timing.instants import rfc3339

# How many executions of a pack are named.
_MAX_NAMED: Final = 10
_ID_CHARS: Final = 100


def counts(services: Services, request: Request) -> Reply:
    """GET /v1/dead-letters"""
    return Reply(
        {"queues": [{"queue": queue, "letters": services.dead_letters.count(queue)} for queue in QUEUES]}
    )


def look(services: Services, request: Request) -> Reply:
    """GET /v1/dead-letters/{queue}"""
    queue, limit = request.path["queue"], request.number("limit", MOST, MOST)
    found = services.dead_letters.look(queue, limit)
    return Reply({"queue": queue, "letters": [_view(one) for one in found.left], "more": found.more})


def redrive(services: Services, request: Request) -> Reply:
    """POST /v1/dead-letters/{queue}/redrive"""
    queue, only = request.path["queue"], _only(request)
    return _done(services, request, services.dead_letters.redrive(queue, MOST, only))


def discard(services: Services, request: Request) -> Reply:
    """POST /v1/dead-letters/{queue}/discard"""
    queue, only = request.path["queue"], _only(request)
    return _done(services, request, services.dead_letters.discard(queue, MOST, only))


def _only(request: Request) -> list[str] | None:
    """The wanted ids; None: all. Raises InvalidInput."""
    fields = request.fields("message_ids", "all")
    ids, every = fields.get("message_ids"), fields.get("all", False)
    if every is True and ids is None:
        return None
    accepted = f"1 to {MOST} ids, or `all`: true"
    if every or not isinstance(ids, list) or not 0 < len(ids) <= MOST:
        raise InvalidInput("message_ids", "must say which letters", value=ids, accepted=accepted)
    for one in ids:
        if not isinstance(one, str) or not 0 < len(one) <= _ID_CHARS:
            raise InvalidInput("message_ids", "has no such id", value=one, accepted="ids of the list")
    return ids


def _done(services: Services, request: Request, done: Done) -> Reply:
    queue, count = request.path["queue"], len(done.moved) + len(done.discarded)
    commit = AuditedCommit(services.audit, request.credential.by, services.clock)
    write_down(commit, queue, done, request.now)
    return Reply(
        {"queue": queue, "done": count, "left": [_view(one) for one in done.left], "more": done.more}
    )


def _view(letter: Letter) -> dict[str, Any]:
    return {
        "message_id": letter.message_id,
        "sent_at": rfc3339(letter.sent_at),
        "bytes": letter.size,
        "about": list(letter.about[:_MAX_NAMED]),
        "problem": letter.problem or None,
    }


ROUTES = (
    Route(
        "GET", "/v1/dead-letters", "count_dead_letters", counts, "operator",
        "How many messages were given up, by queue", "DeadLetterCounts",
    ),
    Route(
        "GET", "/v1/dead-letters/{queue}", "list_dead_letters", look, "operator",
        "What the given-up messages of a queue are about", "DeadLetterList",
        query=(
            Query("limit", "How many at most.", {"type": "integer", "minimum": 1, "maximum": MOST, "default": MOST}),
        ),
    ),
    Route(
        "POST", "/v1/dead-letters/{queue}/redrive", "redrive_dead_letters", redrive, "operator",
        "Send given-up messages to their queue again", "DeadLettersDone", takes="WhichLetters",
    ),
    Route(
        "POST", "/v1/dead-letters/{queue}/discard", "discard_dead_letters", discard, "operator",
        "Delete given-up messages", "DeadLettersDone", takes="WhichLetters",
    ),
)  # fmt: skip
