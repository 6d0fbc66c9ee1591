"""Calls that do one thing to many jobs or runs."""

from __future__ import annotations

import uuid
from typing import Any

from minute8_client.operations import Listing, ListSteps, Request
from minute8_client.shapes import ManyDone


class ManyCalls:
    """Each yields the answers of as many requests as are needed; with `dry_run` nothing changes.

    `wanted` for jobs: `state`, `tag`, `name_prefix`, `target`, `error_type`, `fingerprint`, or `all=True`.
    """

    @Listing
    def pause_jobs(self, /, *, note: str = "", **wanted: Any) -> ListSteps[ManyDone]:
        return _all("/v1/jobs/_all/pause", {"note": note, **wanted})

    @Listing
    def resume_jobs(self, /, **wanted: Any) -> ListSteps[ManyDone]:
        return _all("/v1/jobs/_all/resume", wanted)

    @Listing
    def run_jobs(self, /, *, nonce: str | None = None, **wanted: Any) -> ListSteps[ManyDone]:
        """Run jobs now. The nonce makes it safe to repeat; one is made if none is given."""
        return _all("/v1/jobs/_all/run", {"nonce": nonce or uuid.uuid4().hex, **wanted})

    @Listing
    def retry_runs(self, /, *, from_at: str, **wanted: Any) -> ListSteps[ManyDone]:
        """Try again what failed since `from_at`; also `until_at`, `job_id`, `tag`, `error_type`, `fingerprint`."""
        return _all("/v1/runs/_all/retry", {"from_at": from_at, **wanted})

    @Listing
    def cancel_runs(self, /, **wanted: Any) -> ListSteps[ManyDone]:
        """Cancel runs that wait: `status`, `job_prefix`, `from_at`, `until_at`, `note`."""
        return _all("/v1/runs/_all/cancel", wanted)


def _all(path: str, wanted: dict[str, Any]) -> ListSteps[ManyDone]:
    body = {name: value for name, value in wanted.items() if value is not None}
    while True:
        done: ManyDone = yield Request("POST", path, body)
        yield [done]
        if not (cursor := done["next_cursor"]):
            return
        body["cursor"] = cursor
