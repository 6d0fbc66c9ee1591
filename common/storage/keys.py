"""Every key of every table, each as a row. A tenant's keys begin with the tenant."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypedDict

from common.timing.instants import compact_time

# The number of partitions for the directory and the pending entries. One takes 1,000 write units a second.
SPREAD: Final = 8
# The log of executions is divided by tenant, so that a look at one tenant reads a sixteenth of it.
LOG_BUCKETS: Final = 16
SHARES, WINDOWS = "SHARES", "WINDOWS"
PROJECTION = "PROJECTION##"

# Sorts before every job id and every run's name (the first one) and after them (the last one).
FIRST, LAST = "-", "~"


class Key(TypedDict):
    """The primary key of an item in any table."""

    pk: str
    sk: str


class Index(NamedTuple):
    """A secondary index and the attributes of its key; the second is a number."""

    name: str
    pk: str
    sk: str


# The failed runs of each tenant by the time of the failure. A sparse index of the runs table.
FAILURES: Final = Index("failures", "failed_tenant", "failed_at")


class Row:
    """The key of a kind of items in `table`, which has `item`.

    A call fills in what stands in braces, in the order in which it first appears. A name with a question mark may be
    left out. `partition` returns the partition that such items are in; its arguments are those of pk.
    """

    partition: Callable[..., str]

    def __init__(self, table: str, pk: str, sk: str, item: str) -> None:
        self.table, self.pk, self.sk, self.item = table, pk, sk, item
        # Each name, and whether it may be left out.
        names = dict(_PLACE.findall(pk + sk))
        self._required, self._all = list(names.values()).count(""), len(names)
        numbers = {name: str(nth) for nth, name in enumerate(names)}

        def filled(text: str) -> Callable[..., str]:
            return _PLACE.sub(lambda place: "{" + numbers[place[1]], text).format

        self.partition, self._sort_key = filled(pk), filled(sk)

    def __call__(self, *parts: object) -> Key:
        """The key. Raises TypeError for too many or too few parts."""
        if len(parts) != self._all:
            if not self._required <= len(parts) < self._all:
                raise TypeError(f"a key of {self.item!r} has {self._all} parts: {parts}")
            parts += ("",) * (self._all - len(parts))
        return {"pk": self.partition(*parts), "sk": self._sort_key(*parts)}


_PLACE: Final = re.compile(r"\{(\w+)(\??)")


def key_of(item: Mapping[str, Any]) -> Key:
    """The key of an item."""
    return {"pk": item["pk"], "sk": item["sk"]}


JOB_PREFIX, CALENDAR_PREFIX, SUBSCRIPTION_PREFIX = "JOB#", "CALENDAR#", "SUBSCRIPTION#"
FORMER_PREFIX, STREAK_PREFIX, LATE_PREFIX = "FORMER#", "STREAK#", "LATE#"
KEY_REFERENCE_PREFIX, SECRET_PREFIX, MUTED_PREFIX = "KEYREF#", "SECRET#", "MUTED#"
BACKFILL_PREFIX: Final = "BACKFILL#"
ASKED_PREFIX: Final = "ASKED#"
BLOCKS: Key = {"pk": "BLOCKS#", "sk": "BLOCKS"}
QUARANTINE, UNRECORDED, CONTRADICTIONS = "QUARANTINE", "UNRECORDED", "CONTRADICTIONS"
TENANT_CHANGES, DELETIONS, GROUP_DELETIONS = "TENANT_CHANGES#", "DELETIONS#", "GROUP_DELETIONS#"
AUDIT_PREFIX, SCHEDULE_GROUP_PREFIX = "AUDIT#", "SCHEDULE_GROUP#"
# In place of a tenant, whose id contains no #: those that have subscriptions; the owner of the platform's own keys.
SUBSCRIBERS, OPERATORS, TENANTS = "SUBSCRIBERS#", "OPERATORS#", "TENANTS#"
STOPPED = "STOPPED#"
PROGRESS, REMOVAL, REPORTED = (Key(pk=name, sk=name) for name in ("PROGRESS", "REMOVAL", "REPORTED"))
# In the runs table: up to where the projection had followed the log when the table was as it is.
FOLLOWED: Key = {"pk": "FOLLOWED##", "sk": "UNTIL"}
CHORES: Final = "CHORES"
# The sort key of the permit of a job's overlap; the partition of all keys with a line.
PERMIT, LINES = "PERMIT", "LINES##"

former_job = Row("jobs", "{tenant}", FORMER_PREFIX + "{job_id}", "a deleted job: its revision and schedule")
calendar = Row("jobs", "{tenant}", CALENDAR_PREFIX + "{name}", "dates that jobs name to exclude them")
job_directory = Row("jobs", "{tenant}", "LISTED#{chunk?}", "what lists of jobs search and sort by; the head")
failure_streak = Row("jobs", "{tenant}", STREAK_PREFIX + "{job_id}", "how often in a row the job failed")
muted_group = Row(
    "jobs", "{tenant}", MUTED_PREFIX + "{job_id}#{fingerprint}", "a group of failures that is muted"
)
job_text = Row("jobs", "{tenant}#{job_id}#text", "{sha256}", "a large payload of a job")
schedule_group = Row(
    "jobs", "{tenant}", SCHEDULE_GROUP_PREFIX + "{name}", "a group of schedules, and its tags"
)
# Partitions of their own, in which no job lies: their writers may write nothing else (deploy/roles.yml).
exported_day = Row("jobs", "{tenant}##exports", "{date}", "what of a day's runs is exported")
backfill = Row("jobs", "{tenant}", BACKFILL_PREFIX + "{job_id}#{backfill_id}", "how far a backfill is")
asked_by_hand = Row("jobs", "{tenant}", ASKED_PREFIX + "{job_id}#{nonce}", "when a run was asked for by hand")
idempotency_key = Row("jobs", "{tenant}", "ONCE#{sha256}", "what a request created, for a day")
newest_event = Row("jobs", "{tenant}", "EVENT#{job_id}", "the newest event that changed the job")
subscription = Row(
    "jobs", "{tenant}##notices", SUBSCRIPTION_PREFIX + "{name}", "an address and what it is still to hear"
)
address_off = Row("jobs", "{tenant}##notices", STREAK_PREFIX + "#{name}", "that an address is switched off")
subscriber = Row("jobs", SUBSCRIBERS, "{tenant}", "a tenant that has subscriptions")
additions = Row("jobs, tenants", "{tenant}", "ADDITIONS#{kind}", "a mark that each new item changes")
stopped_tenant = Row("jobs", STOPPED, "{tenant}", "a tenant with jobs that do not run")

due_entry = Row("due", "GROUP#{group}#{shard}", "{tenant}#{job_id}", "what the tick needs of a job")
listing = Row(
    "due", "LISTED#{place}", "{group}#{shard}", "a shard that can fire at a place (common/timing/slots.py)"
)
chore = Row("due", CHORES, "{name}", "where a chore goes on; with a # before it, whether a round is over")
share = Row("due", SHARES, "{window_end}#{number:03}", "what a planner has still to hand over")
planned_window = Row("due", WINDOWS, "{end:010d}", "how the planning of a window went")
set_aside = Row("due", QUARANTINE, "{kind}#{name}", "what could not be planned, and why")
unrecorded = Row("due", UNRECORDED, "{execution_id}", "an execution that has no record")

overlap_permit = Row("runs", "{tenant}#{job_id}#permit", PERMIT, "the run that goes, and who waits")
key_permits = Row("runs", "{tenant}##permits", "{concurrency_key}", "the attempts that go, and who waits")
throttled = Row("runs", "{tenant}#{job_id}#permit", "THROTTLED", "when a throttled target is tried again")
waiting_line = Row("runs", LINES, "{partition}|{sort_key}", "a key that runs wait for in line")
# No job has an empty id, so no run is in these partitions.
projected_window = Row("runs", "{tenant}##windows", "{start:010d}", "the projection: runs of ten minutes")
projected_chunk = Row("runs", "{tenant}##chunks", "{start:010d}#{name}", "a part of a large window's runs")
projected_day = Row("runs", "{tenant}##days", "{date}", "the totals of a day by hour")
projected_late = Row(
    "runs", "{tenant}##days", LATE_PREFIX + "{at:010d}#{name}", "runs that a window got later"
)
last_outcomes = Row("runs", "{tenant}##days", "OUTCOMES#{chunk?}", "the last outcomes of jobs; the head")
projected_tenants = Row("runs", PROJECTION, "{start:010d}#{bucket:02d}", "a window's totals of tenants")
# These sort after all windows.
projected_tenants_hour = Row("runs", PROJECTION, "H{start:010d}#{bucket:02d}", "an hour's totals of tenants")

tenant = Row("tenants", "{tenant}", "TENANT", "the tenant")
tenant_listing = Row("tenants", TENANTS, "{tenant}", "the list of all tenants")
webhook_secret = Row("tenants", "{tenant}", "WEBHOOK", "the tenant's webhook secret")
secret = Row("tenants", "{tenant}", SECRET_PREFIX + "{name}", "a secret that jobs may name, encrypted")
deletion = Row("tenants", DELETIONS, "{tenant}", "how far the removal of a tenant is")
group_deletion = Row("tenants", GROUP_DELETIONS, "{tenant}#{name}", "a group whose schedules are deleted")
api_key = Row("tenants", "KEY#{sha256}", "KEY", "whose key it is")
api_key_reference = Row(
    "tenants", "{tenant}", KEY_REFERENCE_PREFIX + "{key_id}", "the list of its keys, or OPERATORS'"
)
request_rate = Row("tenants", "{tenant}", "RATE", "how much of its requests is used")
audit = Row(
    "audit", "{tenant}", AUDIT_PREFIX + "{entry_id}", "one change: who, what, when; also of OPERATORS"
)
seal = Row("audit", "SEALS#{tenant}", "{number:09d}", "the hashes of the entries since the last")

texts_of_job, listings, shard_partition = job_text.partition, listing.partition, due_entry.partition
projected_windows, projected_chunks = projected_window.partition, projected_chunk.partition
projected_days, seals = projected_day.partition, seal.partition
exports, notices = exported_day.partition, subscription.partition


def line(key: Key) -> Key:
    """The entry of a key of overlap or concurrency in the list of those with a line."""
    return waiting_line(key["pk"], key["sk"])


def job(tenant: str, job_id: str) -> Key:
    """The definition, in the jobs table."""
    return {"pk": tenant, "sk": f"{JOB_PREFIX}{job_id}"}


def run(tenant: str, job_id: str, run_name: str) -> Key:
    """The record of an execution, in the runs table.

    `run_name` is the part of the execution id after tenant and job; it sorts by fire time.
    """
    return {"pk": runs_of_job(tenant, job_id), "sk": run_name}


def runs_of_job(tenant: str, job_id: str) -> str:
    return f"{tenant}#{job_id}"


def jobs_between(prefix: str, after_job_id: str, last_job_id: str) -> tuple[str, str]:
    """The sort keys from one job id to another, both included; empty: from the first, or to the last."""
    return f"{prefix}{after_job_id}", f"{prefix}{last_job_id or LAST}"


def share_prefix(end: int) -> str:
    return f"{end}#"


def end_of_share(share_sk: str) -> int:
    """The end of the window of a share: a part of its sk."""
    return int(share_sk.partition("#")[0])


def begins_between(first: object, last: object) -> tuple[str, str]:
    """The sort keys whose text before their first # is in [first, last]; epoch seconds of ten digits sort."""
    return f"{first}#", f"{last}$"


def kind_and_name(set_aside_sk: str) -> tuple[str, str]:
    """The inverse of `set_aside`'s sk."""
    kind, _, name = set_aside_sk.partition("#")
    return kind, name


def tenant_and_job(entry_sk: str) -> tuple[str, str]:
    """The inverse of `due_entry`'s sk, and of the beginning of `pending`'s."""
    tenant, _, rest = entry_sk.partition("#")
    return tenant, rest.partition("#")[0]


def directory(group: str, shard: int) -> Key:
    return {"pk": directory_partition(group), "sk": f"{group}#{shard}"}


def directory_partition(group: str) -> str:
    """One-off groups have their own partitions and sort by window, so a tick reads only those of its window."""
    return f"{'ONE_OFF' if group.startswith('at|') else 'DIRECTORY'}#{_spread(group)}"


def one_off_range(start: int, end: int) -> tuple[str, str]:
    """The sort keys of the one-off groups whose window starts in [start, end]; ten-digit epoch seconds sort as text."""
    return begins_between(f"at|{start}", f"at|{end}")


def group_and_shard(directory_sk: str) -> tuple[str, int]:
    """The inverse of `directory`'s sk."""
    group, _, shard = directory_sk.rpartition("#")
    return group, int(shard)


def pending(tenant: str, job_id: str, revision: int) -> Key:
    """It has the revision, so that a later change of the job does not overwrite the pending entry of an earlier one."""
    return {"pk": f"PENDING#{_spread(tenant + job_id)}", "sk": f"{tenant}#{job_id}#{revision}"}


def postponed(visible_at: int, name: str) -> Key:
    """It has the time, so that one range holds all that is due before an instant. `name`: execution id and attempt."""
    return {"pk": f"POSTPONED#{_spread(name)}", "sk": f"{visible_at:010d}#{name}"}


def postponed_before(until: int) -> str:
    """The end of the range of sort keys that are due before `until`."""
    return f"{until:010d}"


def ended(tenant: str, job_id: str, run_name: str) -> Key:
    """It has the run, so that a note made while a tick looks at the job is not dropped with the note before."""
    return {"pk": f"ENDED#{_spread(tenant + job_id)}", "sk": f"{tenant}#{job_id}#{run_name}"}


def runs_between(from_at: int | None, until_at: int | None) -> tuple[str, str]:
    """The names of a job's runs with fire times in [from_at, until_at); None: no limit."""
    # A time without its last letter sorts before each name that begins with this time.
    first = compact_time(from_at)[:-1] if from_at is not None else FIRST
    return first, compact_time(until_at)[:-1] if until_at is not None else LAST


def backfills_of(job_id: str) -> str:
    """The beginning of the sort keys of a job's backfills."""
    return f"{BACKFILL_PREFIX}{job_id}#"


def tenant_change(at: float, tenant_id: str) -> Key:
    """It has the time, so that one range holds all changes since an instant."""
    return {"pk": TENANT_CHANGES, "sk": f"{_milliseconds(at)}#{tenant_id}"}


def tenant_changes_since(at: float) -> tuple[str, str]:
    """The sort keys of all changes from `at` on."""
    return _milliseconds(at), "~"


def changed_tenant(tenant_change_sk: str) -> str:
    """The inverse of `tenant_change`'s sk."""
    return tenant_change_sk.partition("#")[2]


def pace_carryover(pace: int, end: int, group: str = "", shard: int = 0) -> Key:
    """The places in later seconds that a share of the window up to `end` takes; group and shard are its first."""
    return {"pk": f"CARRIED#{pace}", "sk": f"{end}#{group}#{shard}"}


def shards_of_pace(group: str, pace: int) -> tuple[str, str]:
    """The directory's sort keys of a group's shards that belong to one pace, or to none (0)."""
    # The numbers of a pace's shards begin with `-`, which sorts before all digits; `:` follows them.
    digits = f"-{pace}" if pace else ""
    return f"{group}#{digits}0", f"{group}#{digits}:"


def log_bucket(tenant_id: str) -> int:
    """Which part of the log of executions has a tenant's."""
    return zlib.crc32(tenant_id.encode()) % LOG_BUCKETS


def log_partition(bucket: int) -> str:
    """The partition of a part of the log."""
    return f"LOG#{bucket}"


def logged(bucket: int, window_start: int, kind: str, name: str) -> Key:
    """The window's start comes first, so one range holds all windows before an instant; ten-digit seconds sort."""
    return {"pk": log_partition(bucket), "sk": f"{window_start:010d}#{kind}#{name}"}


def logged_place(logged_sk: str) -> tuple[int, str]:
    """The start of the window, and the kind: the inverse of `logged`'s sk."""
    window_text, _, rest = logged_sk.partition("#")
    return int(window_text), rest.partition("#")[0]


def logged_between(start: int, end: int) -> tuple[str, str]:
    """The sort keys of the windows that start in [start, end)."""
    return f"{start:010d}", f"{end:010d}"


def partitions(kind: str) -> list[str]:
    """The partitions that items of a kind are spread over: DIRECTORY, ONE_OFF, POSTPONED, PENDING, ENDED."""
    return [f"{kind}#{n}" for n in range(SPREAD)]


def _milliseconds(at: float) -> str:
    return f"{int(at * 1000):013d}"


def _spread(text: str) -> int:
    return zlib.crc32(text.encode()) % SPREAD
