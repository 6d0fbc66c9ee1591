"""python -m scripts.benchmarks                       list the benchmarks
python -m scripts.benchmarks NAME … [--json]       run some (`all`: all of them)
python -m scripts.benchmarks all --keep            keep what was found in results/, and write the documents from it
python -m scripts.benchmarks stale --keep          the same for those alone whose kept figures are of other code
python -m scripts.benchmarks document              write docs/performance.md and docs/capacity.md from results/
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from importlib import import_module

from scripts.benchmarks import document
from scripts.measure import code
from scripts.measure.result import Result, goals_table, keep, kept

BENCHMARKS = {
    "planning": "what one tick costs with 10 thousand to 1 million jobs, next to reading and expanding all",
    "cold_start": "import time and package size per function, next to an empty handler",
    "api_cpu": "the API's processor time for a request, next to a bare handler",
    "direct": "what the hop over HTTP costs, next to the client without HTTP",
    "requests": "AWS requests, units and dollars per million runs, counted from real runs",
    "day": "dollars per million runs in packs, with provisioned tables, and for a day of the mix",
    "bill": "everything that a month of the mix costs, by size, next to two other schedulers",
    "reading": "what looks at ten thousand jobs and at a platform of a million take, next to job by job",
    "projecting": "units and dollars that a million runs take more, so that readers find them by time",
    "looks": "dollars a month for looking at a platform of a million jobs",
    "lateness": "how late runs start on the embedded AWS, next to a bare queue and Lambda",
    "strict_lateness": "how late runs start with a function's share of a processor, and TLS",
    "capacity": "bursts of up to a million executions, simulated: lateness, throttling, cost",
    "model_check": "the simulation next to small loads on the embedded AWS",
    "registered": "ten million registered jobs, a million of them due at one second: until these are in the queue",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks of the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--scale", type=float, default=1.0, help="0.01 is quick, 1 is what is reported")
    parser.add_argument("--json", action="store_true", help="JSON instead of tables")
    parser.add_argument("--keep", action="store_true", help="keep the results, write the documents")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - {*BENCHMARKS, "all", "stale", "document"}:
        parser.error(f"no benchmark {unknown.pop()!r}; there are {', '.join(BENCHMARKS)}")
    if not options.names:
        print("\n".join(f"  {name:<15} {about}" for name, about in BENCHMARKS.items()))
        return 0
    names = _chosen(options.names)
    if took_s := sum(result.took_s for result in kept(names)):
        print(f"{len(names)} benchmarks, which took {took_s / 60:.0f} minutes the last time", file=sys.stderr)
    for name in names:
        result = run(name, options.scale)
        print(json.dumps(result.to_json(), indent=2) if options.json else shown(result), flush=True)
        print(f"{name}: {result.took_s:.0f} s", file=sys.stderr)
        if options.keep:
            keep(result)
    if options.keep or "document" in options.names:
        print("wrote", *document.write(), file=sys.stderr)
    return 0


def _chosen(names: Sequence[str]) -> list[str]:
    if "all" in names:
        return list(BENCHMARKS)
    chosen = {*names, *(stale() if "stale" in names else ())}
    return [name for name in BENCHMARKS if name in chosen]


def stale() -> list[str]:
    """The benchmarks whose kept figures are missing, or of other code than today's."""
    measured = {result.name: result.code for result in kept(list(BENCHMARKS)) if result.scale == 1}
    return [name for name in BENCHMARKS if measured.get(name) != code.digest(name)]


def run(name: str, scale: float) -> Result:
    """Run one benchmark. The others are not imported: some load slowly."""
    began = time.monotonic()
    with redirect_stdout(sys.stderr):  # the functions' logs would stand between the results
        result: Result = import_module(f"scripts.benchmarks.{name}").run(scale)
    took_s = round(time.monotonic() - began, 1)
    return replace(result, commit=code.commit(), code=code.digest(name), took_s=took_s)


def shown(result: Result) -> str:
    goals = [goals_table(result.goals)] if result.goals else []
    tables = [table.text() for table in [*result.tables, *goals]]
    title = f"== {result.name} (scale {result.scale:g}; {result.machine})"
    return "\n\n".join([title, *tables, *result.notes]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
