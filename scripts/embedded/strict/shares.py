"""Lambda workers with a function's share of a processor, from the end of their init phase."""

from __future__ import annotations

import itertools
import logging
from typing import Any

from scripts.embedded.strict.quota import Quota, why_not

logger = logging.getLogger("embedded")


def install(lambda_runtime: Any) -> None:
    """Into the server's module ministack.core.lambda_runtime. Says so in the log where there are no quotas."""
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
