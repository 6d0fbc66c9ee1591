"""The platform's report of a day: what ran, failed, was late or skipped, what does not run or is stuck, what it costs.

It reads what is written down: totals by hour, notes of what does not run, and lists of what ticks have found. It walks
no table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import Minute8Error, aws_code
from common.jobs.not_running import StoppedOfTenant, stopped_tenants
from common.planning.due_index import DueIndex
from common.platform.dead_letters import QUEUES, REGISTRATIONS, DeadLetters
from common.projection.state import ProjectionStates
from common.projection.tenants import ProjectedTenants, TenantTotals, hour_of
from common.storage import keys
from common.storage.expressions import ABSENT, Attribute
from common.storage.table import Query, Table, Tables
from common.timing.instants import DAY_S, rfc3339
from common.timing.windows import WINDOW_S
from common.truth.contradiction import RUN_STUCK, FoundContradictions

# docs/performance.md, "Bill": beyond the idle stage, at thirty million a month; docs/idle-cost.md: 30.4 days, no runs.
DOLLARS_A_RUN: Final = 1.43 / 1e6
IDLE_DOLLARS_A_DAY: Final = 15.73 / 30.4
_TENANTS_NAMED: Final = 3
# Of a tenant, and of all.
_STOPPED_NAMED: Final = 5
_STOPPED_LINES: Final = 30
# More are not counted.
MAX_COUNTED: Final = 1_000
# planned_until is a window behind while a tick plans.
_PROGRESS_LATE_S: Final = WINDOW_S
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
_MAX_SUBJECT: Final = 99
HOUR_S: Final = 3_600
# The projection of the day's last runs takes half an hour. What fails is tried again until the hour is over.
SENT_AFTER_S: Final = 40 * 60


@dataclass(frozen=True, slots=True)
class DailyReport:
    """The runs that were due in [from_at, until_at), and what is wrong now. Counts by tenant are the largest first."""

    stage: str
    from_at: int
    until_at: int
    # Up to here runs are counted.
    fresh_at: int
    now: float
    totals: TenantTotals
    tenants: int
    failed: Mapping[str, int]
    skipped: Mapping[str, int]
    late: Mapping[str, int]
    planned_until: int
    contradictions: Mapping[str, int]
    without_record: int
    set_aside: int
    # By tenant; `all_stopped`: of all tenants.
    not_running: Mapping[str, StoppedOfTenant]
    all_stopped: bool
    # In the queues that could be counted; None: none could. Of the others, the error by queue.
    dead_letters: int | None
    not_counted: Mapping[str, str]
    dollars: float

    @property
    def stuck(self) -> int:
        """Runs that should have gone on."""
        return self.contradictions.get(RUN_STUCK, 0)

    @property
    def wrong(self) -> list[str]:
        """What somebody should look at, each in words with its page of the runbook."""
        signs = [
            (self.planned_until + _PROGRESS_LATE_S < self.now, "ticks are late: planning-lag"),
            (sum(self.contradictions.values()) > 0, "tables contradict each other: contradictions"),
            (self.without_record > 0, "executions have no record: no-record"),
            (self.set_aside > 0, "something is set aside: quarantine"),
            ((self.dead_letters or 0) > 0, "there are dead letters: dead-letters"),
            (bool(self.not_counted), "dead letters cannot be counted: dead-letters"),
            (self.fresh_at < self.until_at, "not all runs of the day are counted: tick-errors"),
        ]
        return [words for is_so, words in signs if is_so]

    @property
    def subject(self) -> str:
        """The subject of a message, of ASCII characters."""
        wrong = f", {len(self.wrong)} to look at" if self.wrong else ""
        return f"Minute8 {self.stage}: {_count(self.totals.runs)} runs, {_count(self.totals.failed)} failed{wrong}"[
            :_MAX_SUBJECT
        ]

    def text(self) -> str:
        """The report, in short lines."""
        late = f", the latest by {self.totals.max_lateness_s:.0f} s" if self.totals.late else ""
        contradictions = ", ".join(f"{name} {count}" for name, count in self.contradictions.items())
        dead_letters = [] if self.dead_letters is None else [_count(self.dead_letters)]
        dead_letters += [f"{queue} not counted ({error})" for queue, error in self.not_counted.items()]
        lines = [
            f"Minute8 {self.stage}",
            f"{_minute(self.from_at)} to {_minute(self.until_at)}",
            "",
            *([f"LOOK AT: {words}" for words in self.wrong] or ["Nothing to look at."]),
            "",
            f"Runs: {_count(self.totals.runs)} of {_count(self.tenants)} tenants",
            f"Failed: {_by_tenant(self.totals.failed, self.failed)}",
            f"Skipped: {_by_tenant(self.totals.skipped, self.skipped)}",
            f"Late by over 1 s: {_by_tenant(self.totals.late, self.late)}{late}",
            *self._not_running(),
            f"Stuck: {_count(self.stuck)}",
            f"Without a record: {_count(self.without_record)}",
            f"Set aside: {_count(self.set_aside)}",
            f"Dead letters: {', '.join(dead_letters)}",
            f"Contradictions: {contradictions or '0'}",
            f"Planned until: {_minute(self.planned_until)}",
            f"Cost: about ${self.dollars:.2f} by list prices",
        ]
        if self.fresh_at < self.until_at:
            lines.append(f"Runs are counted until {_minute(self.fresh_at)}.")
        # A damaged item's text, which has line ends, is one line as well.
        return "".join(" ".join(line.splitlines()) + "\n" for line in lines)

    def _not_running(self) -> list[str]:
        """How many jobs and addresses do not run, and the newest ones of each tenant by name."""
        counts = {tenant: len(stopped.notes) for tenant, stopped in self.not_running.items()}
        more = "" if self.all_stopped else " and more"
        named = [
            f"  {tenant} {note.subject}: {note.reason} since {_minute(int(note.since_at))}"
            for tenant in sorted(counts, key=lambda tenant: (-counts[tenant], tenant))
            for note in self.not_running[tenant].notes[:_STOPPED_NAMED]
        ][:_STOPPED_LINES]
        return [f"Not running: {_by_tenant(sum(counts.values()), _largest(counts))}{more}", *named]


def read_report(
    tables: Tables, stage: str, until_at: int, now: float, dead_letters: DeadLetters
) -> DailyReport:
    """The report of the 24 hours before `until_at`, the start of an hour."""
    from_at, state = until_at - DAY_S, ProjectionStates(tables.due).read()
    by_tenant: dict[str, TenantTotals] = {}
    fresh_at = from_at
    if state:
        fresh_at = max(from_at, min(until_at, *state.until.values()))
        by_tenant = (
            ProjectedTenants(tables.runs).between(hour_of(max(from_at, state.since)), until_at).tenants
        )
    totals, progress = TenantTotals.sum(by_tenant.values()), DueIndex(tables.due).progress()
    count, not_counted = _count_dead_letters(dead_letters)
    not_running, all_stopped = stopped_tenants(tables.jobs)
    return DailyReport(
        stage=stage,
        from_at=from_at,
        until_at=until_at,
        fresh_at=fresh_at,
        now=now,
        totals=totals,
        tenants=len(by_tenant),
        failed=_largest({tenant: each.failed for tenant, each in by_tenant.items()}),
        skipped=_largest({tenant: each.skipped for tenant, each in by_tenant.items()}),
        late=_largest({tenant: each.late for tenant, each in by_tenant.items()}),
        planned_until=progress.planned_until if progress else 0,
        contradictions=Counter(listed.name for listed in FoundContradictions(tables.due).all()),
        without_record=_listed(tables.due, keys.UNRECORDED),
        set_aside=_listed(tables.due, keys.QUARANTINE),
        not_running=not_running,
        all_stopped=all_stopped,
        dead_letters=count,
        not_counted=not_counted,
        dollars=IDLE_DOLLARS_A_DAY + totals.runs * DOLLARS_A_RUN,
    )


def _count_dead_letters(dead_letters: DeadLetters) -> tuple[int | None, dict[str, str]]:
    """About how many there are in the queues that can be counted, and of each other queue its error."""
    counts: list[int] = []
    not_counted: dict[str, str] = {}
    for queue in QUEUES:
        try:
            count = dead_letters.count(queue)
            if count is not None:
                counts.append(count)
            elif queue != REGISTRATIONS:
                not_counted[queue] = "no such queue"
        except (BotoCoreError, ClientError) as error:
            not_counted[queue] = aws_code(error)
    return sum(counts) if counts else None, not_counted


def _listed(due: Table, partition: str) -> int:
    query = Query(partition, limit=MAX_COUNTED, attributes=("sk",), consistent=False)
    return sum(1 for _ in due.query(query))


def _largest(counts: Mapping[str, int]) -> dict[str, int]:
    in_order = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return {tenant: count for tenant, count in in_order[:_TENANTS_NAMED] if count}


def _by_tenant(total: int, largest: Mapping[str, int]) -> str:
    names = [f"{tenant} {_count(count)}" for tenant, count in largest.items()]
    more = ["…"] if sum(largest.values()) < total else []
    return f"{_count(total)} ({', '.join(names + more)})" if names else _count(total)


def _count(number: int) -> str:
    return f"{number:,}"


def _minute(at: int) -> str:
    """2026-11-23 06:00Z."""
    return f"{rfc3339(at)[:16].replace('T', ' ')}Z"


@dataclass(frozen=True, slots=True)
class DailyReports:
    """Sends the report to a topic of SNS, once a day.

    `hour`: the report covers the day up to this hour, UTC. `sns` is SNS's client.
    """

    tables: Tables
    stage: str
    topic_arn: str
    hour: int
    sns: Any
    dead_letters: DeadLetters

    def send_if_due(self, now: float) -> bool:
        """Send the report if it is time and no other round has. Raises what SNS raises: the next minute tries again."""
        until_at = int(now) // DAY_S * DAY_S + self.hour * HOUR_S
        if until_at + SENT_AFTER_S > now:
            until_at -= DAY_S
        if not SENT_AFTER_S <= now - until_at < SENT_AFTER_S + HOUR_S or not self._take(until_at):
            return False
        try:
            report = read_report(self.tables, self.stage, until_at, now, self.dead_letters)
            self.sns.publish(TopicArn=self.topic_arn, Subject=report.subject, Message=report.text())
        except (BotoCoreError, ClientError, Minute8Error):
            self.tables.jobs.delete(keys.REPORTED)
            raise
        return True

    def _take(self, until_at: int) -> bool:
        item = {**keys.REPORTED, "until_at": until_at}
        return self.tables.jobs.put_if(item, ABSENT | (Attribute("until_at") < until_at))
