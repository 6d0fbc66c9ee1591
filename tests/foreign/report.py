"""`tests/foreign/README.md`, made from the facts: who agrees, and the class and reason of every disagreement."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from common.timing.zones import TZDATA_VERSION
from tests.foreign.classes import reason
from tests.foreign.facts import REFUSED, Fact, Suite, agrees, answer, refusal, suites
from tests.foreign.manners import WHY

MIN_FACTS_SHOWN = 10  # of a class on the page
DOCUMENT = Path(__file__).with_name("README.md")
_INTRODUCTION = """\
# What the suites of other projects say

The tests of other projects say when a cron expression fires. Here their tables are facts: expression, zone, time,
expected result. Minute8 gets each fact exactly as it is written. This repository has no code of those projects.
`python -m tests.foreign` writes this page, and `python -m tests.foreign list cronos` prints every disagreement with
its reason. A test checks the counts.

**Nothing is unexplained.** A disagreement gets a class if reading the expression and keeping the clock as the other
project does gives exactly its answer (`tests/foreign/classes.py`). A few classes cannot be computed and are patterns:
another project's hash, an option, a question asked backwards. Most disagreements are syntax that Minute8 refuses with a
reason, because it has several readings. An expression that never fires agrees if the other project finds no time.
"""


class Disagreement(NamedTuple):
    """A fact, our answer, and the class."""

    fact: Fact
    our_answer: Any
    name: str


BySuite = dict[str, list[Disagreement]]


def disagreements(name: str, suite: Suite) -> Iterator[Disagreement]:
    """Every fact of a suite with which we disagree."""
    for fact in suite.facts:
        our_answer = answer(fact)
        if not agrees(fact, our_answer):
            yield Disagreement(fact, our_answer, reason(name, fact) or "unclassified")


def counted(by_suite: BySuite) -> dict[str, dict[str, int]]:
    """Suite -> class -> count."""
    return {
        name: dict(sorted(Counter(each.name for each in disagreed).items()))
        for name, disagreed in by_suite.items()
    }


def text(all_suites: dict[str, Suite], by_suite: BySuite, differential: dict[str, Any]) -> str:
    """The whole page."""
    parts = [_INTRODUCTION, _overview(all_suites, by_suite), _differential(differential)]
    return "\n".join([*parts, _classes(all_suites, by_suite, differential), _MISSING])


def _overview(all_suites: dict[str, Suite], by_suite: BySuite) -> str:
    rows = [
        f"| {suite.about['suite']} | {suite.about['project']}: {_files(suite)} | {suite.about['version']} "
        f"| {suite.about['licence']} | {len(suite.facts)} | {len(suite.facts) - len(by_suite[name])} "
        f"| {len(by_suite[name])} | {_unclassified(by_suite[name])} |"
        for name, suite in all_suites.items()
    ]
    facts = sum(len(suite.facts) for suite in all_suites.values())
    disagreed = sum(map(len, by_suite.values()))
    unexplained = sum(map(_unclassified, by_suite.values()))
    rows.append(
        f"| **all** | | | | **{facts}** | **{facts - disagreed}** | **{disagreed}** | **{unexplained}** |"
    )
    head = "| suite | from | version | licence | facts | agree | other | unexplained |\n" + "| --- " * 8 + "|"
    return f"Zones are those of tzdata {TZDATA_VERSION}.\n\n{head}\n" + "\n".join(rows) + "\n"


def _files(suite: Suite) -> str:
    return ", ".join(f"`{Path(file).name}`" if " " not in file else file for file in suite.about["files"])


def _unclassified(disagreed: list[Disagreement]) -> int:
    return sum(1 for each in disagreed if each.name == "unclassified")


def shown(disagreement: Disagreement) -> str:
    """A disagreement as a line to read."""
    fact, our_answer = disagreement.fact, disagreement.our_answer
    cron = f"`{fact.cron.strip()!r}`".replace("'", "").replace("|", "\\|")
    match fact.kind:
        case "accepted" | "refused" | "never":
            their_text = {"accepted": "taken", "refused": "refused", "never": "never fires"}[fact.kind]
            our_text = "refused" if our_answer == REFUSED else "taken"
        case "same" | "differs":
            other = f"`{fact.expected.strip()}`"
            their_text = f"same as {other}" if fact.kind == "same" else f"not {other}"
            unread = REFUSED if refusal(fact.expected) else our_answer
            our_text = "refused" if unread == REFUSED else "the same" if our_answer else "not"
        case _:
            their_text, our_text = _clock(fact.expected, fact), _clock(our_answer, fact)
            cron += f" {fact.zone}" if fact.zone != "UTC" else ""
    why = " ".join(WHY.get(part, "") for part in disagreement.name.split(" + "))
    return f"{cron}: {their_text} there, {our_text} here\t{why}"


def _clock(value: Any, fact: Fact) -> str:
    if value == REFUSED:
        return "refused"
    if isinstance(value, bool):
        return f"{'fires' if value else 'does not fire'} at {_clock(fact.at, fact)}"
    if isinstance(value, int):
        return datetime.fromtimestamp(value, ZoneInfo(fact.zone)).isoformat().replace("+00:00", "Z")
    if isinstance(value, list):
        return ", ".join(_clock(at, fact) for at in value[:2]) + (" …" if len(value) > 2 else "") or "nothing"
    return "nothing"


def _differential(results: dict[str, Any]) -> str:
    agreed = ", ".join(
        f"{suite['agree']} of {suite['asked']} answers with {name}"
        for name, suite in results["suites"].items()
    )
    paragraph = fill(
        f"{results['expressions']} generated expressions ({results['distinct']} distinct, seed {results['seed']}) are "
        "compared with cronsim 2.8 and with a reference of Debian's rule. Each is asked in the twelve hours around a "
        "random clock change of a random zone between 1970 and 2037, and cronsim also for its first 20 fires in UTC. "
        "The reference (`tests/foreign/debian.py`) gives what Debian's own daemon did in all the facts above. "
        f"Minute8 agrees in {agreed}; the rest is in the table below.",
        120,
        break_long_words=False,
    )
    command = "`python -m tests.foreign differential --expressions 10000 --seed 8` repeats it."
    return f"## Generated expressions\n\n{paragraph}\n{command}\n"


def _classes(all_suites: dict[str, Suite], by_suite: BySuite, results: dict[str, Any]) -> str:
    """Each class once: how often it plays a part in which suite, and why we differ."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, disagreed in by_suite.items():
        for each in disagreed:
            for part in each.name.split(" + "):
                counts[part][all_suites[name].about["suite"]] += 1
    for name, suite in results["suites"].items():
        for label, count in suite["classes"].items():
            for part in label.split(" + "):
                counts[part][f"generated, {name}"] += count
    frequent = [name for name in WHY if counts[name].total() >= MIN_FACTS_SHOWN]
    rare = [name for name in WHY if 0 < counts[name].total() < MIN_FACTS_SHOWN]
    rows = [f"| {name} | {_places(counts[name])} | {WHY[name]} |" for name in frequent]
    rare_facts = sum(counts[name].total() for name in rare)
    rest = fill(
        f"{len(rare)} further classes have fewer than {MIN_FACTS_SHOWN} facts each, {rare_facts} in all. "
        "`python -m tests.foreign list` prints them with their reasons.",
        120,
        break_long_words=False,
    )
    return (
        "## The classes, and why\n\nA fact with several classes counts in each of them.\n\n"
        "| class | facts | why |\n| --- | --- | --- |\n" + "\n".join(rows) + f"\n\n{rest}\n"
    )


def _places(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


_MISSING = """\
## What is not here

- Debian's cron has no tests for times. Its daemon ran through the clock changes of New York, Lord Howe and Troll in
  2025. These facts are minutes.
- Quartz: only the tests of `CronExpression`. Facts about "now" use a fixed time.
- croniter: recorded while its tests ran. Its fuzz and random (`R`) tests have no fixed answers.
- robfig's parser: the field tests with invented bounds are put into the minute field.
- cronsim: the tests of 2.7, the newest available ones, with the answers of 2.8.
- systemd, EventBridge Scheduler, Temporal and Kubernetes publish no such tables, or use one of the above.
"""


def page_and_counts(differential: dict[str, Any]) -> tuple[str, dict[str, dict[str, int]]]:
    """The page and its counts."""
    all_suites = suites()
    by_suite = {name: list(disagreements(name, suite)) for name, suite in all_suites.items()}
    return text(all_suites, by_suite, differential), counted(by_suite)
