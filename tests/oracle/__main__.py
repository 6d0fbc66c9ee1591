"""Random jobs on an embedded AWS, and what became of them, against `truth.py`.

    python -m tests.oracle --jobs 150 --seconds 900 --seed 8

It starts an embedded AWS of its own under the strict layer, and stores jobs with several schedules, calendars, moved
times, intervals of the calendar and `max_runs`. Some of them call back, some share the places of a concurrency key.
An HTTP server is their target. At the end the calls that it got, the runs, `next`, `expected` and `explain` are
compared with the truth. A disagreement makes it exit with 1. The same seed makes the same choices, for another time.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from scripts.embedded import deploy, kill, start
from tests.oracle.live import Live
from tests.waiting import keep_clear_of_the_rule


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--jobs", type=int, default=150)
    parser.add_argument("--seconds", type=int, default=900, help="how long the jobs fire")
    parser.add_argument("--seed", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="minute8-oracle-") as directory:
        state_dir = Path(directory)
        print(f"an embedded AWS in {state_dir}, stage test …", flush=True)
        embedded = deploy(start(state_dir, 0, strict=True, tied=True), stage="test")
        try:
            keep_clear_of_the_rule()
            with Live(embedded, random.Random(options.seed), options.seconds) as live:
                live.register(options.jobs)
                time.sleep(max(0.0, live.end + 60 - time.time()))
                live.compare()
        finally:
            kill(state_dir)
    print(
        f"\njobs {options.jobs}, seconds {options.seconds}, seed {options.seed}, load {os.getloadavg()[2]:.1f}"
    )
    for name, count in live.figures.items():
        print(f"{name:44} {count}")
    for problem in live.problems:
        print(problem)
    print(f"{len(live.problems)} disagreements")
    return 1 if live.problems else 0


if __name__ == "__main__":
    sys.exit(main())
