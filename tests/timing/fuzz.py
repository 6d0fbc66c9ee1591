"""A long fuzz of the schedules that tenants send, outside CI.

    python -m tests.timing.fuzz                  five minutes
    python -m tests.timing.fuzz --seconds 60

It is coverage-guided if atheris is there (`pip install atheris==3.0.0`, CPython on Linux; nothing else needs it), else
it mutates at random. No input may raise anything but InvalidInput or take over 50 ms of CPU, the best of three tries.
Prints its counts and the slowest input; exits with 1 if an input broke one of the two promises.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import cycle
from pathlib import Path

try:
    import atheris  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    atheris = None

with atheris.instrument_imports(include=["common", "croniter"]) if atheris else nullcontext():
    from common.errors import InvalidInput
    from common.registration.schedule_definition import ScheduleDefinition
    from common.registration.schedule_text import parse_schedule
    from common.timing.fires import next_fires

LIMIT_S = 0.05
NOW = 1_763_694_600
SEEDS = [
    "*/15 0-6,22-2/2 L 1-12 MON#2", "H H(0-7) 15W * ?", "@daily", "90m", "PT1H30M", "P1DT2H", "2025-03-30T02:30:00Z",
    "America/New_York", "59 23 31 12 *", "0 0 29 2 L5", "5-5 1/7 */31 JAN-DEC SUN-SAT", "R(0-10) * * * *",
    "0/15 9-17 ? * 2#1 2026-2030/2", "55-5/5 22-2 L-3 JAN,12 ? *", "0 0 LW 2 ? 2199", "5 0 ? * FRIL 1970-2199",
    "0 0 15W * ? 2199/1",
]  # fmt: skip
ALPHABET = "0123456789*/,-#?@LWHRT:Z+ \t()MONFRIJANDECPSDmhdw.\n\x00é٣"
_START_UP = 3  # the first inputs read zone names and build tables


class Findings:
    """The counts of the run so far."""

    def __init__(self, seconds: float) -> None:
        self.ends_at = time.monotonic() + seconds
        self.tried = self.accepted = 0
        self.slowest_s, self.slowest = 0.0, ""
        self.broken: list[str] = []

    def over(self) -> bool:
        return time.monotonic() >= self.ends_at

    def report(self, how: str) -> int:
        print(
            f"{how}: {self.tried} inputs, {self.accepted} of them accepted, {len(self.broken)} broke a promise"
        )
        print(f"slowest: {self.slowest_s * 1000:.1f} ms of CPU, {self.slowest}")
        for text in self.broken[:20]:
            print(f"broken: {text}")
        sys.stdout.flush()
        return 1 if self.broken else 0


def attempt(raw: object, findings: Findings) -> None:
    """One input; parsed again if it seems slow, since a pause of the garbage collector does not count."""
    findings.tried += 1
    taken_s = _timed(raw, findings)
    if findings.tried <= _START_UP or taken_s <= findings.slowest_s:
        return
    gc.collect()
    taken_s = min(taken_s, _timed(raw, findings), _timed(raw, findings))
    if taken_s > findings.slowest_s:
        findings.slowest_s, findings.slowest = taken_s, repr(raw)[:300]
    if taken_s > LIMIT_S:
        findings.broken.append(f"{taken_s * 1000:.0f} ms: {raw!r}")


def _timed(raw: object, findings: Findings) -> float:
    began = time.process_time()
    try:
        schedule = parse_schedule(raw, job_key="alice/report", now=NOW)  # type: ignore[arg-type]
    except InvalidInput:
        return time.process_time() - began
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        findings.broken.append(f"{error!r}: {raw!r}")
        return 0.0
    taken_s = time.process_time() - began
    findings.accepted += 1
    next_fires(schedule, NOW, 2)
    return taken_s


def shaped(choose: Callable[[int], int], text: Callable[[], str]) -> object:
    """Mostly a cron expression with a zone, sometimes any keys with any text, sometimes any JSON."""
    kind = choose(8)
    if kind < 4:
        eventbridge_rules = {"dialect": "eventbridge", "dst": "eventbridge"} if kind < 2 else {}
        return {"cron": text(), "timezone": "America/New_York", **eventbridge_rules}
    if kind < 6:
        return {"every" if kind == 4 else "at": text()}
    if kind == 6:
        names = (*ScheduleDefinition.__struct_fields__, "x")
        return {names[choose(len(names))]: text() for _ in range(choose(4) + 1)}
    try:
        return json.loads(text())
    except (ValueError, RecursionError):
        return {"exclude": {"dates": [text()], "calendars": [text()]}, "cron": text()}


def guided(findings: Findings) -> None:
    """libFuzzer calls back until the time is over; it does not return, so the process ends here."""

    def run_input(data: bytes) -> None:
        texts = cycle(data[1:].decode("utf-8", "replace").split("|"))
        numbers = cycle(data or b"\0")
        attempt(shaped(lambda most: next(numbers) % most, lambda: next(texts)), findings)
        if findings.over():
            os._exit(findings.report("atheris"))

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(SEEDS * 8):
            Path(corpus, str(number)).write_bytes(bytes([number // len(SEEDS)]) + seed.encode())
        atheris.Setup([sys.argv[0], "-verbosity=0", "-max_len=400", corpus], run_input)
        atheris.Fuzz()


def mutated(findings: Findings, seed: int) -> None:
    """Valid texts, changed in a few places."""
    chance = random.Random(seed)

    def text() -> str:
        letters = list(chance.choice(SEEDS))
        for _ in range(chance.randrange(6)):
            at = chance.randrange(len(letters) + 1)
            letters[at : at + chance.randrange(3)] = chance.choices(ALPHABET, k=chance.randrange(4))
        return "".join(letters) * (1 if chance.random() < 0.98 else 20)

    while not findings.over():
        attempt(shaped(chance.randrange, text), findings)


def main() -> int:
    options = argparse.ArgumentParser(description="Fuzz the reading of schedules.")
    options.add_argument("--seconds", type=float, default=300)
    options.add_argument("--seed", type=int, default=8)
    options.add_argument("--at-random", action="store_true", help="mutate at random even if atheris is there")
    chosen = options.parse_args()
    findings = Findings(chosen.seconds)
    if atheris and not chosen.at_random:
        guided(findings)
    mutated(findings, chosen.seed)
    return findings.report("at random")


if __name__ == "__main__":
    sys.exit(main())
