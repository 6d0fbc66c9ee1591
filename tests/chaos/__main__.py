"""Chaos, end to end: Minute8 on its own embedded AWS, whose processes are killed or stopped, or that is broken.

    python -m tests.chaos --seconds 240 --jobs 300 --seed 8
    python -m tests.chaos --faults --seconds 600 --jobs 60
    python -m tests.chaos --faults --seconds 1800 --jobs 20 --pages no-tick,canary

With --faults an operator's nightmare takes the place of the kills (`make chaos`): faults at random, each of which its
alarm has to notice in its stated time, and its page of the runbook to repair. At the end every execution that was due
has one run in a final state, or this exits with 1. The same seed makes the same choices; what they meet depends on the
machine. With --strict the strict layer of docs/embedded-aws.md is on, and every endpoint speaks TLS.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from scripts.embedded import deploy, kill, start
from tests.chaos.nightmare import PARAMETERS, Nightmare, table
from tests.chaos.play import Play
from tests.chaos.verdict import Verdict
from tests.runbook.site import Site

# A message whose executor was killed comes again a fifth later.
_KILLS = {"executorTimeoutS": "60"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=int, default=240, help="how long processes are killed and stopped")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--every", type=int, default=90, help="seconds between the fire times of a job")
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--faults", action="store_true", help="make faults, and follow the runbook")
    parser.add_argument("--pages", default="", help="only faults of these pages of the runbook, with commas")
    parser.add_argument("--strict", action="store_true", help="with the strict layer and TLS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="minute8-chaos-") as directory:
        return run(Path(directory), options)


def run(state_dir: Path, options: argparse.Namespace) -> int:
    """One play from an empty directory to its verdict."""
    say(f"an embedded AWS in {state_dir}, stage test …")
    strict = options.strict
    embedded = start(state_dir, 0, auth=True, tied=True, strict=strict, tls=strict)
    os.environ.update(embedded.env())  # this process trusts its certificate
    try:
        params = PARAMETERS if options.faults else PARAMETERS | _KILLS
        embedded = deploy(embedded, stage="test", params=params)
        rng = random.Random(options.seed)
        play = Play(embedded, rng, say)
        play.register(options.jobs, options.every)
        if not options.faults:
            play.reign(options.seconds)
            verdict = play.settle()
            report(play.struck, play.redriven, verdict, options)
            return 1 if verdict.problems else 0
        site = Site(embedded, state_dir / "shell")
        nightmare = Nightmare(site, rng, say, [page for page in options.pages.split(",") if page])
        play.haunt(options.seconds, nightmare)
        verdict = play.settle([incident.span for incident in nightmare.happened])
        problems = site.problems()
        report(play.struck, play.redriven, verdict, options)
        print(f"\n{table(nightmare.happened)}\n")
        for alarm, pages in nightmare.beside.items():
            print(f"{alarm} rang beside: {', '.join(sorted(pages)) or 'nothing'}")
        print(f"the doctor finds: {problems or 'nothing'}")
        well = all(fault.is_well for fault in nightmare.happened)
        return 1 if verdict.problems or problems or not well else 0
    finally:
        kill(state_dir)


def report(struck: Counter[str], redriven: int, verdict: Verdict, options: argparse.Namespace) -> None:
    rows: list[tuple[str, object]] = [
        ("jobs, seconds, seed", f"{options.jobs}, {options.seconds}, {options.seed}"),
        ("load of the machine", f"{os.getloadavg()[2]:.1f}"),
        *sorted(struck.items()),
        ("executions that were due", verdict.due),
        *((f"ended {status}", count) for status, count in sorted(verdict.statuses.items())),
        ("attempts", verdict.attempts),
        ("taken over after an executor's death", verdict.takeovers),
        ("called a second time by that", verdict.doubled),
        ("called again by Lambda's own retry of an event", verdict.retried_by_lambda),
        ("dead letters sent again", redriven),
        ("dispatched, and lost by the embedded Lambda", verdict.lost_events),
        ("answered, and not in the target's log", verdict.unwitnessed),
        ("late by more than 10 s", verdict.late),
        ("of them due during a fault", verdict.late_in_faults),
        ("problems", len(verdict.problems)),
    ]
    print()
    for name, value in rows:
        print(f"{name:<46} {value}")
    for problem in verdict.problems:
        print(f"PROBLEM {problem}")


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
