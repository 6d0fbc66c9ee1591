"""One invocation of the outcomes function over tables in memory, in a separate process that is measured.

    python -m tests.executor.hostile_outcomes FILE

FILE holds the tables' items and the messages. Prints peak memory, time, what is delivered again, and the runs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

# Before botocore looks.
os.environ |= {f"{name.upper()}_TABLE": f"test-{name}" for name in ("jobs", "due", "tenants", "runs")}

from common.runs.records import Runs
from common.storage import aws
from common.storage.table import Table
from executor import completion
from tests.processes import peak_mb
from tests.simulation.memory_dynamodb import MemoryDynamoDB


def main(scenario: dict[str, Any]) -> dict[str, Any]:
    dynamodb: Any = MemoryDynamoDB()
    for table, items in scenario["tables"].items():
        dynamodb.create_table(table)
        for item in items:
            dynamodb.put_item(TableName=table, Item=item)
    aws.dynamodb = lambda: dynamodb  # type: ignore[assignment]
    completion._outcomes()
    used, ready_mb = time.process_time(), peak_mb()
    records = [{"messageId": name, "body": body} for name, body in scenario["messages"].items()]
    answer = completion.handle({"Records": records}, None)
    runs = Runs(Table(dynamodb, "test-runs"))
    return {
        "ready_mb": ready_mb,
        "peak_mb": peak_mb(),
        "cpu_s": time.process_time() - used,
        "failed": [failure["itemIdentifier"] for failure in answer["batchItemFailures"]],
        "runs": {name: runs.of_job("alice", name, limit=2)[0].status for name in scenario["messages"]},
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))))
