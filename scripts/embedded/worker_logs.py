"""The whole log of an invocation, also on a busy machine.

ministack waits at most 50 ms for the first line of a worker's log, and 5 ms for each further line. Later lines would be
in the log of the worker's next invocation. Here a worker writes a mark after each invocation, and the server reads up
to the mark.
"""

import queue
import time
from typing import Any

MARK = "\x1eend of the log"
# A mark that does not come: the handler has closed its standard error.
_PATIENCE_S = 10.0


def install(lambda_runtime: Any) -> None:
    """Change the module ministack.core.lambda_runtime, before it starts a worker."""
    answers = '_real_stdout.write(json.dumps({"status": "%s", '
    script: str = lambda_runtime._PYTHON_WORKER_SCRIPT
    for answer in (answers % "ok" + '"result"', answers % "error" + '"error": str(e), "trace"'):
        assert script.count(answer) == 1, "ministack's worker answers in another way"
        script = script.replace(
            answer, f'sys.stderr.flush(); os.write(2, b"\\x1eend of the log\\n"); {answer}'
        )
    lambda_runtime._PYTHON_WORKER_SCRIPT = script
    bounded = lambda_runtime.Worker._drain_stderr_bounded

    def drained(worker: Any, *arguments: float, **named: float) -> str:
        if not worker.config.get("Runtime", "").startswith("python"):
            return str(bounded(worker, *arguments, **named))
        return up_to_mark(worker._stderr_queue, worker._stderr_thread.is_alive)

    lambda_runtime.Worker._drain_stderr_bounded = drained


def up_to_mark(lines: "queue.Queue[str]", comes_more: Any) -> str:
    """The lines before the mark; all lines if the worker died without one."""
    log: list[str] = []
    give_up_at = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up_at:
        more = comes_more()
        try:
            line = lines.get(timeout=0.05 if more else 0)
        except queue.Empty:
            if not more:
                break
            continue
        if line.endswith(MARK):
            log += [text] if (text := line.removesuffix(MARK)) else []
            break
        log.append(line)
    return "\n".join(log)
