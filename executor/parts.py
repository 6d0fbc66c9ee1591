"""The parts of a message: a pack has several executions, and some of them may fail while the others end.

An execution that nobody has claimed goes on as a message of its own. If anything else failed, the queue delivers the
whole pack again. What ended by then is found by its record. The dispatched calls are recorded as made before: alone,
they would be made again, as after the death of their executor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from common import telemetry
from common.planning.execution import Execution, UnreadableMessage
from common.planning.packs import lines
from common.runs.states import DISPATCHED
from executor.pipeline import Executor, Message
from executor.recorder import Report, StillRunning

# How long a part waits: as long as a single message before its second delivery.
_AGAIN_AFTER_S: Final = 3


@dataclass(frozen=True, slots=True)
class Part:
    """One execution of a message. `line` is the message with this execution alone."""

    message: Message
    line: Message
    execution: Execution | None

    @property
    def is_of_pack(self) -> bool:
        """Whether the message has other executions, too."""
        return self.line.body != self.message.body


def parts_of(message: Message) -> list[Part]:
    """The executions of a message, each once; None stands for one that cannot be read. A wake has none.

    Two cut-off registrations of a job have the same executions, which can come into the same pack.
    """
    once = dict.fromkeys(lines(message.body))
    return [
        Part(message, message if line == message.body else replace(message, body=line), _read(line))
        for line in once
    ]


def _read(line: str) -> Execution | None:
    try:
        return Execution.decode(line)
    except UnreadableMessage:
        return None  # reported where it is executed


def send_on(executor: Executor, parts: Iterable[Part], wait_s: int = 0) -> bool:
    """Enqueue each as a message of its own. False if the queue did not take them."""
    not_before_at = int(executor.clock.now()) + wait_s if wait_s else 0
    executions = (part.execution for part in parts if part.execution)
    alone = [replace(one, not_before_at=max(one.not_before_at, not_before_at)) for one in executions]
    try:
        executor.recorder.queue.send(alone)
    except Exception as error:  # noqa: BLE001  then their messages are delivered again
        telemetry.logger().warning("not sent on", error=repr(error))
        return False
    return True


def to_deliver_again(
    executor: Executor,
    threads: ThreadPoolExecutor,
    reports: Mapping[Part, Report],
    failed: Mapping[Part, Exception],
) -> dict[Message, Exception]:
    """The messages that the queue has to deliver again because of these failures, each with an error."""
    unclaimed = list(threads.map(lambda part: _is_unclaimed(executor, part, failed[part]), failed))
    apart = [part for part, goes in zip(failed, unclaimed, strict=True) if goes]
    left = dict(failed)
    if apart and send_on(executor, apart, _AGAIN_AFTER_S):
        left = {part: error for part, error in failed.items() if part not in apart}
    errors: defaultdict[Message, list[Exception]] = defaultdict(list)
    for part, error in left.items():
        errors[part.message].append(error)
    made = [
        part for part, report in reports.items() if part.message in errors and report.result == DISPATCHED
    ]
    list(threads.map(lambda part: _settle(executor, part), made))
    return {message: max(found, key=_until) for message, found in errors.items()}


def _until(error: Exception) -> float:
    return error.until if isinstance(error, StillRunning) else 0.0


def _is_unclaimed(executor: Executor, part: Part, error: Exception) -> bool:
    """Whether certainly nobody has claimed it. Only parts of packs are looked up: a single message comes again."""
    if not part.is_of_pack or part.execution is None or isinstance(error, StillRunning):
        return False
    try:
        return executor.is_unclaimed(part.execution)
    except Exception as unknown:  # noqa: BLE001
        telemetry.logger().warning("not known whether claimed", error=repr(unknown))
        return False


def _settle(executor: Executor, part: Part) -> None:
    if not part.is_of_pack or part.execution is None:
        return
    try:
        executor.recorder.changes.settle(part.execution, part.message.message_id)
    except Exception as error:  # noqa: BLE001  its call is made again, as after a crash
        telemetry.logger().warning("not settled", error=repr(error))
