"""An operator's nightmare: faults at random, each noticed by its alarm and repaired by its page of the runbook."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.docs.test_runbook import rows
from tests.runbook.faults import FAULTS, Fault
from tests.runbook.site import Site

# Metrics take a minute or two to arrive, and alarms are evaluated once a minute.
ARRIVAL_S = 120
_NEXT_S = (5.0, 40.0)
_LOOK_S = 2.0
_ALARM = "ALARM"


@dataclass
class Happened:
    """A fault that was made: when its alarm rang (None: not yet), and what was wrong after its repair."""

    fault: Fault
    broken_at: float
    noticed_at: float | None = None
    left: str | None = None

    @property
    def stated_s(self) -> int:
        return stated_s(self.fault)

    @property
    def is_over(self) -> bool:
        return self.left is not None

    @property
    def is_well(self) -> bool:
        """Noticed in its stated time, and repaired."""
        in_time = (
            self.noticed_at is not None and self.noticed_at - self.broken_at <= self.stated_s + ARRIVAL_S
        )
        return in_time and self.left == ""


def stated_s(fault: Fault) -> int:
    """How long its alarm may take by the runbook's table, and the fault to show in its metric."""
    return int(rows()[fault.page][0].removesuffix(" min")) * 60 + fault.shows_after_s


def choices(
    happened: Iterable[Happened], alarms: dict[str, str], left_s: float, faults: Iterable[Fault] = FAULTS
) -> list[Fault]:
    """The faults that can be made now: no other of their part is open, their alarm is quiet, and they fit the time.

    Of these, those that were made least often.
    """
    made = Counter(one.fault.name for one in happened)
    busy = {one.fault.part for one in happened if not one.is_over}
    able = [
        fault
        for fault in faults
        if fault.part not in busy
        and alarms.get(fault.page, _ALARM) != _ALARM
        and stated_s(fault) + ARRIVAL_S <= left_s
    ]
    least = min((made[fault.name] for fault in able), default=0)
    return [fault for fault in able if made[fault.name] == least]


class Nightmare:
    """Faults on one stage, until the time is over and each of them is."""

    def __init__(self, site: Site, rng: random.Random, say: Callable[[str], None]) -> None:
        self._site = site
        self._rng = rng
        self._say = say
        self.happened: list[Happened] = []

    def reign(self, seconds: float, meanwhile: Callable[[], object]) -> None:
        """Make faults for this time. `meanwhile` is called every two seconds, as the stage's users would."""
        now = time.time()
        end, next_at = now + seconds, now
        while (now := time.time()) < end or not all(one.is_over for one in self.happened):
            alarms = self._site.alarms()
            for one in self.happened:
                self._look_at(one, alarms, now)
            if now >= next_at and (able := choices(self.happened, alarms, end - now)):
                self._make(self._rng.choice(able))
                next_at = now + self._rng.uniform(*_NEXT_S)
            meanwhile()
            time.sleep(_LOOK_S)

    def _make(self, fault: Fault) -> None:
        self._say(f"broken: {fault.name}")
        fault.breaks(self._site)
        self.happened.append(Happened(fault, time.time()))

    def _look_at(self, one: Happened, alarms: dict[str, str], now: float) -> None:
        if one.is_over:
            return
        if alarms[one.fault.page] == _ALARM:
            one.noticed_at = now
            self._say(f"{one.fault.page} rings after {now - one.broken_at:.0f} s; its page is followed")
        elif now - one.broken_at <= one.stated_s + ARRIVAL_S:
            return
        else:
            self._say(f"{one.fault.page} does not ring for: {one.fault.name}")
        self._site.follow(one.fault.page, checks=one.fault.checks)
        found = self._site.problems()
        one.left = "; ".join(f"{check}: {found[check]}" for check in one.fault.checks & found.keys())
        self._say(f"repaired: {one.fault.name}" if not one.left else f"NOT repaired: {one.left}")


def table(happened: Iterable[Happened]) -> str:
    """Fault × alarm × time to notice × page × repaired, as Markdown."""
    lines = [
        "| fault | alarm | noticed after | at most | page | repaired |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in happened:
        noticed = "never" if one.noticed_at is None else f"{one.noticed_at - one.broken_at:.0f} s"
        page = one.fault.page
        told = "yes" if one.left == "" else f"no: {one.left}"
        most = one.stated_s + ARRIVAL_S
        lines.append(f"| {one.fault.name} | `{page}` | {noticed} | {most} s | [{page}]({page}.md) | {told} |")
    return "\n".join(lines)
