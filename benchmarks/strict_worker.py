"""A Lambda environment of the executor: `python -m benchmarks.strict_worker`, an event a line, an answer a line.

It imports no other benchmark module, so it starts with the imports of the function itself.
"""

from __future__ import annotations

import io
import json
import sys
import time
from typing import TextIO


def main() -> None:
    """Init; then handle each event, and print its duration."""
    out, sys.stdout = sys.stdout, io.StringIO()  # the metrics
    began = time.perf_counter()
    from executor import handler

    _answer(out, init_s=time.perf_counter() - began)
    for line in sys.stdin:
        event = json.loads(line)
        began, cpu_began = time.perf_counter(), time.process_time()
        answer = handler.handle(event, None)
        took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
        _answer(out, took_s=took_s, cpu_s=cpu_s, failed=len(answer["batchItemFailures"]))
        sys.stdout.seek(0)
        sys.stdout.truncate()


def _answer(out: TextIO, **fields: float) -> None:
    print(json.dumps(fields), file=out, flush=True)


if __name__ == "__main__":
    main()
