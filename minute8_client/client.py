"""A small synchronous client."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Self, cast
from urllib.parse import quote

import httpx

from minute8_client.errors import Unreachable, problem_of
from minute8_client.shapes import Fires, Job, JobPage, Run, RunPage, Tenant

_TRIES: Final = 4
_FIRST_WAIT_S: Final = 0.2
_LONGEST_WAIT_S: Final = 10.0
_TIMEOUT: Final = httpx.Timeout(35.0, connect=5.0)

Json = Mapping[str, Any]


class Client:
    """The API as one tenant sees it.

    Calls that may be repeated are, when the API is throttling, failing or cannot be reached. Everything that the API
    refuses raises a `Minute8Problem`; no answer at all raises `Unreachable`.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"Authorization": f"Bearer {key}", "User-Agent": "minute8-client"},
            timeout=_TIMEOUT,
            transport=transport,
        )
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # Jobs

    def create_job(self, definition: Json, job_id: str | None = None) -> Job:
        """A new job, under an id of yours or a generated one. Raises AlreadyExists, InvalidInput."""
        body = {**definition, **({"job_id": job_id} if job_id else {})}
        return cast(Job, self._call("POST", "/v1/jobs", body, repeatable=False))

    def put_job(self, job_id: str, definition: Json, revision: int | None = None) -> Job:
        """Create the job or replace all of it; with `revision` only if that is still the current one."""
        return cast(Job, self._call("PUT", _job(job_id), definition, revision))

    def get_job(self, job_id: str) -> Job:
        return cast(Job, self._call("GET", _job(job_id)))

    def patch_job(self, job_id: str, changes: Json, revision: int | None = None) -> Job:
        """Change a part of a job (RFC 7396): None takes a field back to its default."""
        return cast(Job, self._call("PATCH", _job(job_id), changes, revision))

    def jobs_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        name_prefix: str | None = None,
        target: str | None = None,
    ) -> JobPage:
        query = {
            "limit": limit,
            "cursor": cursor,
            "state": state,
            "tag": tag,
            "name_prefix": name_prefix,
            "target": target,
        }
        return cast(JobPage, self._call("GET", "/v1/jobs", query=query))

    def jobs(self, **wanted: str | None) -> Iterator[Job]:
        """All jobs, page by page as they are consumed; `wanted` as for `jobs_page`."""
        cursor = None
        while True:
            page = self.jobs_page(limit=200, cursor=cursor, **wanted)
            yield from page["jobs"]
            if not (cursor := page["next_cursor"]):
                return

    def delete_job(self, job_id: str, revision: int | None = None) -> None:
        self._call("DELETE", _job(job_id), revision=revision)

    def pause_job(self, job_id: str, note: str = "", revision: int | None = None) -> Job:
        return cast(Job, self._call("POST", f"{_job(job_id)}/pause", {"note": note}, revision))

    def resume_job(self, job_id: str, revision: int | None = None) -> Job:
        return cast(Job, self._call("POST", f"{_job(job_id)}/resume", revision=revision))

    def preview_schedule(self, schedule: Json, count: int | None = None) -> dict[str, Any]:
        """When a schedule fires, in words, and what may surprise you about it."""
        body = {"schedule": schedule, **({"count": count} if count is not None else {})}
        return cast(dict[str, Any], self._call("POST", "/v1/schedules/preview", body))

    def next_fires(self, job_id: str, count: int | None = None) -> Fires:
        return cast(Fires, self._call("GET", f"{_job(job_id)}/next", query={"count": count}))

    # Runs

    def runs_page(
        self,
        job_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: str | None = None,
        trigger: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> RunPage:
        """A page of a job's runs, newest first, with fire times in [from_at, until_at) (RFC 3339)."""
        query = {
            "limit": limit,
            "cursor": cursor,
            "status": status,
            "trigger": trigger,
            "from_at": from_at,
            "until_at": until_at,
        }
        return cast(RunPage, self._call("GET", f"{_job(job_id)}/runs", query=query))

    def runs(self, job_id: str, **wanted: str | None) -> Iterator[Run]:
        """A job's runs, newest first, page by page as they are consumed; `wanted` as for `runs_page`."""
        return _all_runs(lambda cursor: self.runs_page(job_id, limit=100, cursor=cursor, **wanted))

    def failures_page(self, *, limit: int | None = None, cursor: str | None = None) -> RunPage:
        return cast(RunPage, self._call("GET", "/v1/failures", query={"limit": limit, "cursor": cursor}))

    def failures(self) -> Iterator[Run]:
        """The failed runs of all jobs, latest failure first."""
        return _all_runs(lambda cursor: self.failures_page(limit=100, cursor=cursor))

    def get_run(self, execution_id: str) -> Run:
        return cast(Run, self._call("GET", f"/v1/runs/{quote(execution_id, safe=':')}"))

    # The tenant

    # By hand

    def run_job(self, job_id: str, nonce: str | None = None) -> Run:
        """Run a job now; the same nonce in the same second starts it once."""
        body = {"nonce": nonce} if nonce else {}
        return cast("Run", self._call("POST", f"{_job(job_id)}/run", body, repeatable=nonce is not None))

    def retry_run(self, execution_id: str) -> Run:
        """Give a failed run one more attempt."""
        return cast(
            "Run", self._call("POST", f"/v1/runs/{quote(execution_id, safe='')}/retry", repeatable=False)
        )

    def cancel_run(self, execution_id: str, note: str = "") -> Run:
        """Stop an execution that has not started, or that waits for its next attempt."""
        path = f"/v1/runs/{quote(execution_id, safe='')}/cancel"
        return cast("Run", self._call("POST", path, {"note": note}, repeatable=False))

    def start_backfill(self, job_id: str, wanted: Json) -> dict[str, Any]:
        """Run the fire times of a past range, or with `dry_run` count them."""
        answer = self._call(
            "POST", f"{_job(job_id)}/backfills", wanted, repeatable=bool(wanted.get("dry_run"))
        )
        return cast("dict[str, Any]", answer)

    def backfill_progress(self, job_id: str, backfill_id: str) -> dict[str, Any]:
        path = f"{_job(job_id)}/backfills/{quote(backfill_id, safe='')}"
        return cast("dict[str, Any]", self._call("GET", path))

    # Calendars

    def put_calendar(self, name: str, calendar: Json) -> dict[str, Any]:
        """Create a calendar or replace the whole of it."""
        answer = self._call("PUT", f"/v1/calendars/{quote(name, safe='')}", calendar)
        return cast("dict[str, Any]", answer)

    def get_calendar(self, name: str) -> dict[str, Any]:
        return cast("dict[str, Any]", self._call("GET", f"/v1/calendars/{quote(name, safe='')}"))

    def delete_calendar(self, name: str) -> None:
        self._call("DELETE", f"/v1/calendars/{quote(name, safe='')}")

    def calendars(self) -> Iterator[dict[str, Any]]:
        """All calendars, read page by page."""
        cursor: str | None = None
        while True:
            page = self._call("GET", "/v1/calendars", query={"cursor": cursor})
            yield from page["calendars"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def webhook_secret(self) -> str:
        """What signs calls of HTTP targets; made when first asked for. Needs an admin key."""
        return str(self._call("GET", "/v1/webhook-secret")["secret"])

    def rotate_webhook_secret(self) -> str:
        """A new secret; the one before goes on signing for a day."""
        return str(self._call("POST", "/v1/webhook-secret/rotate", repeatable=False)["secret"])

    def tenant(self) -> Tenant:
        return cast(Tenant, self._call("GET", "/v1/tenant"))

    def _call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        revision: int | None = None,
        query: Mapping[str, Any] | None = None,
        *,
        repeatable: bool | None = None,
    ) -> Any:
        request = self._http.build_request(
            method,
            path,
            json=body,
            params={name: value for name, value in (query or {}).items() if value is not None},
            headers={"If-Match": f'"{revision}"'} if revision is not None else {},
        )
        if repeatable is None:
            # Repeated after an answer that was lost, a change of one revision would meet its own work.
            repeatable = revision is None
        response = self._send(request, repeatable)
        if response.is_success:
            return response.json() if response.content else None
        raise problem_of(response)

    def _send(self, request: httpx.Request, repeatable: bool) -> httpx.Response:
        for tries_left in reversed(range(_TRIES)):
            wait_s = _wait_s(_TRIES - 1 - tries_left)
            try:
                response = self._http.send(request)
            except httpx.TransportError as error:
                # Not connected: nothing was sent, and so nothing can happen twice.
                if not tries_left or not (repeatable or isinstance(error, httpx.ConnectError)):
                    raise Unreachable(
                        f"no answer from {request.url.copy_with(query=None)}: {error}"
                    ) from error
            else:
                busy = response.status_code == 429 or (response.status_code >= 500 and repeatable)
                if not busy or not tries_left:
                    return response
                wait_s = max(wait_s, _asked_to_wait_s(response))
            self._sleep(wait_s)
        raise AssertionError("unreachable: the last try returns or raises")


def _all_runs(page_at: Callable[[str | None], RunPage]) -> Iterator[Run]:
    cursor = None
    while True:
        page = page_at(cursor)
        yield from page["runs"]
        if not (cursor := page["next_cursor"]):
            return


def _job(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"


def _wait_s(attempt: int) -> float:
    longest = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**attempt)
    return random.uniform(longest / 2, longest)


def _asked_to_wait_s(response: httpx.Response) -> float:
    try:
        return min(_LONGEST_WAIT_S, float(response.headers.get("Retry-After", 0)))
    except ValueError:  # a date: our API sends seconds
        return 0.0
