"""`docs/foreign-suites.md`, made from the facts: who agrees, and of everything else the class and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from common.timing.zones import TZDATA_VERSION
from tests.foreign.classes import reason
from tests.foreign.facts import REFUSED, Fact, Suite, agrees, answer, refusal, suites
from tests.foreign.manners import WHY

DOCUMENT = Path(__file__).parents[2] / "docs" / "foreign-suites.md"
_INTRODUCTION = """\
# What the suites of other projects say

Other projects have written down, in the tables of their tests, when a cron expression fires. Those tables are taken
here as facts (expression, zone, time, what is expected), put to Minute8 exactly as they are written, and compared. No
code of those projects is in this repository. `python -m tests.foreign` makes this page anew, `python -m tests.foreign
list cronos` prints every single disagreement; a test holds the counts.

**Nothing is unexplained.** A disagreement has a class only if reading the expression as the other project does, and
keeping the clock as it does, gives exactly its answer (`tests/foreign/classes.py`); a few classes, of what cannot be
computed here, are a pattern instead: another project's hash, an option, a question asked backwards. Most are syntax
that we refuse with a sentence rather than read in one of several ways. An expression that never fires counts as
agreement where the other project finds no time either.
"""


class Disagreement(NamedTuple):
    """A fact, what we say, and the class."""

    fact: Fact
    said: Any
    name: str


def disagreements(name: str, suite: Suite) -> Iterator[Disagreement]:
    """Every fact of a suite to which we say something else."""
    for fact in suite.facts:
        said = answer(fact)
        if not agrees(fact, said):
            yield Disagreement(fact, said, reason(name, fact) or "unclassified")


def counted(found: dict[str, list[Disagreement]]) -> dict[str, dict[str, int]]:
    """Suite -> class -> how many."""
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
    return (
        f"## {about['suite']}\n\n{about['project']}: {files}. "
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
        f"{results['expressions']} generated expressions ({results['distinct']} distinct, seed {results['seed']}), "
        "each in the twelve hours around a random clock change of a random zone between 1970 and 2037, against cronsim "
        "2.8 and against a reference of Debian's rule; and its first 20 fires from a random time on in UTC, against "
        "cronsim. The reference (`tests/foreign/debian.py`) was written from cron(8) and crontab(5), and gives what "
        "Debian's own daemon did in all the facts measured above.\n\n"
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
- Of Quartz the tests of `CronExpression`; those of its triggers and calendars are not about expressions. Facts about
  "now" are taken at a fixed time.
- Of croniter what its tests ask and get, recorded while they ran; not its fuzz and random (`R`) tests, which have no
  fixed answers. Of robfig's parser the field tests with invented bounds are put into the minute field.
- Of cronsim the tests of 2.7, the newest that could be had, as 2.8 answers them.
- systemd, EventBridge Scheduler, Temporal and Kubernetes publish no such tables, or use one of the above.
"""


def made(differential: dict[str, Any]) -> tuple[str, dict[str, dict[str, int]]]:
    """The page and its counts."""
    all_suites = suites()
    found = {name: list(disagreements(name, suite)) for name, suite in all_suites.items()}
    return text(all_suites, found, differential), counted(found)
