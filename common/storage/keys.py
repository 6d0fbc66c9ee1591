"""Every key of every table. A tenant's keys begin with the tenant.

| table   | pk                           | sk                              | item                                   |
| ------- | ---------------------------- | ------------------------------- | -------------------------------------- |
| jobs    | tenant                       | JOB#job_id                      | the definition                         |
| jobs    | tenant                       | CALENDAR#name                   | dates that jobs name to exclude them    |
| jobs    | tenant                       | LISTED#portion                  | what lists of jobs search and sort by  |
| jobs    | tenant                       | EXPORTED#day                    | what of a day's runs is exported       |
| jobs    | tenant                       | STREAK#job_id                   | how often in a row the job failed      |
| jobs    | tenant#job_id#text           | sha256 of the text              | a large payload of a job               |
| due     | GROUP#group#shard            | tenant#job_id                   | due entry: what the tick needs of a job |
| due     | DIRECTORY#0…7                | group#shard                     | how many entries that shard has        |
| due     | LISTED#place                 | group#shard                     | a shard that can fire at that time     |
| due     | ONE_OFF#0…7                  | group#shard                     | the same, for one-off jobs             |
| due     | PENDING#0…7                  | tenant#job_id#revision          | registered, its hand-over unconfirmed  |
| due     | POSTPONED#0…7                | second#execution id#attempt     | waits longer than SQS can delay it     |
| due     | ENDED#0…7                    | tenant#job_id#run               | its job may be deleted after it        |
| due     | MARK                         | MARK                            | up to where everything is planned      |
| due     | CHORES                       | name of the chore               | where its next round goes on           |
| due     | REMOVAL                      | REMOVAL                         | until when one process removes alone   |
| due     | SHARES                       | end of window#number            | what a planner has still to hand over  |
| due     | QUARANTINE                   | kind#name                       | what could not be planned, and why     |
| due     | WINDOWS                      | end of window                   | how the planning of a window went      |
| runs    | tenant#job_id                | fire time#schedule_revision#…   | the record of one execution            |
| runs    | tenant#job_id#lock           | LOCK                            | the run that goes, and who waits       |
| runs    | tenant##slots                | concurrency key                 | the attempts that go, and who waits    |
| jobs    | tenant                       | BACKFILL#job_id#backfill_id     | how far a backfill is                  |
| jobs    | tenant                       | ASKED#job_id#nonce              | when a run was asked for by hand       |
| tenants | tenant                       | TENANT                          | the tenant                             |
| tenants | tenant                       | WEBHOOK                         | the tenant's webhook secret            |
| tenants | tenant                       | SECRET#name                     | a secret that jobs may name, encrypted |
| audit   | tenant, or OPERATORS#        | AUDIT#milliseconds-chance       | one change: who, what, when            |
| audit   | SEALS#tenant                 | number                          | the hashes of the entries since the last |
| tenants | DELETIONS#                   | tenant                          | how far the removal of a tenant is     |
| tenants | TENANT_CHANGES#              | milliseconds#tenant             | a change of the tenant by the platform |
| tenants | HOLDS#                       | HOLDS                           | the targets that the platform holds    |
| jobs    | tenant                       | ONCE#sha256 of a client's key   | what a request created, for a day      |
| jobs    | tenant                       | FORMER#job_id                   | a deleted job: its revision and schedule |
| jobs    | tenant                       | SUBSCRIPTION#name               | an address and what it is still to hear |
| jobs    | tenant                       | ADDITIONS#kind                  | a mark that each new item changes      |
| jobs    | REPORTED                     | REPORTED                        | the day of the last daily report       |
| jobs    | SUBSCRIBERS#                 | tenant                          | the tenants that have subscriptions    |
| due     | CARRIED#pace                 | end of window#group#shard       | what a pace has taken of the time after |
| due     | PLANNED#0…15                 | start of window#hash            | executions that were enqueued for it   |
| due     | CHANGED#0…15                 | start of window#hash            | runs that changed beside the plan      |
| due     | AGAIN#0…15                   | tenant#when to look#hash        | runs that the projection reads again   |
| runs    | tenant##windows              | start of window                 | the projection: runs of ten minutes    |
| runs    | tenant##portions             | start of window#chance          | a part of the runs of a large window   |
| runs    | tenant##days                 | date                            | the totals of a day by hour            |
| runs    | tenant##days                 | LATE#when#chance; OUTCOMES#part | what windows got later; last outcomes  |
| runs    | PROJECTION##                 | start#bucket; H…                | totals of tenants                      |
| jobs    | tenant                       | MUTED#job_id#fingerprint        | a group of failures that is muted      |
| due     | UNRECORDED                   | execution id                    | one of them that has no record         |
| due     | CONTRADICTIONS               | name#kind#subject               | what of the tables contradicts itself  |
| tenants | TENANTS#                     | tenant                          | the list of all tenants                |
| tenants | tenant, or OPERATORS#        | KEYREF#key_id                   | the list of its keys                   |
| tenants | KEY#sha256 of the key        | KEY                             | whose key it is                        |
| tenants | tenant                       | ADDITIONS#keys                  | a mark that each new key changes       |
| tenants | tenant                       | RATE                            | how much of its requests is used       |
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypedDict

from common.timing.instants import compact_time

# The number of partitions for the directory and the pending entries. One takes 1,000 write units a second.
SPREAD: Final = 8
# The log of executions is divided by tenant, so that a look at one tenant reads a sixteenth of it.
LOG_BUCKETS: Final = 16
PLANNED, CHANGED, AGAIN, SHARES, WINDOWS = "PLANNED", "CHANGED", "AGAIN", "SHARES", "WINDOWS"
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


def key_of(item: Mapping[str, Any]) -> Key:
    """The key of an item."""
    return {"pk": item["pk"], "sk": item["sk"]}


JOB_PREFIX, CALENDAR_PREFIX, SUBSCRIPTION_PREFIX = "JOB#", "CALENDAR#", "SUBSCRIPTION#"
FORMER_PREFIX, STREAK_PREFIX, LATE_PREFIX = "FORMER#", "STREAK#", "LATE#"
KEY_REFERENCE_PREFIX, SECRET_PREFIX, MUTED_PREFIX = "KEYREF#", "SECRET#", "MUTED#"
HOLDS: Key = {"pk": "HOLDS#", "sk": "HOLDS"}
QUARANTINE, UNRECORDED, CONTRADICTIONS = "QUARANTINE", "UNRECORDED", "CONTRADICTIONS"
TENANT_CHANGES, DELETIONS, AUDIT_PREFIX = "TENANT_CHANGES#", "DELETIONS#", "AUDIT#"
# In place of a tenant, whose id contains no #: those that have subscriptions; the owner of the platform's own keys.
SUBSCRIBERS, OPERATORS, TENANTS = "SUBSCRIBERS#", "OPERATORS#", "TENANTS#"
MARK, REMOVAL, REPORTED = (Key(pk=name, sk=name) for name in ("MARK", "REMOVAL", "REPORTED"))
CHORES: Final = "CHORES"


def job(tenant: str, job_id: str) -> Key:
    return {"pk": tenant, "sk": f"{JOB_PREFIX}{job_id}"}


def calendar(tenant: str, name: str) -> Key:
    return {"pk": tenant, "sk": f"{CALENDAR_PREFIX}{name}"}


def former_job(tenant: str, job_id: str) -> Key:
    return {"pk": tenant, "sk": f"{FORMER_PREFIX}{job_id}"}


def failure_streak(tenant: str, job_id: str) -> Key:
    return {"pk": tenant, "sk": f"{STREAK_PREFIX}{job_id}"}


def muted_group(tenant: str, job_id: str, fingerprint: str) -> Key:
    return {"pk": tenant, "sk": f"{MUTED_PREFIX}{job_id}#{fingerprint}"}


def job_directory(tenant: str, portion: str = "") -> Key:
    """A portion of the directory of a tenant's jobs; by default its head."""
    return {"pk": tenant, "sk": f"LISTED#{portion}"}


def job_text(tenant: str, job_id: str, sha256: str) -> Key:
    return {"pk": texts_of_job(tenant, job_id), "sk": sha256}


def texts_of_job(tenant: str, job_id: str) -> str:
    return f"{tenant}#{job_id}#text"


def exported_day(tenant: str, date: str) -> Key:
    return {"pk": tenant, "sk": f"EXPORTED#{date}"}


def chore(name: str) -> Key:
    """Where a chore goes on; with a # before it, whether a function's round of chores is over."""
    return {"pk": CHORES, "sk": name}


def subscription(tenant: str, name: str) -> Key:
    return {"pk": tenant, "sk": f"{SUBSCRIPTION_PREFIX}{name}"}


def subscriber(tenant: str) -> Key:
    return {"pk": SUBSCRIBERS, "sk": tenant}


def additions(tenant: str, kind: str) -> Key:
    """The mark of a bounded kind of items, such as `calendars` (common/storage/table.py)."""
    return {"pk": tenant, "sk": f"ADDITIONS#{kind}"}


def idempotency_key(tenant: str, key_hash: str) -> Key:
    return {"pk": tenant, "sk": f"ONCE#{key_hash}"}


def newest_event(tenant: str, job_id: str) -> Key:
    return {"pk": tenant, "sk": f"EVENT#{job_id}"}


def jobs_between(prefix: str, after_job_id: str, last_job_id: str) -> tuple[str, str]:
    """The sort keys from one job id to another, both included; empty: from the first, or to the last."""
    return f"{prefix}{after_job_id}", f"{prefix}{last_job_id or LAST}"


def share(end: int, number: int) -> Key:
    """A share of the window that ends at `end`."""
    return {"pk": SHARES, "sk": f"{share_prefix(end)}{number:03}"}


def share_prefix(end: int) -> str:
    return f"{end}#"


def end_of_share(share_sk: str) -> int:
    """The end of the window of a share: a part of its sk."""
    return int(share_sk.partition("#")[0])


def planned_window(end: int) -> Key:
    return {"pk": WINDOWS, "sk": f"{end:010d}"}


def set_aside(kind: str, name: str) -> Key:
    return {"pk": QUARANTINE, "sk": f"{kind}#{name}"}


def begins_between(first: object, last: object) -> tuple[str, str]:
    """The sort keys whose text before their first # is in [first, last]; epoch seconds of ten digits sort."""
    return f"{first}#", f"{last}$"


def kind_and_name(set_aside_sk: str) -> tuple[str, str]:
    """The inverse of `set_aside`'s sk."""
    kind, _, name = set_aside_sk.partition("#")
    return kind, name


def due_entry(group: str, shard: int, tenant: str, job_id: str) -> Key:
    return {"pk": shard_partition(group, shard), "sk": f"{tenant}#{job_id}"}


def tenant_and_job(entry_sk: str) -> tuple[str, str]:
    """The inverse of `due_entry`'s sk, and of the beginning of `pending`'s."""
    tenant, _, rest = entry_sk.partition("#")
    return tenant, rest.partition("#")[0]


def shard_partition(group: str, shard: int) -> str:
    return f"GROUP#{group}#{shard}"


def directory(group: str, shard: int) -> Key:
    return {"pk": directory_partition(group), "sk": f"{group}#{shard}"}


def directory_partition(group: str) -> str:
    """One-off groups have their own partitions and sort by window, so a tick reads only those of its window."""
    return f"{'ONE_OFF' if group.startswith('at|') else 'DIRECTORY'}#{_spread(group)}"


def one_off_range(start: int, end: int) -> tuple[str, str]:
    """The sort keys of the one-off groups whose window starts in [start, end]; ten-digit epoch seconds sort as text."""
    return begins_between(f"at|{start}", f"at|{end}")


def listing(place: str, group: str, shard: int) -> Key:
    """Where a tick finds a shard that can be due; common/timing/slots.py has the places."""
    return {"pk": listings(place), "sk": f"{group}#{shard}"}


def listings(place: str) -> str:
    return f"LISTED#{place}"


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


def run(tenant: str, job_id: str, run_name: str) -> Key:
    """`run_name` is the part of the execution id after tenant and job; it sorts by fire time."""
    return {"pk": runs_of_job(tenant, job_id), "sk": run_name}


def runs_of_job(tenant: str, job_id: str) -> str:
    return f"{tenant}#{job_id}"


def runs_between(from_at: int | None, until_at: int | None) -> tuple[str, str]:
    """The names of a job's runs with fire times in [from_at, until_at); None: no limit."""
    # A name is longer than its time, so it sorts after the end's own text.
    first = compact_time(from_at) if from_at is not None else FIRST
    return first, compact_time(until_at) if until_at is not None else LAST


def overlap_lock(tenant: str, job_id: str) -> Key:
    return {"pk": f"{tenant}#{job_id}#lock", "sk": "LOCK"}


def slots(tenant: str, concurrency_key: str) -> Key:
    return {"pk": f"{tenant}##slots", "sk": concurrency_key}


def backfill(tenant: str, job_id: str, backfill_id: str) -> Key:
    return {"pk": tenant, "sk": f"{backfills_of(job_id)}{backfill_id}"}


def backfills_of(job_id: str) -> str:
    """The beginning of the sort keys of a job's backfills."""
    return f"BACKFILL#{job_id}#"


def asked_by_hand(tenant: str, job_id: str, nonce: str) -> Key:
    return {"pk": tenant, "sk": f"ASKED#{job_id}#{nonce}"}


def tenant(tenant_id: str) -> Key:
    return {"pk": tenant_id, "sk": "TENANT"}


def tenant_change(at: float, tenant_id: str) -> Key:
    """It has the time, so that one range holds all changes since an instant."""
    return {"pk": TENANT_CHANGES, "sk": f"{_milliseconds(at)}#{tenant_id}"}


def tenant_changes_since(at: float) -> tuple[str, str]:
    """The sort keys of all changes from `at` on."""
    return _milliseconds(at), "~"


def changed_tenant(tenant_change_sk: str) -> str:
    """The inverse of `tenant_change`'s sk."""
    return tenant_change_sk.partition("#")[2]


def audit(tenant_id: str, entry_id: str) -> Key:
    return {"pk": tenant_id, "sk": f"{AUDIT_PREFIX}{entry_id}"}


def seals(owner: str) -> str:
    return f"SEALS#{owner}"


def seal(owner: str, number: int) -> Key:
    return {"pk": seals(owner), "sk": f"{number:09d}"}


def deletion(tenant_id: str) -> Key:
    return {"pk": DELETIONS, "sk": tenant_id}


def secret(tenant_id: str, name: str) -> Key:
    return {"pk": tenant_id, "sk": f"{SECRET_PREFIX}{name}"}


def webhook_secret(tenant_id: str) -> Key:
    return {"pk": tenant_id, "sk": "WEBHOOK"}


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


def log_partition(kind: str, bucket: int) -> str:
    """`kind`: PLANNED, CHANGED or AGAIN."""
    return f"{kind}#{bucket}"


def logged(kind: str, bucket: int, window_start: int, name: str) -> Key:
    """The window's start comes first, so one range holds all windows before an instant; ten-digit seconds sort."""
    return {"pk": log_partition(kind, bucket), "sk": f"{window_start:010d}#{name}"}


def logged_window(logged_sk: str) -> int:
    """The start of the window: the inverse of `logged`'s sk."""
    return int(logged_sk.partition("#")[0])


def logged_between(start: int, end: int) -> tuple[str, str]:
    """The sort keys of the windows that start in [start, end)."""
    return f"{start:010d}", f"{end:010d}"


def look_again(tenant_id: str, at: int, name: str) -> Key:
    """Some runs of a tenant that the projection reads again at `at`."""
    partition = log_partition(AGAIN, log_bucket(tenant_id))
    return {"pk": partition, "sk": f"{looks_of_tenant(tenant_id)}{at:010d}#{name}"}


def looks_of_tenant(tenant_id: str) -> str:
    """The beginning of the sort keys of `look_again`."""
    return f"{tenant_id}#"


def look_time(look_sk: str) -> int:
    """When to look: a part of `look_again`'s sk."""
    return int(look_sk.split("#")[1])


# No job has an empty id, so no run is in these partitions.
def projected_windows(tenant_id: str) -> str:
    return f"{tenant_id}##windows"


def projected_portions(tenant_id: str) -> str:
    return f"{tenant_id}##portions"


def projected_days(tenant_id: str) -> str:
    return f"{tenant_id}##days"


def projected_window(tenant_id: str, start: int) -> Key:
    return {"pk": projected_windows(tenant_id), "sk": f"{start:010d}"}


def projected_portion(tenant_id: str, start: int, name: str) -> Key:
    return {"pk": projected_portions(tenant_id), "sk": f"{start:010d}#{name}"}


def projected_day(tenant_id: str, date: str) -> Key:
    return {"pk": projected_days(tenant_id), "sk": date}


def projected_late(tenant_id: str, at: int, name: str) -> Key:
    """Some runs that were put into windows which readers may have read before."""
    return {"pk": projected_days(tenant_id), "sk": f"{LATE_PREFIX}{at:010d}#{name}"}


def last_outcomes(tenant_id: str, portion: str = "") -> Key:
    """A portion of the last outcomes of a tenant's jobs; by default its head."""
    return {"pk": projected_days(tenant_id), "sk": f"OUTCOMES#{portion}"}


def projected_tenants(start: int, bucket: int) -> Key:
    """The totals of the tenants of a bucket in one window, for the platform."""
    return {"pk": PROJECTION, "sk": f"{start:010d}#{bucket:02d}"}


def projected_tenants_hour(start: int, bucket: int) -> Key:
    """The same of an hour. These sort after all windows."""
    return {"pk": PROJECTION, "sk": f"H{start:010d}#{bucket:02d}"}


def unrecorded(execution_id: str) -> Key:
    return {"pk": UNRECORDED, "sk": execution_id}


def tenant_listing(tenant_id: str) -> Key:
    return {"pk": TENANTS, "sk": tenant_id}


def api_key(key_hash: str) -> Key:
    return {"pk": f"KEY#{key_hash}", "sk": "KEY"}


def api_key_reference(tenant_id: str, key_id: str) -> Key:
    return {"pk": tenant_id, "sk": f"{KEY_REFERENCE_PREFIX}{key_id}"}


def request_rate(tenant_id: str) -> Key:
    return {"pk": tenant_id, "sk": "RATE"}


def partitions(kind: str) -> list[str]:
    """The partitions that items of a kind are spread over: DIRECTORY, ONE_OFF, POSTPONED, PENDING, ENDED."""
    return [f"{kind}#{n}" for n in range(SPREAD)]


def _milliseconds(at: float) -> str:
    return f"{int(at * 1000):013d}"


def _spread(text: str) -> int:
    return zlib.crc32(text.encode()) % SPREAD
