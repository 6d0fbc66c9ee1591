"""An operator's nightmare: faults at random, each noticed by its alarm and repaired by its page of the runbook."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from scripts.cloudwatch.alarms import declared, waits_s
from tests.runbook.faults import FAULTS, Fault, mapping_is_disabled
from tests.runbook.site import Site

# The next tick puts right a planned_until that is set back, before its alarm rings. So planners do not plan here.
NIGHTMARES = (
    *(fault for fault in FAULTS if fault.rings),
    Fault(
        "the mapping to the planners is disabled",
        "planning-lag",
        "ticks",
        mapping_is_disabled("planner"),
        frozenset({"mapping planning", "planned until", "unfinished planning"}),
        shows_after_s=600,
    ),
)
# So that each tick divides its window among planners. The limits are those of production.
PARAMETERS = {
    "canary": "true",
    "plannerShareEntries": "20",
    "maxReceiveCount": "20",
    "executorTimeoutS": "300",
}
# Metrics take a minute or two to arrive, and alarms are evaluated once a minute.
ARRIVAL_S = 120
# A page whose fault is still there a minute later is followed again, at most so often.
AGAIN_S = 60
MAX_TIMES = 4
_NEXT_S = (5.0, 40.0)
_LOOK_S = 2.0
_ALARM = "ALARM"


@dataclass
class Happened:
    """A fault that was made: when its alarm rang (None: not yet), and what was wrong after its last repair.

    Its page was `followed` so often, and its alarm was quiet again at `quiet_at`.
    """

    fault: Fault
    broken_at: float
    noticed_at: float | None = None
    remaining: str | None = None
    followed: int = 0
    next_look_at: float = 0.0
    quiet_at: float | None = None

    @property
    def stated_s(self) -> int:
        return stated_s(self.fault)

    @property
    def span(self) -> tuple[float, float]:
        """From its begin until its alarm was quiet."""
        return self.broken_at, math.inf if self.quiet_at is None else self.quiet_at

    @property
    def is_over(self) -> bool:
        """Repaired, or given up."""
        return self.remaining == "" or self.followed == MAX_TIMES

    @property
    def is_well(self) -> bool:
        """Noticed in its stated time, and repaired."""
        in_time = (
            self.noticed_at is not None and self.noticed_at - self.broken_at <= self.stated_s + ARRIVAL_S
        )
        return in_time and self.remaining == ""


def stated_s(fault: Fault) -> int:
    """How long its alarm may take by the runbook's table, and the fault to show in its metric."""
    return waits_s(fault.page, declared()) + fault.shows_after_s


def choices(
    happened: Iterable[Happened], alarms: dict[str, str], left_s: float, faults: Iterable[Fault] = NIGHTMARES
) -> list[Fault]:
    """The faults that can be made now: none of a part in their way is open, their alarm is quiet, they fit the time.

    Of these, those that were made least often.
    """
    counts = Counter(incident.fault.name for incident in happened)
    current = [incident.fault for incident in happened if not incident.is_over]
    busy, needed = (
        {fault.part for fault in current},
        {part for fault in current for part in fault.needs},
    )
    able = [
        fault
        for fault in faults
        if not busy & {fault.part, *fault.needs}
        and fault.part not in needed
        and alarms.get(fault.page, _ALARM) != _ALARM
        and stated_s(fault) + ARRIVAL_S <= left_s
    ]
    least = min((counts[fault.name] for fault in able), default=0)
    return [fault for fault in able if counts[fault.name] == least]


class Nightmare:
    """Faults on one stage, until the time is over and each of them is. Only those of `pages`, if there are any."""

    def __init__(
        self, site: Site, rng: random.Random, say: Callable[[str], None], pages: Collection[str] = ()
    ) -> None:
        self._site = site
        self._rng = rng
        self._say = say
        self._faults = [fault for fault in NIGHTMARES if not pages or fault.page in pages]
        self.happened: list[Happened] = []
        # Alarms that rang without a fault of their own, and the pages of the faults that were there.
        self.beside: dict[str, set[str]] = {}

    def reign(self, seconds: float, meanwhile: Callable[[], object]) -> None:
        """Make faults for this time. `meanwhile` is called every two seconds, as the stage's users would."""
        now = time.time()
        end, next_at = now + seconds, now
        while (now := time.time()) < end or not all(incident.is_over for incident in self.happened):
            alarms = self._site.alarms()
            self._note_others(alarms)
            for incident in self.happened:
                self._look_at(incident, alarms, now)
            if now >= next_at and (able := choices(self.happened, alarms, end - now, self._faults)):
                self._make(self._rng.choice(able))
                next_at = now + self._rng.uniform(*_NEXT_S)
            meanwhile()
            time.sleep(_LOOK_S)

    def _make(self, fault: Fault) -> None:
        self._say(f"broken: {fault.name}")
        fault.breaks(self._site)
        self.happened.append(Happened(fault, time.time()))

    def _note_others(self, alarms: dict[str, str]) -> None:
        """An alarm without a fault of its own is noted with the faults that are there."""
        broken_pages = {incident.fault.page for incident in self.happened}
        current_pages = {incident.fault.page for incident in self.happened if not incident.is_over}
        for name, state in alarms.items():
            if state == _ALARM and name not in broken_pages and name not in self.beside:
                self.beside[name] = current_pages
                self._say(f"{name} rings too, beside {', '.join(sorted(current_pages)) or 'nothing'}")

    def _look_at(self, incident: Happened, alarms: dict[str, str], now: float) -> None:
        rings = alarms[incident.fault.page] == _ALARM
        if incident.is_over:
            if not rings and incident.quiet_at is None:
                incident.quiet_at = now
            return
        if not incident.followed:
            if rings:
                incident.noticed_at = max(incident.broken_at, self._rings_since(incident.fault.page))
                self._say(
                    f"{incident.fault.page} rings after {incident.noticed_at - incident.broken_at:.0f} s"
                )
            elif now - incident.broken_at <= incident.stated_s + ARRIVAL_S:
                return
            else:
                self._say(f"{incident.fault.page} does not ring for: {incident.fault.name}")
        elif now < incident.next_look_at:
            return
        self._follow(incident)

    def _follow(self, incident: Happened) -> None:
        """Follow its page, and look what is left. A fault that no check of the doctor finds is over with its alarm."""
        self._site.follow(incident.fault.page, checks=incident.fault.checks)
        incident.followed += 1
        incident.next_look_at = time.time() + AGAIN_S
        try:
            problems = self._site.problems()
            remaining = [
                f"{check}: {problems[check]}" for check in sorted(incident.fault.checks & problems.keys())
            ]
        except AssertionError as error:  # AWS did not answer it
            remaining = [str(error)]
        if not incident.fault.checks and self._site.alarms()[incident.fault.page] == _ALARM:
            remaining = ["its alarm rings"]
        incident.remaining = "; ".join(remaining)
        self._say(
            f"not yet repaired: {incident.remaining}" if remaining else f"repaired: {incident.fault.name}"
        )

    def _rings_since(self, alarm: str) -> float:
        answer = self._site.client("cloudwatch").describe_alarms(
            AlarmNames=[self._site.named(alarm)], AlarmTypes=["MetricAlarm", "CompositeAlarm"]
        )
        [alarm] = [*answer["MetricAlarms"], *answer["CompositeAlarms"]]
        return float(alarm["StateUpdatedTimestamp"].timestamp())


def table(happened: Iterable[Happened]) -> str:
    """Fault × alarm × time to notice × page × repaired, as Markdown."""
    lines = [
        "| fault | alarm | noticed after | at most | page | repaired | quiet after |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for incident in happened:
        noticed, quiet = (_after(at, incident.broken_at) for at in (incident.noticed_at, incident.quiet_at))
        page, most = incident.fault.page, incident.stated_s + ARRIVAL_S
        repaired = (
            f"yes, at try {incident.followed}" if incident.remaining == "" else f"no: {incident.remaining}"
        )
        cells = (
            incident.fault.name,
            f"`{page}`",
            noticed,
            f"{most} s",
            f"[{page}]({page}.md)",
            repaired,
            quiet,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _after(at: float | None, broken_at: float) -> str:
    return "never" if at is None else f"{at - broken_at:.0f} s"
