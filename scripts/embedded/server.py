"""The embedded AWS's own process: ministack with one-second ticks and frequent snapshots.

process.py starts it with a clean environment: every Lambda inherits this environment.
"""

import argparse
import fcntl
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

from scripts.embedded import cloudformation, dropped, durable, patches, snapshot, tenants
from scripts.embedded import cloudwatch as alarms
from scripts.embedded.strict import layer

logger = logging.getLogger("embedded")

# The default is 10 s, so a rule could fire up to ten seconds late.
TICK_INTERVAL_S = 1
# The default is 1 s between polls of the queues, which would be most of an execution's lateness.
QUEUE_LOOK_INTERVAL_S = 0.1
# A poll scans the whole queue; with more messages than this, polling returns to the default pace.
_SHORT_QUEUE_MESSAGES = 3_000
# The default of 100 overflows in a burst: the kernel then drops connections, whose clients wait for seconds.
_WAITING_CONNECTIONS = 4_096


def main() -> None:
    """Serve until SIGTERM, which saves the state, or a kill, after which the last snapshot is loaded."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--tied-to-parent", action="store_true", help="end when the starting process ends")
    parser.add_argument("--strict", action="store_true", help="AWS's rules that the server lacks")
    parser.add_argument(
        "--shares", action="store_true", help="functions get the processor share of their memory"
    )
    arguments = parser.parse_args()

    lock = hold_lock(arguments.state_dir)
    from ministack import app  # type: ignore[import-untyped]
    from ministack.core import iam_actions, lambda_runtime  # type: ignore[import-untyped]
    from ministack.services import (  # type: ignore[import-untyped]
        apigateway,
        cloudwatch,
        cloudwatch_logs,
        dynamodb,
        eventbridge,
        lambda_durable,
        lambda_svc,
        scheduler,
        sqs,
    )
    from ministack.services.cloudformation import _stacks, provisioners, stacks  # type: ignore[import-untyped]

    eventbridge._SCHEDULER_TICK_INTERVAL = TICK_INTERVAL_S
    scheduler._SCHEDULE_TICK_INTERVAL = TICK_INTERVAL_S
    app._port_is_bindable = lambda *_: False  # with TLS it would also take port 443
    app._HypercornConfig.backlog = _WAITING_CONNECTIONS
    patches.check_permissions_as_aws(iam_actions)
    patches.parse_conditions_once(dynamodb)
    patches.unpack_archives_once(lambda_runtime, arguments.state_dir / "tmp" / "unpacked")
    patches.read_whole_logs(lambda_runtime)
    patches.page_logs(cloudwatch_logs)
    tenants.install(lambda_svc, lambda_runtime)
    durable.install(lambda_svc, lambda_durable)
    emitted = alarms.install(cloudwatch, provisioners, lambda_svc, apigateway, sqs)
    if arguments.strict:
        layer.install(emitted.throttled, with_shares=arguments.shares)
    cloudformation.install(_stacks, provisioners)
    scheme = "https" if "USE_SSL" in os.environ else "http"
    endpoint_url = f"{scheme}://127.0.0.1:{os.environ['GATEWAY_PORT']}"
    dropped.install(stacks, provisioners, dynamodb, lambda_svc, endpoint_url)
    snapshot.install(
        app,
        arguments.state_dir / "aws",
        int(os.environ["GATEWAY_PORT"]),
        lambda: cloudformation.end_interrupted_operations(_stacks),
    )
    _start_thread(_look_at_queues, lambda_svc)
    if arguments.tied_to_parent:
        _start_thread(_end_with_parent, os.getppid())

    sys.argv = ["ministack"]
    app.main()
    lock.close()


def hold_lock(state_dir: Path) -> IO[str]:
    """Take the lock that says "this state directory has a running server"; exit if it is taken.

    A POSIX record lock: the kernel drops it with the process however that ends, and the snapshot's
    forked children do not inherit it.
    """
    lock = (state_dir / "embedded.lock").open("a")
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f"embedded AWS: another one already runs on {state_dir}")
    return lock


def _start_thread(target: Any, *arguments: object) -> None:
    threading.Thread(target=target, args=arguments, daemon=True, name=target.__name__).start()


def _look_at_queues(lambda_svc: Any) -> None:
    """Wake the event source poller as soon as a delayed message can be due."""
    from ministack.services import sqs

    while True:
        time.sleep(QUEUE_LOOK_INTERVAL_S)
        queued = sum(len(queue["messages"]) for queue in list(sqs._queues._data.values()))
        if 0 < queued <= _SHORT_QUEUE_MESSAGES:
            lambda_svc._esm_wake.set()


def _end_with_parent(parent: int) -> None:
    """Kill the whole process group when the process that started this one has ended (a crashed test run)."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
