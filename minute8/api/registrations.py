"""Registration by event: a rule of the platform's puts events into a queue, and each changes a job of one tenant.

A message is `{"tenant": "acme", "event": {…}}`: the rule's input transformer names the tenant, and `event` is what came
over the bus. What stands in the event chooses no tenant. An event becomes the request
that does the same over HTTP, of the tenant itself with the role `write`; an event on the stage's bus says what it did.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

from common import telemetry
from common.errors import Busy, InvalidInput
from common.events import Events
from common.ids import TENANT_ID_CHARS, check_id
from common.limits import JOB_ID_CHARS, NONCE_CHARS
from common.platform.api_keys import Credential
from common.storage import keys
from common.storage.expressions import ABSENT, Attribute, change
from common.storage.table import Table
from common.timing.durations import parse_instant
from common.timing.instants import DAY_S
from minute8.api.app import resolve_for
from minute8.api.services import Services

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageAttributeValueTypeDef

# EventBridge keeps no order and may deliver an event again. So the time of the newest event is stored with the job's
# id, before that event changes the job, and which events of that second are done. An older event changes nothing any
# more. A change depends on the job's revision from before this was read: if a newer event came between, it is tried
# again.
# EventBridge tries for a day, and the queue keeps an event for four.
REMEMBERED_S: Final = 8 * DAY_S
# Times of events are whole seconds. Of one second, so many done events of a job are known; older ones are done again.
REMEMBERED_EVENTS: Final = 20

Turn = Literal["now", "duplicate", "superseded"]


@dataclass(frozen=True, slots=True)
class EventOrder:
    """Which event of each job is the newest, in the jobs table."""

    jobs: Table

    def begin(self, tenant: str, job_id: str, event_id: str, at: int, now: float) -> Turn:
        """Whether this event of the instant `at` may change the job now. Raises Busy."""
        first_sight = change({"at": at, "done": [], "expires_at": math.ceil(now) + REMEMBERED_S})
        is_newest = ABSENT | (Attribute("at") < at)
        newest = self.jobs.update_or_read(keys.newest_event(tenant, job_id), first_sight, is_newest) or {}
        if newest.get("at", 0) > at:
            return "superseded"
        return "duplicate" if event_id in newest.get("done", ()) else "now"

    def end(self, tenant: str, job_id: str, event_id: str, at: int) -> None:
        """Note that the event is done. Raises Busy."""
        item = self.jobs.get(keys.newest_event(tenant, job_id))
        if item and item["at"] == at and event_id not in item["done"]:
            done = [*item["done"], event_id][-REMEMBERED_EVENTS:]
            self.jobs.update(keys.newest_event(tenant, job_id), change({"done": done}))


PUT, DELETE, RUN = "Minute8 Job Put", "Minute8 Job Delete", "Minute8 Run Now"
# The fields of each event's detail.
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    PUT: ("job_id", "job"),
    DELETE: ("job_id",),
    RUN: ("job_id", "payload"),
}
APPLIED, REFUSED = "Registration Applied", "Registration Refused"
_EVENT_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_JSON: Final = {"content-type": "application/json"}
# As often as other events of the same job may come between.
_ATTEMPTS_BESIDE_OTHERS: Final = 5
_REASON_CHARS: Final = 1_000
# An event that is newer than all later ones would end the registration of its job by events.
_AHEAD_S: Final = 300

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Registration:
    """One event for a tenant. `at` is the event's own time; its detail has the fields of its kind."""

    tenant: str
    event_id: str
    kind: str
    at: int
    job_id: str
    detail: Mapping[str, Any]

    @classmethod
    def read(cls, body: str, now: float) -> Registration:
        """The registration in a message. Raises InvalidInput."""
        message = _object("body", _json(body))
        tenant = check_id("tenant", message.get("tenant"), TENANT_ID_CHARS)
        event = _object("event", message.get("event"))
        event_id, kind, time = event.get("id"), event.get("detail-type"), event.get("time")
        if not isinstance(event_id, str) or not _EVENT_ID.fullmatch(event_id):
            raise InvalidInput("event.id", "must be an event's id", value=event_id)
        if not isinstance(kind, str) or kind not in FIELDS:
            raise InvalidInput("event.detail-type", "is not known", value=kind, accepted=", ".join(FIELDS))
        at = parse_instant(time, "event.time")
        if at > now + _AHEAD_S:
            raise InvalidInput("event.time", "is in the future", value=time, accepted="the event's own time")
        detail = _object("event.detail", event.get("detail"))
        if unknown := sorted(set(detail) - set(FIELDS[kind])):
            raise InvalidInput(
                f"event.detail.{unknown[0]}", "is not a known field", accepted=", ".join(FIELDS[kind])
            )
        job_id = check_id("event.detail.job_id", detail.get("job_id"), JOB_ID_CHARS)
        if kind == PUT:
            _object("event.detail.job", detail.get("job"))
        return cls(tenant, event_id, kind, at, job_id, detail)

    @property
    def credential(self) -> Credential:
        """The tenant's own, with the event as the author in the audit."""
        return Credential(self.tenant, "write", f"event:{self.event_id}")

    @property
    def nonce(self) -> str:
        """The same for each delivery of the event: the run is started once."""
        return hashlib.sha256(self.event_id.encode()).hexdigest()[:NONCE_CHARS]


class Refused(Exception):
    """A problem document: the event changes nothing, now or later."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.problem = problem
        super().__init__(problem["detail"])


@dataclass(frozen=True, slots=True)
class Registrations:
    """Applies events. What is refused goes to the queue `dead_url`, with the reason."""

    services: Services
    events: Events
    sqs: SQSClient
    dead_url: str

    def handle(self, records: list[dict[str, Any]]) -> dict[str, Any]:
        """Handle a batch of messages; returns those that are to come again."""
        failed: list[dict[str, str]] = []
        for record in records:
            # After many times it is a dead letter.
            with telemetry.tolerated("registration failed: it comes again"):
                self._handle_message(record["body"])
                continue
            failed.append({"itemIdentifier": record["messageId"]})
        return {"batchItemFailures": failed}

    def _handle_message(self, body: str) -> None:
        about: dict[str, Any] = {}
        try:
            registration = Registration.read(body, self.services.clock.now())
            about = {
                "tenant": registration.tenant,
                "event_id": registration.event_id,
                "job_id": registration.job_id,
                "event": registration.kind,
            }
            applied = self._applied(registration)
        except (Refused, InvalidInput) as refusal:
            problem = refusal.problem if isinstance(refusal, Refused) else {"detail": str(refusal)}
            reason: MessageAttributeValueTypeDef = {
                "DataType": "String",
                "StringValue": str(refusal)[:_REASON_CHARS] or "refused",
            }
            self.sqs.send_message(
                QueueUrl=self.dead_url, MessageBody=body, MessageAttributes={"reason": reason}
            )
            self.events.publish(REFUSED, {**about, "problem": problem})
        else:
            self.events.publish(APPLIED, {**about, **applied})

    def _applied(self, registration: Registration) -> dict[str, Any]:
        if registration.kind == RUN:
            return self._run(registration)
        order = EventOrder(self.services.store.jobs)
        key = (registration.tenant, registration.job_id, registration.event_id, registration.at)
        for _ in range(_ATTEMPTS_BESIDE_OTHERS):
            known = self._request(registration, "GET", "", ok=(HTTPStatus.OK, HTTPStatus.NOT_FOUND))
            if (turn := order.begin(*key, self.services.clock.now())) != "now":
                return {"result": turn}
            change = self._put if registration.kind == PUT else self._delete
            if applied := change(registration, known):
                order.end(*key)
                return applied
        raise Busy("other events change the job at the same time")

    def _put(self, registration: Registration, known: Answer) -> dict[str, Any] | None:
        condition = {"if-match": f'"{known["revision"]}"'} if "revision" in known else {"if-none-match": "*"}
        job = self._request(registration, "PUT", "", registration.detail["job"], condition)
        if job["status"] == HTTPStatus.PRECONDITION_FAILED:
            return None
        result = "created" if "revision" not in known else "unchanged"
        if job["revision"] != known.get("revision", job["revision"]):
            result = "changed"
        return {"result": result, "revision": job["revision"]}

    def _delete(self, registration: Registration, known: Answer) -> dict[str, Any] | None:
        if "revision" not in known:
            return {"result": "absent"}
        condition = {"if-match": f'"{known["revision"]}"'}
        ok = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_FOUND, HTTPStatus.PRECONDITION_FAILED)
        answer = self._request(registration, "DELETE", "", None, condition, ok)
        return None if answer["status"] == HTTPStatus.PRECONDITION_FAILED else {"result": "deleted"}

    def _run(self, registration: Registration) -> dict[str, Any]:
        body = {"nonce": registration.nonce}
        if "payload" in registration.detail:
            body["payload"] = registration.detail["payload"]
        run = self._request(registration, "POST", "/run", body)
        return {"result": "run", "execution_id": run["execution_id"]}

    def _request(
        self,
        registration: Registration,
        method: str,
        under: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        ok: tuple[HTTPStatus, ...] = (HTTPStatus.PRECONDITION_FAILED,),
    ) -> dict[str, Any]:
        """The route's answer to the tenant's request. Raises Refused; Busy if a later try may succeed."""
        answer = resolve_for(
            self.services,
            registration.credential,
            {
                "rawPath": f"/v1/jobs/{registration.job_id}{under}",
                "headers": {**_JSON, **(headers or {})},
                "requestContext": {"http": {"method": method}, "requestId": registration.event_id},
                "body": None if body is None else json.dumps(body),
            },
        )
        content: dict[str, Any] = json.loads(answer["body"] or "{}")
        status = answer["statusCode"]
        if status < HTTPStatus.BAD_REQUEST:
            return {**content, "status": status}
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise Busy(str(content["detail"]))
        if status not in ok:
            raise Refused(content)
        return {"status": status}


def _json(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidInput("body", "is not JSON", value=body[:100]) from None


def _object(field: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(field, "must be an object", value=value, accepted="a JSON object")
    return value
