"""A simulated year: python -m tests.simulation --jobs 3000 --seed 8"""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.simulation.truth import Verdict, compare, expected, spot_checked
from tests.simulation.year import TENANT, Simulation


def judge(simulation: Simulation, spots: int) -> tuple[Verdict, int]:
    """Compare what a simulation did with the truth, and the truth with croniter."""
    # A window is planned as a whole: executions after the end have run as well.
    until = simulation.ledger.planned_until
    expected_runs = expected(simulation.ledger, TENANT, until, simulation.calendars)
    verdict = compare(expected_runs, simulation.seen.called, simulation.seen.missed)
    verdict.wrong += simulation.seen.wrong
    rng = random.Random(0)
    return verdict, spot_checked(simulation.ledger, simulation.begins, simulation.ends, rng, spots)


def table(simulation: Simulation, verdict: Verdict, spots: int, wall_s: float) -> list[tuple[str, object]]:
    seen = simulation.seen
    rows: list[tuple[str, object]] = [
        ("jobs", len(simulation.ledger.lives)),
        ("lives of jobs", sum(map(len, simulation.ledger.lives.values()))),
        *sorted(seen.changes.items()),
        ("ticks run", seen.ticks),
        *((f"ticks {fate}", count) for fate, count in sorted(seen.fates.items())),
        *(
            (f"in a tick: {event.strip('_')}", count)
            for event, count in sorted(simulation.wire.happened.items())
        ),
        ("messages delivered twice", seen.duplicates),
        *sorted(seen.statuses.items()),
        ("executions that had to run, and ran once", verdict.runs),
        ("missed, recorded as that", verdict.missed),
        ("overdue at a change, free to run or not", verdict.free),
        ("days compared with croniter.match", spots),
        ("wrong", len(verdict.wrong)),
        ("wall time", f"{wall_s:.0f} s"),
    ]
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description="A simulated year, with faults"
    )
    parser.add_argument("--jobs", type=int, default=3_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--from", dest="begins", default="2027-01-01T00:00:00Z")
    parser.add_argument("--seed", type=int, default=8)
    arguments = parser.parse_args()
    began = time.monotonic()

    def publish(share: float) -> None:
        seconds = time.monotonic() - began
        line = f"\r{share:6.1%}  {seconds:5.0f} s  {sum(map(len, simulation.seen.called.values())):>9,} executions"
        print(line, end="", file=sys.stderr, flush=True)

    simulation = Simulation(arguments.begins, arguments.days, arguments.jobs, arguments.seed)
    simulation.run(publish)
    print(file=sys.stderr)
    verdict, spots = judge(simulation, 60)
    for name, value in table(simulation, verdict, spots, time.monotonic() - began):
        print(f"{name:<45} {value:>12,}" if isinstance(value, int) else f"{name:<45} {value:>12}")
    for problem in verdict.wrong[:20]:
        print("WRONG", problem)
    return 1 if verdict.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
