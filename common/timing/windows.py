"""The arithmetic of windows: which ten minutes a tick plans.

A window is half-open, [start, end), in epoch seconds. Ticks run at minute 8, 18, 28…; nothing here depends on that.
"""

from __future__ import annotations

WINDOW_S = 600
# The longest DelaySeconds that SQS takes:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html
MAX_DELAY_S = 900
# A fire time older than this when it is planned was missed: the job's catch-up policy decides.
# One whole window, so that one lost tick only causes lateness.
MISSED_AFTER_S = WINDOW_S
# Of a log whose place is not known.
_READ_AGAIN_S = 12 * WINDOW_S
# A backlog of the executions queue may delay a run; what is planned and has no record for longer is an alarm.
NO_RECORD_AFTER_S = 3_600


def window_start(at: int) -> int:
    """The start of the whole ten minutes that hold `at`."""
    return at - at % WINDOW_S


def followed_from(until: object, end: int) -> int:
    """Where a log is read on from, up to `end`: `until`, or some hours before if somebody wrote nonsense there."""
    return until if isinstance(until, int) and 0 <= until <= end + WINDOW_S else end - _READ_AGAIN_S


def planning_end(now: float) -> int:
    """The furthest end that a tick may plan to at `now`: whole ten minutes, at most MAX_DELAY_S ahead.

    At minute 8 this is the end of the next whole ten minutes (3:18 → 3:30). A tick that is early or late plans as far
    as SQS can delay (3:22 → 3:30, 3:25 → 3:40).
    """
    return window_start(int(now) + MAX_DELAY_S)
