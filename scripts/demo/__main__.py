"""Shows Minute8 at work: `make demo`, until Ctrl-C, or `make demo SECONDS=90`, which also checks the result.

Exits with 1 if a due execution is missing, doubled, early or unexplained.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Sequence

from rich.console import Console

from scripts.demo.show import Show
from scripts.demo.stage import Stage
from scripts.demo.view import LiveView, PlainView, View, figures
from scripts.demo.witness import calls_in, problems
from scripts.demo.workload import LIVELY_TENANT, Registration, lively_jobs, real_workload
from scripts.embedded import find


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.demo", description=__doc__)
    parser.add_argument("--seconds", type=int, default=0, help="end after this many seconds; 0: at Ctrl-C")
    parser.add_argument("--picture", metavar="FILE.svg", help="also write the last table as an SVG")
    arguments = parser.parse_args()
    embedded = find()
    if embedded is None:
        print("the embedded AWS is not running: `make up` starts it", file=sys.stderr)
        return 2
    console = Console()
    stage = Stage(embedded.env())
    target = stage.deploy_target()
    stage.allow({LIVELY_TENANT}, target)
    console.print(f"the console is {embedded.api_url}/console; a key of {LIVELY_TENANT!r}, for a day:")
    console.print(stage.key_for_a_day(LIVELY_TENANT), soft_wrap=True)
    _tick_if_due(stage, console)
    started_at = time.time()
    lively = stage.register(lively_jobs(target, started_at))
    view: View = LiveView(console) if console.is_terminal or arguments.picture else PlainView()
    show = Show(stage, lively, view, started_at)
    # Meanwhile the first runs are shown.
    stopping = threading.Event()
    arguments_of_thread = (stage, list(real_workload(target)), target, show, view, stopping)
    registering = threading.Thread(target=_register_real_jobs, args=arguments_of_thread, daemon=True)
    registering.start()
    try:
        show.watch(arguments.seconds or None)
    except KeyboardInterrupt:
        view.event("stopping")
    finally:
        stopping.set()
        registering.join()
        view.close()
    print("\nwaiting for what is under way …", flush=True)
    show.settle()
    show.forget_later_runs()
    verdict, passed = _judge(stage, show)
    print(f"\n{verdict}\nthe embedded AWS goes on: `make down` stops it, `make reset` wipes it")
    if isinstance(view, LiveView) and arguments.picture:
        show.refresh()
        view.save_picture(arguments.picture, verdict)
    return 0 if passed else 1


def _register_real_jobs(
    stage: Stage,
    workload: Sequence[Registration],
    target: str,
    show: Show,
    view: View,
    stopping: threading.Event,
) -> None:
    """Register the jobs that no earlier demo has registered, and show all of them. `stopping` ends it."""
    tenants = sorted({registration.tenant for registration in workload})
    stage.allow(tenants, target)
    registered = stage.registered(tenants)
    show.add(registered)
    known = {(job.tenant, job.job_id) for job in registered}
    missing = [job for job in workload if (job.tenant, job.job_id) not in known]
    if missing:
        view.event(f"registering {len(missing)} real jobs of {len(tenants)} tenants …")
    for registration in missing:
        if stopping.is_set():
            return
        show.add(stage.register([registration]))
    view.event(f"{len(workload)} real jobs of {len(tenants)} tenants are registered")


def _tick_if_due(stage: Stage, console: Console) -> None:
    """After a pause of the embedded AWS its rule has missed ticks; call the tick that is due."""
    progress = stage.progress()
    if progress is None or progress.planned_until <= time.time():
        console.print(f"the tick that is due: {stage.tick()}")


def _judge(stage: Stage, show: Show) -> tuple[str, bool]:
    """Compare schedules, runs and the target's own log. Returns the verdict in lines, and whether it is good."""
    for job in show.lively():
        stage.store.delete(LIVELY_TENANT, job.job_id)
    calls = calls_in(stage.target_log(show.started_at))
    found_problems = problems(show.due(), show.runs, calls)
    lines = [
        f"{len(show.due())} executions were due, {len(calls)} calls of their target",
        figures(list(show.runs.values())),
        *(f"PROBLEM {problem}" for problem in found_problems),
        f"problems: {len(found_problems) or 'none'}",
    ]
    return "\n".join(lines), not found_problems


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nstopped; the embedded AWS goes on: `make down` stops it", file=sys.stderr)
        sys.exit(130)
