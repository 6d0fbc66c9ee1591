"""A Lambda environment of a function: `strict_worker.py KIND`, an event a line, an answer a line.

KIND is `executor`, `minute8.api`, or `bare`: a minimal executor on boto3.

It imports no other benchmark module, so it starts with the imports of the function itself.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, TextIO

Handle = Callable[[dict[str, Any], object], dict[str, Any]]


def main() -> None:
    """Init; then handle each event, and print its duration and the function's answer."""
    out, sys.stdout = sys.stdout, io.StringIO()  # the metrics
    began = time.perf_counter()
    handle = _bare() if "bare" in sys.argv else _deployed(sys.argv[1])
    _answer(out, init_s=time.perf_counter() - began)
    for line in sys.stdin:
        event = json.loads(line)
        began, cpu_began = time.perf_counter(), time.process_time()
        answer = handle(event, None)
        took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
        _answer(out, took_s=took_s, cpu_s=cpu_s, answer=answer)
        sys.stdout.seek(0)
        sys.stdout.truncate()


def _deployed(function: str) -> Handle:
    handle: Handle = import_module(f"{function}.handler").handle
    return handle


def _bare() -> Handle:
    """Parses each message and calls the target, ten at a time; nothing is looked up, claimed or recorded."""
    import boto3

    client, pool = boto3.client("lambda", region_name=os.environ["AWS_REGION"]), ThreadPoolExecutor(10)

    def call(record: dict[str, Any]) -> None:
        message = json.loads(record["body"])
        payload = {"payload": {"report": "daily"}, "minute8": {"job_id": message["job"]}}
        answer = client.invoke(
            FunctionName=message["job"], InvocationType="Event", Payload=json.dumps(payload).encode()
        )
        answer["Payload"].read()  # else its connection is lost

    def handle(event: dict[str, Any], context: object) -> dict[str, Any]:
        list(pool.map(call, event["Records"]))
        return {"batchItemFailures": []}

    return handle


def _answer(out: TextIO, **fields: Any) -> None:
    print(json.dumps(fields), file=out, flush=True)


if __name__ == "__main__":
    main()
