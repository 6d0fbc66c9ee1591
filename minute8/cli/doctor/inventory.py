"""The parts of a deployment, as serverless.yml deploys them; tests/deploy compares the two."""

from __future__ import annotations

from typing import Final, NamedTuple

TICK_EXPRESSION: Final = "cron(8/10 * * * ? *)"
ROUND_EXPRESSION: Final = "cron(* * * * ? *)"
# Of a stage with `runsExport`.
EXPORT_EXPRESSION: Final = "cron(13 * * * ? *)"
RUNTIME: Final = "python3.13"
# The version of botocore in requirements/lambda.txt, with which everything was tested.
SDK: Final = "1.43.106"
TABLES: Final = ("jobs", "due", "tenants", "audit", "runs")
INDEXES: Final = {"runs": ("failures",)}
TTL_ATTRIBUTE: Final = "expires_at"
# All other stages count as production.
STAGES_TO_LOSE: Final = ("dev", "local", "test")


class Feed(NamedTuple):
    """A queue, and the function that reads it. Its dead letters are in the queue of the same name and `-dead`."""

    queue: str
    function: str
    batch_size: int
    # A function that does not report failed messages returns a whole batch to the queue for one bad message.
    reports_failures: bool


FEEDS: Final = (
    Feed("executions", "executor", 10, True),
    Feed("planning", "planner", 1, False),
    Feed("outcomes", "outcomes", 10, True),
)

FUNCTIONS: Final = ("scheduler", "planner", "executor", "outcomes", "notifier", "api")
