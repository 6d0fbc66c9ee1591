"""The share of a processor that Lambda gives by memory, as a quota of a control group. Needs root and Linux."""

from __future__ import annotations

import itertools
import logging
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

logger = logging.getLogger("embedded")

# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
PROCESSOR_MB: Final = 1_769
# Lambda's own period, as measured from within: a function stops for the rest of each 20 ms once its share is used.
_PERIOD_US: Final = 20_000
_MIN_QUOTA_US: Final = 1_000
_V2, _V1 = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu")


class QuotaError(RuntimeError):
    """This machine lets us set no quota; the message says why."""


class Quota:
    """A group of processes that get what a function has: a processor while it starts, then its memory's share of one.

    It goes before other work on the machine, as Lambda's share is the function's whatever its neighbours do.
    """

    def __init__(self, name: str, memory_mb: int) -> None:
        """Without a limit yet. Raises QuotaError."""
        parent, self._is_v2 = _parent()
        _remove_orphans(parent)
        self._group = parent / f"minute8-{os.getpid()}-{name}"
        self._quota_us = max(_MIN_QUOTA_US, round(_PERIOD_US * memory_mb / PROCESSOR_MB))
        try:
            self._group.mkdir(exist_ok=True)
            if self._is_v2:
                (self._group / "cpu.weight").write_text("10000")
            else:
                (self._group / "cpu.shares").write_text("102400")
            self._set(_PERIOD_US)
        except OSError as error:
            raise QuotaError(f"no quota below {parent}: {error}") from error

    def add(self, pid: int) -> None:
        """Take in this process, and what it starts from now on. One that has ended needs none."""
        with suppress(ProcessLookupError):
            (self._group / "cgroup.procs").write_text(str(pid))

    def limit(self) -> None:
        """The init phase is over: from now on only the memory's share."""
        self._set(self._quota_us)

    def _set(self, quota_us: int) -> None:
        if self._is_v2:
            (self._group / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}")
        else:
            (self._group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (self._group / "cpu.cfs_quota_us").write_text(str(quota_us))

    def remove(self) -> None:
        """Once its processes have ended."""
        for _ in range(50):
            with suppress(OSError):
                self._group.rmdir()
                return
            time.sleep(0.02)


def _remove_orphans(parent: Path) -> None:
    """Groups of processes of ours that were killed before they could remove them."""
    for group in parent.glob("minute8-*-*"):
        if not Path(f"/proc/{group.name.split('-')[1]}").exists():
            with suppress(OSError):  # something still runs in it
                group.rmdir()


def why_not() -> str:
    """Why there are no quotas on this machine; empty where there are."""
    try:
        Quota("probe", PROCESSOR_MB).remove()
    except QuotaError as error:
        return str(error)
    return ""


def _parent() -> tuple[Path, bool]:
    """The group to put ours into, and whether it is of version 2."""
    if (_V2 / "cgroup.controllers").exists():
        with suppress(OSError):
            (_V2 / "cgroup.subtree_control").write_text("+cpu")
        return _V2, True
    if (_V1 / "cpu.cfs_quota_us").exists():
        return _V1, False
    raise QuotaError(f"there are no control groups at {_V2}")


def install(lambda_runtime: Any) -> None:
    """Give each worker its share from the end of its init phase. Logs why where the machine sets no quotas.

    Changes the server's module ministack.core.lambda_runtime.
    """
    if reason := why_not():
        logger.warning("strict: functions have the whole processor: %s", reason)
        return
    spawn, numbers = lambda_runtime.Worker._spawn, itertools.count(1)

    def with_share(worker: Any) -> Any:
        result = spawn(worker)  # to the end of init
        quota = Quota(f"{worker.func_name}-{next(numbers)}", int(worker.config.get("MemorySize", 128)))
        quota.limit()
        quota.add(worker._proc.pid)
        return result

    lambda_runtime.Worker._spawn = with_share
