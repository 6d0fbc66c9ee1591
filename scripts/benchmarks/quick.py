"""Processor time and requests of the hot paths, this code beside its parent commit's, in 90 seconds: make bench-quick.

    python -m scripts.benchmarks.quick [--against REVISION] [--keep]

Times are only printed, since machines differ. Requests and units do not differ: they stand in
scripts/benchmarks/results/quick.json, and another number fails until somebody keeps it on purpose with --keep.

The parent's code is unpacked below build/parent, and measured by its own copy of this file, in turns with this code.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from scripts.measure.rounds import track

ROOT: Final = Path(__file__).resolve().parents[2]
COUNTS_FILE: Final = ROOT / "scripts" / "benchmarks" / "results" / "quick.json"
_PARENT: Final = ROOT / "build" / "parent"
# What both interpreters have installed.
_REQUIREMENTS: Final = ("requirements/run.txt", "requirements/dev.txt")
_ROUNDS: Final = 8
# Of a round, for executions, ticks and requests to the API.
_BATCHES, _TICKS, _CALLS = 20, 2, 20
_REGISTERED: Final = 100
_INITS: Final = {
    "init of scheduler": "from scheduler import handler",
    "init of executor": "from executor import handler",
    "init of notifier": "from minute8.notifier import handler",
    "init of API": "from minute8.api import handler",
}
# A change of this share is named in the change log.
_NOTABLE: Final = 0.05

# One round of a figure: processor seconds, and the requests and units of one of the work's units.
Counts = dict[str, float]
Measured = tuple[float, Counts]
Figures = dict[str, Callable[[], Measured]]


def main(arguments: list[str] | None = None) -> int:
    """Measure and print the table; returns 1 if requests or units differ from those kept."""
    parser = argparse.ArgumentParser(prog="python -m scripts.benchmarks.quick", description=__doc__)
    parser.add_argument("--against", default="HEAD^", help="the commit beside which this code is measured")
    parser.add_argument("--keep", action="store_true", help="keep the requests and units as they are now")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        return _work()
    with ExitStack() as stack:
        own_worker = stack.enter_context(_worker(ROOT, sys.executable))
        parent_worker = _parent_worker(stack, options.against)
        rows, counts = _compare(own_worker, parent_worker)
    print(_table(rows, options.against))
    if options.keep:
        COUNTS_FILE.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")
        return 0
    differences = list(_differences(json.loads(COUNTS_FILE.read_text()), counts))
    print("\n".join(differences) or "requests and units are those of scripts/benchmarks/results/quick.json")
    return 1 if differences else 0


def _parent_worker(stack: ExitStack, revision: str) -> Worker | None:
    """None if git does not have the revision, or its benchmark is broken: this code's figures then stand alone."""
    if not (tree := _unpacked(revision)):
        return None
    try:
        return stack.enter_context(_worker(tree, _python(tree)))
    except RuntimeError as error:
        print(f"{revision} is not measured: {error}", file=sys.stderr)
        return None


def _compare(
    own_worker: Worker, parent_worker: Worker | None
) -> tuple[dict[str, tuple[list[float], list[float]]], dict[str, Counts]]:
    rows: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in own_worker.names}
    counts: dict[str, Counts] = {}
    for number in track(range(_ROUNDS), "rounds"):
        for name in own_worker.names:
            turns = (
                [(own_worker, 0), (parent_worker, 1)] if number % 2 else [(parent_worker, 1), (own_worker, 0)]
            )
            for worker, column in turns:
                if worker and name in worker.names:
                    cpu_s, counted = worker.measure(name)
                    rows[name][column].append(cpu_s)
                    if worker is own_worker and counted:
                        counts[name] = counted
    return rows, counts


def _table(rows: Mapping[str, tuple[list[float], list[float]]], against: str) -> str:
    lines = [f"{'processor ms':<28}{against:>12}{'now':>12}{'now ÷ then':>12}"]
    for name, (now, then) in rows.items():
        shown = f"{statistics.median(now) * 1000:.3f}"
        if not then:
            lines.append(f"{name:<28}{'-':>12}{shown:>12}{'-':>12}")
            continue
        ratio = statistics.median(a / b for a, b in zip(now, then, strict=True))
        progress = "  for the change log" if abs(ratio - 1) > _NOTABLE else ""
        lines.append(f"{name:<28}{statistics.median(then) * 1000:>12.3f}{shown:>12}{ratio:>12.2f}{progress}")
    return "\n".join(lines)


def _differences(kept: Mapping[str, Counts], now: Mapping[str, Counts]) -> Iterator[str]:
    for name in sorted(kept.keys() | now.keys()):
        before, after = kept.get(name, {}), now.get(name, {})
        for request in sorted(before.keys() | after.keys()):
            if before.get(request, 0) != after.get(request, 0):
                yield f"{name}: {request} {before.get(request, 0):g} -> {after.get(request, 0):g}; keep it with --keep"


def _unpacked(revision: str) -> Path | None:
    """The revision's files below build/parent; None if git has no such commit, as in a shallow clone."""
    resolved = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if resolved.returncode:
        return None
    folder = _PARENT / resolved.stdout.strip()
    if not folder.exists():
        archive = subprocess.run(
            ["git", "archive", resolved.stdout.strip()], cwd=ROOT, capture_output=True, check=True
        )
        fresh = folder.with_suffix(".new")
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as content:
            content.extractall(fresh, filter="data")
        fresh.rename(folder)
    return folder if (folder / "scripts" / "benchmarks" / "quick.py").exists() else None


def _python(tree: Path) -> str:
    """An interpreter with the tree's requirements: this one, if they are the same."""
    if _digest(tree) == _digest(ROOT):
        return sys.executable
    environment = _PARENT / f"python-{_digest(tree)}"
    python = environment / "bin" / "python"
    if not (environment / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        lists = [word for name in _REQUIREMENTS for word in ("-r", str(tree / name))]
        command = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*command, "--require-hashes", *lists], check=True)
        (environment / ".ready").touch()
    return str(python)


def _digest(tree: Path) -> str:
    return hashlib.sha256(b"".join((tree / name).read_bytes() for name in _REQUIREMENTS)).hexdigest()[:12]


class Worker:
    """A process that measures one tree's code by that tree's own copy of this file."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.names: list[str] = self._answer()

    def measure(self, name: str) -> Measured:
        """One round of a figure."""
        assert self._process.stdin
        print(name, file=self._process.stdin, flush=True)
        cpu_s, counts = self._answer()
        return cpu_s, counts

    def _answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker {self._process.args!r} ended; its error stands above")
        return json.loads(line)


@contextmanager
def _worker(tree: Path, python: str) -> Iterator[Worker]:
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen(
        [python, "-m", "scripts.benchmarks.quick", "--worker"],
        cwd=tree,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Worker(process)
    finally:
        process.kill()
        process.communicate()


def _work() -> int:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the code prints is no answer
    with ExitStack() as stack:
        figures = _figures(stack)
        for work in figures.values():
            work()
        print(json.dumps(list(figures)), file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(figures[line.strip()]()), file=answers, flush=True)
    return 0


def _figures(stack: ExitStack) -> Figures:
    from scripts.benchmarks import api_cpu

    requests: dict[str, Counts] = {}
    api = stack.enter_context(api_cpu.in_process(_CALLS, requests))
    return {
        "Event, alone": _executions("Event", 1, 1),
        "Event, in tens": _executions("Event", 10, 1),
        "Event, packs of a hundred": _executions("Event", 100, 10),
        "awaited, in tens": _executions("RequestResponse", 10, 1),
        f"tick, {_REGISTERED} due": _tick(),
        **{
            f"API: {name}": partial(_request, name, work, requests)
            for name, work in api.items()
            if name in api_cpu.PAIRS
        },
        **{name: partial(_init, statement) for name, statement in _INITS.items()},
    }


def _executions(invocation: str, size: int, pack: int) -> Callable[[], Measured]:
    """Processor time of one execution, over batches of `size` executions, `pack` in a message."""
    from scripts.benchmarks.executor_stub import ExecutorStub, installed

    first = 0

    def measure() -> Measured:
        nonlocal first
        stub = ExecutorStub(invocation)
        events = [stub.event(first + number * size, size, pack) for number in range(_BATCHES)]
        first += _BATCHES * size
        executions = _BATCHES * size
        with installed(stub) as handle:
            handle(stub.event(first, size, pack), None)  # so that the tenants are known
            stub.units.clear()
            with stub.aws.measured() as cost:
                for event in events:
                    handle(event, None)
        counted = {
            **cost.requests,
            **{name: units for name, units in stub.units.items() if "rules" not in name},
        }
        return cost.cpu_s / executions, {name: round(n / executions, 3) for name, n in counted.items()}

    return measure


def _tick() -> Callable[[], Measured]:
    from scripts.benchmarks import workload
    from scripts.benchmarks.planning import Ticker

    ticker = Ticker(_REGISTERED, workload.DAY + 7 * 3600, _REGISTERED)

    def measure() -> Measured:
        ticks = [ticker.tick() for _ in range(_TICKS)]
        return min(tick.cost.cpu_s for tick in ticks), {**ticks[-1].cost.requests}

    return measure


def _request(name: str, work: Callable[[], float], requests: Mapping[str, Counts]) -> Measured:
    cpu_s = work()
    return cpu_s, dict(requests[name])


def _init(statement: str) -> Measured:
    """Processor time of a fresh interpreter for the import and its clients."""
    from scripts.benchmarks.executor_stub import ENVIRONMENT

    code = f"import time; began = time.process_time(); {statement}; print(time.process_time() - began)"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ["PYTHONPATH"], **ENVIRONMENT}
    environment |= {"AWS_LAMBDA_FUNCTION_NAME": "bench", "AWS_DEFAULT_REGION": "us-east-1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1]), {}


if __name__ == "__main__":
    sys.exit(main())
