"""Calls that do one thing to many jobs or runs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, cast

from minute8_client.shapes import ManyDone
from minute8_client.transport import Transport


class ManyCalls(Transport):
    """Each yields the answers of as many requests as are needed; with `dry_run` nothing changes.

    `wanted` for jobs: `state`, `tag`, `name_prefix`, `target`, or `all=True`.
    """

    def pause_jobs(self, *, note: str = "", **wanted: Any) -> Iterator[ManyDone]:
        return self._all("/v1/jobs/_all/pause", {"note": note, **wanted})

    def resume_jobs(self, **wanted: Any) -> Iterator[ManyDone]:
        return self._all("/v1/jobs/_all/resume", wanted)

    def run_jobs(self, *, nonce: str | None = None, **wanted: Any) -> Iterator[ManyDone]:
        """Run jobs now. The nonce makes it safe to repeat; one is made if none is given."""
        return self._all("/v1/jobs/_all/run", {"nonce": nonce or uuid.uuid4().hex, **wanted})

    def retry_runs(self, *, from_at: str, **wanted: Any) -> Iterator[ManyDone]:
        """Try again what failed since `from_at`; also `until_at`, `job_id`, `tag`, `error_type`, `fingerprint`."""
        return self._all("/v1/runs/_all/retry", {"from_at": from_at, **wanted})

    def cancel_runs(self, **wanted: Any) -> Iterator[ManyDone]:
        """Cancel runs that wait: `status`, `job_prefix`, `from_at`, `until_at`, `note`."""
        return self._all("/v1/runs/_all/cancel", wanted)

    def _all(self, path: str, wanted: dict[str, Any]) -> Iterator[ManyDone]:
        body = {name: value for name, value in wanted.items() if value is not None}
        while True:
            done = cast(ManyDone, self.call("POST", path, body))
            yield done
            if not (cursor := done["next_cursor"]):
                return
            body["cursor"] = cursor
