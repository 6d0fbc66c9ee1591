"""Thousands of generated expressions against cronsim and against Debian's rule, every disagreement classified."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice, takewhile
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from common.timing.instants import DAY_S
from common.timing.zones import changes
from tests.foreign import debian
from tests.foreign.classes import reason
from tests.foreign.facts import Fact, agrees, answer
from tests.foreign.generated import Draw, drawn

RESULTS = Path(__file__).parent / "data" / "differential.json"
NOT_ITS_SYNTAX = "not its syntax"
NO_ANSWER = "no answer in 2 s"
_PATIENCE_S = 2
_ORDINARY = 20


def compared(
    count: int, seed: int, progress: Callable[[int, int], None] | None = None, zones: Sequence[str] = ()
) -> dict[str, Any]:
    """The counts of a run: what was asked, how often they agree, and the disagreements by class."""
    answers: Counter[str] = Counter()
    classes: dict[str, Counter[str]] = {"cronsim": Counter(), "debian": Counter()}
    examples: dict[str, str] = {}
    texts = set()
    for number, draw in enumerate(drawn(count, seed, zones), start=1):
        texts.add(draw.text)
        for suite, fact in facts(draw):
            answers[suite] += 1
            name = disagreement(suite, fact)
            if name:
                classes[suite][name] += 1
                examples.setdefault(f"{suite}: {name}", _shown(draw, fact))
        if progress:
            progress(number, count)
    return {
        "expressions": count,
        "seed": seed,
        "distinct": len(texts),
        "suites": {
            suite: {
                "asked": answers[suite],
                "agree": answers[suite] - by_class.total(),
                "classes": dict(sorted(by_class.items())),
            }
            for suite, by_class in classes.items()
        },
        "examples": dict(sorted(examples.items())),
    }


def facts(draw: Draw) -> Iterator[tuple[str, Fact | str]]:
    """The answers of the other projects to a draw, or why there is none."""
    yield "cronsim", _cronsim(draw, draw.around, draw.zone, draw.start, draw.end)
    yield "cronsim", _cronsim(draw, draw.ordinary, "UTC", draw.from_at, None)
    try:
        yield "debian", draw.around(debian.fires(draw.text, draw.zone, draw.start, draw.end))
    except ValueError:
        yield "debian", NOT_ITS_SYNTAX


def disagreement(suite: str, fact: Fact | str) -> str:
    """The class of a disagreement, "" if we agree."""
    if isinstance(fact, str):
        return fact
    our_answer = answer(fact)
    if agrees(fact, our_answer):
        return ""
    return reason(suite, fact) or _cronsim_fault(suite, fact, our_answer) or "unclassified"


def _cronsim(
    draw: Draw, fact: Callable[[list[int]], Fact], zone: str, start: int, end: int | None
) -> Fact | str:
    text = draw.text.replace("L5", "5L")
    try:
        with _patience():
            cronsim_times = CronSim(text, datetime.fromtimestamp(start - 1, ZoneInfo(zone)))
            times = (int(when.timestamp()) for when in cronsim_times)
            return fact(list(takewhile(lambda at: at < end, times) if end else islice(times, _ORDINARY)))
    except CronSimError:
        return NOT_ITS_SYNTAX
    except TimeoutError:
        return NO_ANSWER


@contextmanager
def _patience() -> Iterator[None]:
    """Raise TimeoutError after a while: cronsim can loop forever in a gap."""

    def out_of_it(signum: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, out_of_it)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _cronsim_fault(suite: str, fact: Fact, our_answer: list[int]) -> str:
    """Two faults of cronsim, each held to what it can do: where the clock changes by a part of an hour it loses fires
    and never adds any; where midnight is skipped it is wrong in the first hour of that day alone."""
    if suite != "cronsim" or fact.kind != "between":
        return ""
    around = changes(fact.zone, fact.at, fact.until)
    odd = any((change.after - change.before) % 3600 or (change.at + change.after) % 3600 for change in around)
    if odd and not set(fact.expected) - set(our_answer):
        return "a change that is not of whole hours"
    starts = [
        change.at
        for change in around
        if change.after > change.before and (change.at + change.before) % DAY_S == 0
    ]
    differing = set(fact.expected) ^ set(our_answer)
    return "a gap at midnight" if starts and all(0 <= at - starts[0] < 3600 for at in differing) else ""


def _shown(draw: Draw, fact: Fact | str) -> str:
    """A readable example: the expression, the zone and day, and the differing times."""
    if isinstance(fact, str):
        return f"`{draw.text}`, {draw.zone}"
    their_times, our_times = Counter(fact.expected), Counter(answer(fact))
    day = datetime.fromtimestamp(fact.at + 21_600, ZoneInfo(fact.zone))
    only = [
        _times(sorted((a - b).elements()), fact)
        for a, b in ((their_times, our_times), (our_times, their_times))
    ]
    return f"`{fact.cron}`, {fact.zone}, {day:%Y-%m-%d}: only there {only[0]}; only here {only[1]}"


def _times(instants: list[int], fact: Fact) -> str:
    pattern = "%H:%M %z" if fact.kind == "between" else "%m-%d %H:%M"
    shown = [f"{datetime.fromtimestamp(at, ZoneInfo(fact.zone)):{pattern}}" for at in instants[:3]]
    return (", ".join(shown) or "nothing") + (f" … ({len(instants)})" if len(instants) > 3 else "")


def saved() -> dict[str, Any]:
    """The last long run, as committed."""
    results: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
    return results


def save(results: dict[str, Any]) -> None:
    """Keep a long run for the report."""
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
