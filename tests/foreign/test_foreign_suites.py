"""The counts of the comparison with other projects, and the page in docs, which is generated from the facts."""

from __future__ import annotations

import re

import pytest

from tests.foreign import debian, differential, report
from tests.foreign.facts import Fact, Suite, agrees, answer, suites
from tests.foreign.generated import drawn
from tests.foreign.manners import MANNERS, WHY

# suite: facts, how many agree
AGREEMENT = {
    "croniter": (2333, 1837),
    "cronos": (1762, 1340),
    "cronsim": (811, 692),
    "debian": (150, 115),
    "quartz": (125, 43),
    "robfig": (117, 111),
    "supertinycron": (537, 406),
}
CLASSES = {
    "croniter": {
        "5-5 is all": 78,
        "W or # with the other day field": 66,
        "W or # with the other day field + list with # or W": 1,
        "both days": 6,
        "both days + seconds sixth + year": 1,
        "both days after a star": 4,
        "hash": 53,
        "line break": 1,
        "list with # or W": 3,
        "never fires": 1,
        "overlap: twice there": 1,
        "seconds sixth": 51,
        "seconds sixth + step out of range": 2,
        "seconds sixth + year": 40,
        "seconds sixth, refused there": 1,
        "step out of range": 1,
        "steps from the start": 26,
        "strict": 3,
        "whole minute": 2,
        "wrapping range with a step": 152,
        "year": 3,
    },
    "cronos": {
        "31W where there is no 31st": 4,
        "5L": 44,
        "5L + L-n + W or # with the other day field + both days": 1,
        "5L + LW + W or # with the other day field + both days": 2,
        "5L + W or # with the other day field + both days": 20,
        "? in any field": 2,
        "L-n": 100,
        "L-n + LW": 3,
        "L-n + W or # with the other day field + both days": 6,
        "LW": 27,
        "LW + W or # with the other day field + both days": 9,
        "W or # with the other day field + both days": 33,
        "both days": 21,
        "field count": 1,
        "gap: asked at its end": 3,
        "gap: backwards": 3,
        "gap: owed to a full range": 2,
        "hash": 48,
        "macro": 9,
        "no seed": 1,
        "overlap: ranges are free there": 20,
        "the text compared": 1,
        "wrapping range with a step": 62,
    },
    "cronsim": {
        "5L": 49,
        "L with a step": 2,
        "LW": 18,
        "W or # with the other day field + both days after a star + step out of range": 1,
        "both days after a star + step out of range": 32,
        "gap: lost there after a star": 10,
        "list with # or W": 1,
        "overlap: seconds are free there": 5,
        "wrapping range": 1,
    },
    "debian": {
        "both days after a star": 4,
        "gap: every skipped time there": 9,
        "gap: every skipped time there + gap: owed to a full range": 1,
        "gap: lost there after a star": 15,
        "gap: owed to a full range": 1,
        "overlap: star not first": 5,
    },
    "quartz": {
        "5L + weekdays from 1": 1,
        "L-n + list with # or W + year": 5,
        "L-n + year": 31,
        "LW + year": 1,
        "day or week": 3,
        "list with # or W + year": 5,
        "year": 36,
    },
    "robfig": {
        "@every": 1,
        "gap: lost there": 2,
        "overlap: twice there": 2,
        "wrapping range": 1,
    },
    "supertinycron": {
        "#-n": 28,
        "#-n + 5L": 1,
        "5L": 34,
        "5L + year": 1,
        "L alone as a weekday": 4,
        "L-n": 13,
        "LW": 13,
        "W alone": 4,
        "gap: lost there": 2,
        "leap second": 1,
        "macro + year": 2,
        "several #": 1,
        "wrapping range": 1,
        "year": 26,
    },
}
ZONES = ["America/New_York", "Europe/London", "Australia/Lord_Howe", "Pacific/Chatham", "Antarctica/Troll",
         "America/Havana", "Asia/Beirut", "America/Sao_Paulo", "Pacific/Apia"]  # fmt: skip


@pytest.fixture(scope="module")
def page_and_counts() -> tuple[str, dict[str, dict[str, int]]]:
    return report.page_and_counts(differential.saved())


@pytest.fixture(scope="module")
def all_suites() -> dict[str, Suite]:
    return suites()


def test_how_many_facts_agree(
    page_and_counts: tuple[str, dict[str, dict[str, int]]], all_suites: dict[str, Suite]
) -> None:
    counts = page_and_counts[1]
    assert {
        name: (len(suite.facts), len(suite.facts) - sum(counts[name].values()))
        for name, suite in all_suites.items()
    } == AGREEMENT


def test_every_disagreement_has_its_class(page_and_counts: tuple[str, dict[str, dict[str, int]]]) -> None:
    assert page_and_counts[1] == CLASSES


def test_the_page_is_what_the_facts_give(page_and_counts: tuple[str, dict[str, dict[str, int]]]) -> None:
    assert report.DOCUMENT.read_text("utf-8") == page_and_counts[0], "python -m tests.foreign"


def test_every_class_has_a_reason_and_every_reason_is_needed(
    page_and_counts: tuple[str, dict[str, dict[str, int]]],
) -> None:
    class_counts = [
        *page_and_counts[1].values(),
        *(suite["classes"] for suite in differential.saved()["suites"].values()),
    ]
    assert {name for classes in class_counts for label in classes for name in label.split(" + ")} == set(WHY)


def test_every_suite_says_whose_it_is_and_has_its_manner(all_suites: dict[str, Suite]) -> None:
    assert set(all_suites) == set(MANNERS)
    for suite in all_suites.values():
        assert set(suite.about) == {"suite", "project", "version", "licence", "files"}


def test_the_reference_of_debians_rule_gives_what_its_daemon_did(all_suites: dict[str, Suite]) -> None:
    for fact in all_suites["debian"].facts:
        assert debian.fires(fact.cron, fact.zone, fact.at, fact.until) == fact.expected


@pytest.mark.parametrize(
    "text", ["* * * *", "5/15 * * * *", "0 22-2 * * *", "0 0 L * *", "0 0 * * 1#2", "60 * * * *"]
)
def test_debian_refuses_what_crontab_does_not_have(text: str) -> None:
    with pytest.raises(ValueError, match=re.compile(".")):
        debian.parse(text)


def test_a_sample_of_the_differential_is_explained() -> None:
    results = differential.compared(150, 21, zones=ZONES)
    for name, suite in results["suites"].items():
        assert "unclassified" not in suite["classes"], results["examples"]
        assert suite["agree"] > 0.7 * suite["asked"], name


def test_draws_are_the_same_everywhere() -> None:
    assert [draw.text for draw in drawn(3, 8, ZONES)] == [draw.text for draw in drawn(3, 8, ZONES)]


def test_the_long_run_left_nothing_unexplained() -> None:
    results = differential.saved()
    assert results["expressions"] >= 10_000
    assert all("unclassified" not in suite["classes"] for suite in results["suites"].values())


def test_a_wrong_answer_would_be_found_and_not_explained_away() -> None:
    """The comparison itself: a false fact has no class."""
    false = Fact("next", "30 9 * * *", "UTC", 0, [9 * 3600])
    assert not agrees(false, answer(false))
    assert [report.reason(name, false) for name in MANNERS] == [""] * len(MANNERS)
