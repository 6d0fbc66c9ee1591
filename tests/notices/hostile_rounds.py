"""Rounds of the notifier for a tenant with every subscription, failures and texts at their bounds, in a process.

python -m tests.notices.hostile_rounds
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from common.runs.outcome import Outcome
from tests.notices.conftest import make_stage
from tests.notices.test_hostile import failed_runs
from tests.processes import peak_mb
from tests.worlds import open_world

MAX_SUBSCRIPTIONS = 20

JOBS, RUNS_OF_EACH = 100, 50


def main() -> None:
    with open_world() as world, ThreadPoolExecutor(16) as pool, ThreadPoolExecutor(16) as reads:
        stage = make_stage(world, pool, reads)
        stage.addresses.answer = lambda _: Outcome(ok=False, error_type="E" * 100, error="\x02" * 400)
        for nth in range(MAX_SUBSCRIPTIONS):
            stage.subscribe("alice", f"s{nth}")
        world.clock.sleep(1)
        for nth in range(JOBS):
            failed_runs(world, "alice", f"{nth:03d}" + "j" * 125, RUNS_OF_EACH, "\x01" * 400)
        for _ in range(5):
            stage.round()
            world.clock.sleep(60)
        print(json.dumps({"sent": len(stage.addresses.sent), "peak_mb": peak_mb()}))


if __name__ == "__main__":
    main()
