"""Bounds that a user can meet. `python -m scripts.tables` writes the tables of docs/limits.md from this file.

A row is a comment, and costs no process anything: `# | quantity | bound | beyond it |`, below the heading of its table.
Names in braces are this file's, with a unit after a colon. A number that only tunes something stays beside its code.
"""

from __future__ import annotations

from typing import Final

_KIB: Final = 1024
_DAY_S: Final = 86_400

# ## What a target's answer is bounded by
# | time of a call, in all | the job's `timeout_s`; {CONNECT_S:s} for a connection | `TimedOut`, tried again |
CONNECT_S: Final = 10.0
# | bytes received from an endpoint, TLS and framing included | {RECEIVED_BYTES:KiB} | the body is cut; without a head
#   `BadAnswer` |
RECEIVED_BYTES: Final = 512 * _KIB
# | reads from an endpoint, also during the TLS handshake | {ENDPOINT_READS} | as with bytes |
ENDPOINT_READS: Final = 4_096
# | head of an HTTP answer | {HEAD_BYTES:KiB} | `BadAnswer` |
HEAD_BYTES: Final = 32 * _KIB
# | parts of an HTTP answer: chunks, interim answers, reads | {ANSWER_PARTS} | as with bytes |
ANSWER_PARTS: Final = 4_096
# | body of an HTTP answer | {ANSWER_BYTES:KiB} | the rest is not read |
ANSWER_BYTES: Final = 64 * _KIB
# | result of a Lambda function | {RESULT_BYTES:KiB} | the rest is not read |
RESULT_BYTES: Final = 256 * _KIB
# | names that an executor or notifier resolves at a time | {LOOKUPS}, of one tenant 16, and {RESERVED_LOOKUPS} are
#   only for tenants that have none | it waits. If the tenant's own names hang, the attempt fails; else as throttled |
LOOKUPS: Final = 64
RESERVED_LOOKUPS: Final = 16
# | time to resolve a name | {LOOKUP_S:s}, and the job's `timeout_s` | `Unreachable`, tried again |
LOOKUP_S: Final = 5.0
# | addresses of a host that are tried | {ADDRESSES_TRIED} | the others are not tried |
ADDRESSES_TRIED: Final = 4
# | `retry_after_s`, `Retry-After` | 0 to {MAX_RETRY_AFTER_S:days} | counts as {MAX_RETRY_AFTER_S:days} |
MAX_RETRY_AFTER_S: Final = 365.0 * _DAY_S
# | texts of an attempt | type and request id {TYPE_BYTES} bytes, error {ERROR_BYTES}, log tail {LOG_TAIL_BYTES} | cut
#   |
TYPE_BYTES: Final = 100
ERROR_BYTES: Final = 400
LOG_TAIL_BYTES: Final = 800
# | attempts in a record | {MAX_ATTEMPTS_KEPT}, of them {MAX_THROTTLES_KEPT} throttled | the oldest is removed;
#   throttled ones are not recorded |
MAX_ATTEMPTS_KEPT: Final = 110
MAX_THROTTLES_KEPT: Final = 10
# | looks in a day of a run that waits and has no place in line | 20 | a run in line is woken, at the latest by a tick |
# | runs of a job that wait because its target throttles | {MAX_THROTTLED_RUNS}; while AWS fails, any | further ones
#   fail, and say so; retries are as many as runs are due, or one a minute |
MAX_THROTTLED_RUNS: Final = 100
# | calls in a record whose executor died | {MAX_LOST_CALLS} | later ones are only counted, in `claims` |
MAX_LOST_CALLS: Final = 20
# | AWS clients in an executor | 128 | the tenant with most loses its oldest |
# | credentials of assumed roles in an executor | {MAX_ROLES} | the tenant with most loses its oldest |
MAX_ROLES: Final = 256
# | wait of an executor for a second | {MAX_HOLD_S:s} per batch | the message goes back to the queue |
MAX_HOLD_S: Final = 2.0
# | executions of a pack | {MAX_IN_A_PACK}, so that ten packs have 100 | the next pack begins |
MAX_IN_A_PACK: Final = 10
# | wakes before a crowded second | as many as full packs, {MAX_WAKES} at most in a share | no more are sent |
MAX_WAKES: Final = 200
# | lines of a message that are read | {MESSAGE_LINES} | the message ends in the dead letters |
MESSAGE_LINES: Final = 100
# | executors at once | `maximumConcurrency`, within the executor's own concurrency
#   ([deploying.md](deploying.md#own-concurrency)) | messages wait in the queue |
# | calls of an executor at once | {MAX_CALLS} awaited, each in its own thread; 64 events, up to {MAX_EVENT_THREADS}
#   of them from one thread | it waits for a thread |
MAX_CALLS: Final = 100
MAX_EVENT_THREADS: Final = 32
# | wait of an event for a thread, or for its answer beside others | {MAX_EVENT_WAIT_S:s} | it gets a thread as other
#   calls do |
MAX_EVENT_WAIT_S: Final = 2.0
# | wait for a thread | {MAX_THREAD_WAIT_S:s} | it goes on as its own message; if it is claimed, its attempt ends as
#   throttled (`NoThread`) |
MAX_THREAD_WAIT_S: Final = 5.0
# | processor time for what a tenant's calls of a batch prepare: calendars, large or patched payloads, secrets, dead
#   letters | {TURN_S} s of a whole one, one call at a time | a run waits, and its attempt ends as throttled
#   (`NoTurn`); redaction and dead letters go on |
# | processor time to prepare one call | some 9 ms of a whole one, 30 of an executor's share | by the points of
#   [input](#input) |
TURN_S: Final = 0.25
# | memory for the clients of an executor's targets | {CLIENTS_BYTES:MiB} | the tenant with the most builds its again |
CLIENTS_BYTES: Final = 96 * 1_024 * _KIB
# | a request that serves the executions of a batch | made once, 1 s | each execution makes its own, in its own
#   thread, with up to 4 tries |

# ## How long records are kept
# | run | `retention_days` after its last start or its next attempt |
# | failures in a row of a job | {STREAK_KEPT_S:days} after the last failure |
STREAK_KEPT_S: Final = 410 * _DAY_S
# | id and revision of a deleted job | {FORMER_KEPT_S:days} after its deletion |
FORMER_KEPT_S: Final = 410 * _DAY_S
# | run that is queued, cancellation | {UNSTARTED_KEPT_S:days} after its time |
UNSTARTED_KEPT_S: Final = 30 * _DAY_S
# | who holds permits of `overlap` or a concurrency key, and who waits | until nobody does; after crashes, 7 days
#   longer than the last lease: {MAX_CALL_S:s} of a call, {MAX_CALLBACK_TIMEOUT_S:days} of a callback,
#   {MAX_DURABLE_S:days} of a durable execution or a wait before a retry |
MAX_CALL_S: Final = 900  # the longest timeout of a Lambda function
MAX_CALLBACK_TIMEOUT_S: Final = 7 * _DAY_S
MAX_DURABLE_S: Final = 366 * _DAY_S
# | payload of a single run | {PAYLOAD_KEPT_S:days} after it was started |
PAYLOAD_KEPT_S: Final = 30 * _DAY_S
# | payload of over 1 KiB that its job no longer has | an hour; a retry sends the job's present payload |
# | backfill | {BACKFILL_KEPT_S:days} after the last end of one of its runs |
BACKFILL_KEPT_S: Final = 90 * _DAY_S
# | note that a job may be deleted after its last run | {END_NOTE_KEPT_S:days} after that run |
END_NOTE_KEPT_S: Final = 15 * _DAY_S
# | entry of a one-off job | {ONE_OFF_KEPT_S:days} after its window |
ONE_OFF_KEPT_S: Final = 400 * _DAY_S

# ## Input
# | body of a request | {BODY_BYTES:KiB} | 413 |
BODY_BYTES: Final = 512 * _KIB
# | body of a bulk request | {BULK_BYTES:MiB} | 413 |
BULK_BYTES: Final = 4 * _KIB * _KIB
# | lines of a bulk request | {BULK_LINES}, each at most {BODY_BYTES:KiB} | 413, before they are split; a long line is
#   refused by itself |
BULK_LINES: Final = 1_000
# | time in which a bulk request writes | {BULK_WRITES_S:s} | the other lines are refused as busy |
BULK_WRITES_S: Final = 18
# | problems of a body that are named | the first {MAX_PROBLEMS}; of a bulk request's line the first
#   {MAX_LINE_PROBLEMS} | the others are not named |
MAX_PROBLEMS: Final = 50
MAX_LINE_PROBLEMS: Final = 3
# | nesting of a body | {BODY_LEVELS} levels | 400 |
BODY_LEVELS: Final = 80
# | nesting of a payload | {PAYLOAD_LEVELS} levels | 400 |
PAYLOAD_LEVELS: Final = 64
# | payload | the tenant's `payload_bytes`: 128 KiB at first, at most {RENDERED_BYTES:KiB}, of an EventBridge schedule
#   {INPUT_BYTES:KiB} | 400 |
RENDERED_BYTES: Final = 224 * _KIB
INPUT_BYTES: Final = 256 * _KIB
# | payload that a schedule patches | {PATCHED_BYTES:KiB} with the patch, which has at most
#   {MAX_PATCH_BYTES:KiB} | 400 |
PATCHED_BYTES: Final = 64 * _KIB
MAX_PATCH_BYTES: Final = 1 * _KIB
# | placeholders in a payload | {MAX_PLACEHOLDERS} | 400 |
MAX_PLACEHOLDERS: Final = 1_000
# | what preparing a call takes, in sum | {PREPARATION_POINTS} points, each 0.1 ms of a processor: {CALENDAR_POINTS} for
#   a calendar, {SECRET_POINTS} for a secret, 1 for a KiB of a patched payload, 1 for {PLACEHOLDERS_A_POINT}
#   placeholders | 400 |
PREPARATION_POINTS: Final = 85
CALENDAR_POINTS: Final = 4
SECRET_POINTS: Final = 20
PLACEHOLDERS_A_POINT: Final = 33
# | payload after its placeholders are replaced | {RENDERED_BYTES:KiB} | 400; a job stored before that: the run fails
#   |
# | cron expression | {CRON_CHARS} characters, numbers of 4 digits | 400 |
CRON_CHARS: Final = 256
# | time between two fire times | 1 s, or the tenant's `shortest_interval_s` | 400 |
# | spread (`spread_s`), also a tenant's default | {MAX_SPREAD_S:s}; a default ends before the next fire time | 400 |
MAX_SPREAD_S: Final = 3_600
# | spread (`jitter_s`) | {MAX_JITTER_S:s} | 400 |
MAX_JITTER_S: Final = 86_400
# | `pace`: `per_second`; `tolerance_s` | 1 to {MAX_PER_SECOND}; 1 to {MAX_TOLERANCE_S:s} | 400 |
MAX_PER_SECOND: Final = 1_000
MAX_TOLERANCE_S: Final = 600
# | paces of a tenant | its `jobs`; each is shards of its own |  |
# | a job's own excluded dates | {MAX_EXCLUDED_DATES} | 400 |
MAX_EXCLUDED_DATES: Final = 400
# | calendars that a job names | {MAX_CALENDARS} to exclude, {MAX_CALENDARS} to include | 400, before they are read |
MAX_CALENDARS: Final = 10
# | calendars of a tenant | {MAX_TENANT_CALENDARS} | 409 |
MAX_TENANT_CALENDARS: Final = 100
# | values that the aliases of a YAML file repeat; characters of one of its numbers | 100,000; 1,000 | the import
#   refuses the file |
# | variables before an entry of a crontab | 200 | the import refuses the entry |
# | jobs of a file to `import` | none; a line of a crontab takes 0.5 KB of the command's memory. The file is sent once,
#   1,000 jobs a request | from the first refused request on, the rest is only checked |
# | dates of a calendar | {MAX_DATES} | 400 |
MAX_DATES: Final = 2_500
# | `source` of a calendar | {MAX_SOURCE_CHARS} characters, whole numbers below 2^53 | 400 |
MAX_SOURCE_CHARS: Final = 500
# | iCalendar text, where it is resolved | {ICALENDAR_BYTES:KiB}, {ICALENDAR_EVENTS} events, {ICALENDAR_S:s} | 400 |
ICALENDAR_BYTES: Final = 256 * _KIB
ICALENDAR_EVENTS: Final = 2_000
ICALENDAR_S: Final = 5.0
# | name, note | {NAME_CHARS} and {NOTE_CHARS} characters | 400 |
NAME_CHARS: Final = 200
NOTE_CHARS: Final = 500
# | tags | 20 of 64 characters | 400 |
# | ids of jobs, calendars; nonces | {JOB_ID_CHARS}, {CALENDAR_NAME_CHARS} and {NONCE_CHARS} characters | 400 |
JOB_ID_CHARS: Final = 128
CALENDAR_NAME_CHARS: Final = 64
NONCE_CHARS: Final = 32
# | URL; headers of an `http` target | {URL_CHARS} characters; {MAX_HEADERS} | 400 |
URL_CHARS: Final = 2048
MAX_HEADERS: Final = 20
# | ARN of a target or role | each part by its own pattern, at most some 600 characters | 400 |
# | attempts; age | {MAX_ATTEMPTS}; 14 days | 400 |
MAX_ATTEMPTS: Final = 186
# | time of a call (`timeout_s`) | the executor's time less {EXECUTOR_MARGIN_S:s} | 400 |
EXECUTOR_MARGIN_S: Final = 10
# | fire times of a backfill | {BACKFILL_FIRES}, with {BACKFILL_EXCLUDED_DATES} dates of calendars in its range | 400
#   |
BACKFILL_FIRES: Final = 10_000
BACKFILL_EXCLUDED_DATES: Final = 1_000
# | executions that backfills enqueue | each counts as a request, and a backfill as half of the tenant's
#   `requests_per_minute` at most | 429 |
# | executions that changes of jobs enqueue | ten count as a further request, once the change is stored | the change
#   takes effect; the next requests get 429 |
# | lines of bulk requests | ten count as a request, a bulk request as twenty at least and as half of
#   `requests_per_minute` at most | 429 |
# | jobs or runs that one request changes by a filter | {MAX_CHANGED}, in {CHANGES_S:s}; it reads {MAX_JOBS_READ} jobs
#   at most | the answer has a cursor |
MAX_CHANGED: Final = 100
CHANGES_S: Final = 18
MAX_JOBS_READ: Final = 2_000
# | words of a search of jobs | {SEARCH_WORDS}, {SEARCH_CHARS} characters | 400 |
SEARCH_WORDS: Final = 10
SEARCH_CHARS: Final = 200
# | changes of jobs that a search reads | 2,000 since the last one, or of the last minute | it makes the directory of
#   jobs anew |
# | processor time for the next fire times of a sorted list | 1.5 s; 10,000 schedules take 0.1 s | the other jobs come
#   last |
# | runs of ten minutes, and changes of earlier runs, that last outcomes follow | 50,000; 20,000 | the newest ones are
#   followed; outcomes are made anew |
# | records of the newest half hour that a page with health reads | 500, and ten of each job at least | older outcomes
#   of frequent jobs are left out |
# | attempts that a page with health reads for errors of last runs | 200 | the errors of the runs with the most
#   attempts are left out |
# | failed runs that a filter by error reads | 2,000, of the last 7 days | the answer has a cursor |
# | blocked patterns of targets | {MAX_BLOCKS} | 409 |
MAX_BLOCKS: Final = 100
# | payloads of single runs | each 4 KiB counts as a request; kept for 30 days | 429 |
# | fire times that one call skips, or takes back | {MAX_SKIPPED}, each a request; within {SKIPPED_AHEAD_S:days} |
#   400; the next call takes back others |
MAX_SKIPPED: Final = 50
SKIPPED_AHEAD_S: Final = 366 * _DAY_S
# | records that a call reads to take fire times back | {MAX_RECORDS_READ}; it counts as 5 requests at least | those
#   further ahead stay cancelled |
MAX_RECORDS_READ: Final = 1_000
# | backfills of a job that are listed | {BACKFILLS_LISTED} | the others are not; the audit has their ids |
BACKFILLS_LISTED: Final = 200
# | runs of a backfill at a time | 100 | 400 |
# | jobs, executions a day | the tenant's `jobs` and `executions_per_day` | 403 |
# | requests | the tenant's `requests_per_minute`, [by what they cost](#what-a-request-counts-as) | 429 |
# | secrets; one's value | {MAX_TENANT_SECRETS}; {SECRET_CHARS} characters to {SECRET_BYTES} bytes | 409; 400 |
MAX_TENANT_SECRETS: Final = 100
SECRET_CHARS: Final = 8
SECRET_BYTES: Final = 4_096
# | lines of a secret | {SECRET_LINES} | 400 |
SECRET_LINES: Final = 64
# | `secret://` in a job | {MAX_REFERENCES} times, {MAX_JOB_SECRETS} secrets | 400 |
MAX_REFERENCES: Final = 20
MAX_JOB_SECRETS: Final = 4
# | webhook secrets that sign | the newest, and three that were replaced within a day | 409 |
# | API keys | {MAX_KEYS} | 409 |
MAX_KEYS: Final = 1_000
# | page of a list | {MAX_PAGE} entries, about {MAX_PAGE_BYTES:MiB} | the cursor leads on |
MAX_PAGE: Final = 200
MAX_PAGE_BYTES: Final = _KIB * _KIB
# | executions with a pace or a concurrency key that `density` places | {MAX_PACED} | it says that it is not complete |
MAX_PACED: Final = 50_000
# | processor time of a page of jobs (with `health`, too), `density`, `operator-density`, `upcoming`, `expected`,
#   `clock-changes` or `tzdata-changes` | {PAGE_CPU_S:s} of a whole processor, some 10 s of the API's | the page ends
#   after a job, and the cursor leads on; `density` and `upcoming` say that they are not complete |
PAGE_CPU_S: Final = 1.5
# | search of a next fire time | 41 years; calendars are merged once per answer, and a year at a time is looked at |
#   it has none |
# | jobs that a page of a list or export reads, deleted ones included | {MAX_JOBS_READ}; 1,000 of an export | the page
#   can be empty; the cursor leads on |
# | retries that a page of runs shows | {MAX_RETRIES}, and those of its last run | the cursor leads on |
MAX_RETRIES: Final = 800
# | an item in DynamoDB | {MAX_LEVELS} levels, numbers of 38 digits, no field without a name | a backstop: the bounds
#   above keep within it |
MAX_LEVELS: Final = 32
# | size of an item in DynamoDB | {MAX_ITEM_BYTES:KB} | 400, nothing is stored; a backstop: the largest item has half
#   of that |
MAX_ITEM_BYTES: Final = 400 * _KIB

# ## What a request counts as
# | requests at once | `requests_per_minute`; each second brings a sixtieth of them | 429, and `Retry-After` says when
#   the same request is accepted if no other is sent |
# | requests in any *s* seconds | `requests_per_minute` × (1 + *s*/60), and what processes reserved before: a
#   hundredth each, for a minute |  |
# | what a charge takes of the time to come | 300 s | it is forgiven |
# | expensive requests that are under way together | as many as the budget accepts: each is charged when it is
#   answered |  |

# ## Subscriptions
# | subscriptions of a tenant | {MAX_SUBSCRIPTIONS} | 409 |
MAX_SUBSCRIPTIONS: Final = 20
# | `delay_s`, `group_s`; `name_prefix`, `tag` | 86,400 s; 200 characters | 400 |
# | muted groups of failures of a tenant; how long | {MAX_MUTED_GROUPS}; {MAX_MUTED_S:days} | 409; 400 |
MAX_MUTED_GROUPS: Final = 200
MAX_MUTED_S: Final = 30 * _DAY_S
# | failed runs that a look reads | the tenant's 2,000 newest since the look before | `complete` is false |
# | failures that show in the index late | 60 s | not reported |
# | jobs examined for being overdue and for alerts | 200 a minute, of 2,000 that are read | the next minutes |
# | runs read for an `alert` | 1,000 newest, 800 further attempts | `complete` is false; no success |
# | runs read for alerts of a tenant | some 5,000 a minute | the next minutes |
# | delay of a run's start or success for its `alert` | an hour | perhaps not reported |
# | jobs that wait; reported jobs that are known | 100; 200 | `complete` is false; the oldest is forgotten |
# | reported jobs examined for recovery | 25 a minute and subscription | the next minutes |
# | jobs of each kind in a message; of each kind that alerts find; an error in it | 10; 4; 200 bytes | counted; cut |
# | time of a try | 5 s, redirects are not followed | it counts as failed |
# | tries of a message | for three days, at most an hour apart | the address is disabled |
# | tries of a tenant in a round | 30 s, all threads together: six of slow addresses | the next rounds |
# | looks and tries of a round | no look begins after 25 s, no try after 45 s | the next rounds |

# ## Planning
# | the record of a share | 300 KB of names of shards | the next share begins |
# | what a share costs | `plannerShareEntries` (20,000), a fire every ten seconds counting as six a minute | the next
#   share begins; a shard alone may exceed it |
# | shares of a window | none; each is an item of its own | more planners |
# | time of a planner on a share | 180 s | it records how far it is, and another goes on |
# | time of a tick on a window | 300 s (Lambda) | after two ticks that died, planners get the window in smaller shares
#   |
# | time of planners on a window | until a minute after the next tick | the rest is set aside; the next window is
#   planned |
# | time of a tick on postponed executions | 20 s before a window, the rest until 150 s after the tick began | the
#   window is planned; the next tick goes on, and the rest is late |
# | a share that is set aside and fails again |  | it is tried in 16 parts, and those again, until one shard is left |
# | groups and shares set aside | each tick tries 2,000 readable ones | the others wait; bad entries and unreadable
#   groups take no place |
# | a group that cannot be read |  | it is set aside, and planned by the first version that can read it |
# | a due entry that cannot be planned | 100 an invocation are made known one by one | each gets a skipped run with
#   the reason |
# | distinct groups of a tenant that are due at once | its `jobs` | a share takes 2,222 groups of one job each, some
#   25 s of reading; planners take the others |
# | entries of a shard | 2,000, for jobs of each second 33 | the group gets another shard |
# | a pace | what one share may have | planners plan parts of it, each for its own seconds |
# | executions of a pace whose places are found together | 50,000 | later executions get the remaining places |
# | what a pace has taken of the time after a window | three hours | it reaches 7,800 s at most: spread, jitter and
#   tolerance |
# | places in which a group is listed | 16 | it is listed by the hour or ten minutes, and read in vain more often |
# | missed fire times after an outage | 100 run, with `catch_up: all` | the others are counted in one record |
# | dates of calendars in memory | 4,000,000, four bytes each | the calendar that was used longest ago is read again |
# | records of skipped runs kept back | 500 | they are written, by 16 threads |
# | empty shards | each change drops those that it leaves; a tick drops 200,000 that it finds, for 60 s | later ticks
#   drop more |
# | jobs with `after_completion: delete` that end at once | one process at a time, asked once for 2 s of ends. They
#   have a third of its time for removals and what the others leave, until 200 s after it began; 14 of a tenant in a
#   transaction | the next ticks delete the others |
# | removals of groups of schedules, of tenants | a third of that time each, and what the others leave, until 200 s
#   after it began | the next tick goes on, and begins with another one |
# | runs of such a job that are looked at | the 100 newest | an older one that waits for a retry ends as failed, with
#   the reason `deleted` |
# | records of what was due since the tick before, of which a tick looks for losses | 400 | a sample is read; what has
#   no record after its window is found half an hour later |
# | executions of a bucket (a sixteenth of the tenants) that a tick follows | {MAX_HELD}; after half of them it
#   begins no further window | later ticks follow the others, which are of the largest tenants |
# With what is read of its run an execution takes 1.2 KB, with the longest ids 2 KB: some 300 MB of the scheduler's 512.
MAX_HELD: Final = 150_000
# | a chunk of the log of planning | 5,000 executions, 200 KB compressed | the next chunk begins. One that cannot
#   be written is reported (alarm `quarantine`), and the window is planned |
# | executions without a record that are listed | 10,000 | no others are looked for until these have run |
# | items that BatchGetItem leaves out | six pauses, 3 s | the call fails, and may be repeated |
