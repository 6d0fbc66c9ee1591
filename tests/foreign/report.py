"""`docs/foreign-suites.md`, made from the facts: who agrees, and the class and reason of every disagreement."""

from __future__ import annotations

from collections import Counter
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

DOCUMENT = Path(__file__).parents[2] / "docs" / "foreign-suites.md"
_INTRODUCTION = """\
# What the suites of other projects say

The tables in the tests of other projects say when a cron expression fires. They are used here as facts: expression,
zone, time, expected result. Minute8 gets each fact exactly as it is written, and the answers are compared. No code of
those projects is in this repository. `python -m tests.foreign` writes this page. `python -m tests.foreign list cronos`
prints every single disagreement. A test checks the counts.

**Nothing is unexplained.** A disagreement has a class only under one condition: reading the expression and keeping the
clock as the other project does gives exactly its answer (`tests/foreign/classes.py`). A few classes cannot be computed
here and are a pattern instead: another project's hash, an option, a question asked backwards. Most disagreements are
syntax that Minute8 refuses with a reason, because it has several readings. An expression that never fires counts as
agreement if the other project finds no time either.
"""


class Disagreement(NamedTuple):
    """A fact, our answer, and the class."""

    fact: Fact
    said: Any
    name: str


def disagreements(name: str, suite: Suite) -> Iterator[Disagreement]:
    """Every fact of a suite with which we disagree."""
    for fact in suite.facts:
        said = answer(fact)
        if not agrees(fact, said):
            yield Disagreement(fact, said, reason(name, fact) or "unclassified")


def counted(found: dict[str, list[Disagreement]]) -> dict[str, dict[str, int]]:
    """Suite -> class -> count."""
    return {name: dict(sorted(Counter(one.name for one in all_of).items())) for name, all_of in found.items()}


def text(
    all_suites: dict[str, Suite], found: dict[str, list[Disagreement]], differential: dict[str, Any]
) -> str:
    """The whole page."""
    parts = [_INTRODUCTION, _overview(all_suites, found)]
    parts += [_section(name, all_suites[name], found[name]) for name in all_suites]
    parts += [_differential(differential), _legend(found, differential), _MISSING]
    return "\n".join(parts)


def _overview(all_suites: dict[str, Suite], found: dict[str, list[Disagreement]]) -> str:
    rows = [
        f"| {suite.about['suite']} | {suite.about['version']} | {suite.about['licence']} | {len(suite.facts)} "
        f"| {len(suite.facts) - len(found[name])} | {len(found[name])} | {_unclassified(found[name])} |"
        for name, suite in all_suites.items()
    ]
    facts = sum(len(suite.facts) for suite in all_suites.values())
    others = sum(map(len, found.values()))
    unexplained = sum(map(_unclassified, found.values()))
    rows.append(f"| **all** | | | **{facts}** | **{facts - others}** | **{others}** | **{unexplained}** |")
    head = "| suite | version | licence | facts | agree | other | unexplained |\n" + "| --- " * 7 + "|"
    return f"Zones are those of tzdata {TZDATA_VERSION}.\n\n{head}\n" + "\n".join(rows) + "\n"


def _unclassified(found: list[Disagreement]) -> int:
    return sum(1 for one in found if one.name == "unclassified")


def _section(name: str, suite: Suite, found: list[Disagreement]) -> str:
    about = suite.about
    counts = Counter(one.name for one in found)
    examples = {one.name: one for one in reversed(found)}
    rows = [
        f"| {label} | {count} | {shown(examples[label])} |"
        for label, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    agree = len(suite.facts) - len(found)
    files = ", ".join(f"`{Path(file).name}`" if " " not in file else file for file in about["files"])
    source = fill(f"{about['project']}: {files}.", 120, break_long_words=False)
    return (
        f"## {about['suite']}\n\n{source}\n"
        f"{len(suite.facts)} facts, {agree} agree ({100 * agree / len(suite.facts):.1f} %).\n\n"
        "| class | facts | for example |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )


def shown(one: Disagreement) -> str:
    """A disagreement as a line to read."""
    fact = one.fact
    cron = f"`{fact.cron.strip()!r}`".replace("'", "").replace("|", "\\|")
    match fact.kind:
        case "accepted" | "refused" | "never":
            theirs = {"accepted": "taken", "refused": "refused", "never": "never fires"}[fact.kind]
            ours = "refused" if one.said == REFUSED else "taken"
        case "same" | "differs":
            other = f"`{fact.expected.strip()}`"
            theirs = f"same as {other}" if fact.kind == "same" else f"not {other}"
            unread = REFUSED if refusal(fact.expected) else one.said
            ours = "refused" if unread == REFUSED else "the same" if one.said else "not"
        case _:
            theirs, ours = _clock(fact.expected, fact), _clock(one.said, fact)
            cron += f" {fact.zone}" if fact.zone != "UTC" else ""
    return f"{cron}: {theirs} there, {ours} here"


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
    rows = []
    for name, suite in results["suites"].items():
        rows.append(f"| {name} | *agree* | {suite['agree']} of {suite['asked']} | |")
        for label, count in sorted(suite["classes"].items(), key=lambda item: (-item[1], item[0])):
            rows.append(f"| {name} | {label} | {count} | {results['examples'][f'{name}: {label}']} |")
    return (
        "## Differential\n\n"
        f"{results['expressions']} generated expressions ({results['distinct']} distinct, seed {results['seed']}) are "
        "compared with\ncronsim 2.8 and with a reference of Debian's rule. Each is asked in the twelve hours "
        "around a random clock change of a\nrandom zone between 1970 and 2037. Its first 20 fires from a random time "
        "on in UTC are compared with cronsim. The\nreference (`tests/foreign/debian.py`) was written from cron(8) and "
        "crontab(5). It gives what Debian's own daemon did in\nall the facts measured above.\n\n"
        "```sh\npython -m tests.foreign differential --expressions 10000 --seed 8\n```\n\n"
        "| against | class | times | for example |\n| --- | --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )


def _legend(found: dict[str, list[Disagreement]], results: dict[str, Any]) -> str:
    used = {name for all_of in found.values() for one in all_of for name in one.name.split(" + ")}
    used |= {
        name
        for suite in results["suites"].values()
        for label in suite["classes"]
        for name in label.split(" + ")
    }
    rows = [f"| {name} | {why} |" for name, why in WHY.items() if name in used]
    return "## The classes, and why\n\n| class | why |\n| --- | --- |\n" + "\n".join(rows) + "\n"


_MISSING = """\
## What is not here

- Vixie's cron has no tests of its own for times. Its facts were measured: Debian's daemon ran a crontab through the
  clock changes of New York, Lord Howe and Troll in 2025, its clock set and sped up sixty times by libfaketime. They
  are minutes.
- Quartz: only the tests of `CronExpression`. Those of its triggers and calendars are not about expressions. Facts about
  "now" use a fixed time.
- croniter: what its tests ask and get, recorded while they ran. Its fuzz and random (`R`) tests have no fixed answers.
- robfig's parser: the field tests with invented bounds are put into the minute field.
- cronsim: the tests of 2.7, the newest available ones, with the answers of 2.8.
- systemd, EventBridge Scheduler, Temporal and Kubernetes publish no such tables, or use one of the above.
"""


def made(differential: dict[str, Any]) -> tuple[str, dict[str, dict[str, int]]]:
    """The page and its counts."""
    all_suites = suites()
    found = {name: list(disagreements(name, suite)) for name, suite in all_suites.items()}
    return text(all_suites, found, differential), counted(found)
