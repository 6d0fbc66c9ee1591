"""A tenant's subscription: an address, what it gets messages about, how they are grouped, and its state. Pure.

One item holds a subscription and its state. The API changes the first, the notifier the second (`store.py`). The state
is problems that wait, problems that were reported, and the message on its way: one text of JSON.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from msgspec import Struct

from common.storage import keys
from common.storage.stored import Stored

FAILURES: Final = "failures"
RECOVERIES: Final = "recoveries"
OVERDUE_JOBS: Final = "overdue"
NOT_RUNNING: Final = "not_running"
# Found by the thresholds in a job's `alert`; a problem of each kind has the same name.
TOO_LONG: Final = "too_long"
TOO_SHORT: Final = "too_short"
NO_SUCCESS: Final = "no_success"
ALERTS: Final = frozenset((TOO_LONG, TOO_SHORT, NO_SUCCESS))
KINDS: Final = (FAILURES, RECOVERIES, OVERDUE_JOBS, NOT_RUNNING, TOO_LONG, TOO_SHORT, NO_SUCCESS)
# A look at the jobs finds these.
SEARCHED: Final = ALERTS | {OVERDUE_JOBS}

# The notifier writes the other fields.
CLIENT_FIELDS: Final = ("target", "kinds", "job_id", "name_prefix", "tag", "delay_s", "group_s")
FAILED: Final = "failed"
OVERDUE: Final = "overdue"
# How most problems end. Others are paused, resumed, skipped or deleted.
RECOVERED: Final = "recovered"


class Problem(Struct, frozen=True, omit_defaults=True):
    """A job that fails, is overdue or does not run, or of which an alert has something to say.

    `last_at` is the end of the last failed run, or the due instant of an overdue one; of an alert, when its threshold
    was passed. `run_name` is the part of the execution id that names the run, or the beginning of that part. A run
    `by_hand` is not of the schedule: only its own retry ends the problem. The last run of an alert took `took_s`; the
    threshold is `limit_s`. Of a job that does not run, `reason` and `detail` say why; or of a subscription named
    `address`, which is switched off; or of so many `more` jobs together. `over_by` says how it ended. `is_share`: some
    of the job's runs are skipped.
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
    took_s: float | None = None
    limit_s: int | None = None
    reason: str = ""
    detail: str = ""
    address: str = ""
    more: int = 0
    over_by: str = ""
    is_share: bool = False

    @property
    def key(self) -> str:
        return f"{self.kind}#{self.job_id or self.reason + self.address}{'#by_hand' if self.by_hand else ''}"

    @property
    def ends(self) -> bool:
        """Whether it goes on until it recovers. A run that took too long or too little has happened once."""
        return self.kind not in (TOO_LONG, TOO_SHORT)

    @property
    def is_asked(self) -> bool:
        """Whether the job's runs say that it has ended. A note says that of a job that does not run."""
        return self.ends and self.kind != NOT_RUNNING


class Notice(Struct, frozen=True):
    """A message on its way. Each try sends the same id and body."""

    message_id: str
    body: str
    made_at: float
    tries: int = 0
    next_at: float = 0.0


class DeliveryResult(Struct, frozen=True):
    """The result of one try."""

    at: float
    ok: bool
    error: str = ""


class SubscriptionState(Struct, omit_defaults=True):
    """All that a subscription knows. Instants are epoch seconds.

    Failures before `looked_at` are known. The search among the jobs began at `searched_at`; an unfinished search
    continues after the job `searched_after`. What alerts say before `searched_since` is known, to each job. `complete`
    is false if more has happened than was read or kept.
    """

    looked_at: float
    searched_at: float = 0.0
    searched_after: str = ""
    searched_since: float | None = None
    waiting: dict[str, Problem] = {}
    reported: dict[str, Problem] = {}
    over: dict[str, Problem] = {}
    complete: bool = True
    quiet_until: float = 0.0
    message: Notice | None = None
    test: Notice | None = None
    last_sent: DeliveryResult | None = None
    last_test: DeliveryResult | None = None
    delivered_at: float | None = None
    failing_since: float | None = None
    disabled_at: float | None = None


class Subscription(Stored, frozen=True, omit_defaults=True):
    """What is reported to an address: `kinds` of events, of the jobs that the filter takes. Empty, it takes all."""

    texts: ClassVar = ("state",)

    tenant: str
    name: str
    target: dict[str, Any]
    kinds: tuple[str, ...]
    delay_s: int
    group_s: int
    state: SubscriptionState
    job_id: str = ""
    name_prefix: str = ""
    tag: str = ""
    created_at: int = 0
    updated_at: int = 0
    version: int = 0

    def client_fields(self) -> dict[str, Any]:
        """The subscription as the client wrote it, with defaults."""
        values = {name: getattr(self, name) for name in CLIENT_FIELDS}
        return {name: value for name, value in values.items() if value != ""} | {"kinds": list(self.kinds)}

    @property
    def needs_jobs(self) -> bool:
        """Whether the filter depends on more than a job's id."""
        return bool(self.name_prefix or self.tag)

    @property
    def is_filtered(self) -> bool:
        return bool(self.job_id) or self.needs_jobs

    def takes(self, job_id: str, job_name: str = "", tags: tuple[str, ...] = ()) -> bool:
        """Whether the filter takes a job."""
        return (
            self.job_id in ("", job_id)
            and (job_id.startswith(self.name_prefix) or job_name.startswith(self.name_prefix))
            and (not self.tag or self.tag in tags)
        )

    @property
    def key(self) -> keys.Key:
        return keys.subscription(self.tenant, self.name)
