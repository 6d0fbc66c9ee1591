"""The runbook has a page for each alarm, its table says how soon each alarm notices, and tests follow its pages."""

from __future__ import annotations

import re

import pytest

from scripts.cloudwatch.alarms import declared
from tests.alarms import template
from tests.docs.test_docs import ROOT
from tests.runbook.faults import FAULTS
from tests.runbook.pages import RUNBOOK

HEADINGS = ["What it means for tenants", "First look", "Decide", "Fix", "Verify", "Tell"]
NAMES = template.NOTIFYING
PAGES = sorted({path.stem for path in RUNBOOK.glob("*.md")} - {"README"})
# What the embedded AWS, or a world in memory, can have a part of; each page says which.
IN_PART = {
    *("api-latency", "burn-slow", "concurrency", "lateness", "tick-duration"),
    *("cost-jump", "region-lost", "restore", "exporter-errors"),
}


def readme() -> str:
    return (RUNBOOK / "README.md").read_text()


def test_each_alarm_has_a_page_and_each_page_is_linked() -> None:
    assert set(NAMES) <= set(PAGES)
    assert all(f"]({page}.md) |" in readme() for page in PAGES)


def test_each_page_is_rehearsed() -> None:
    assert {
        name for name in PAGES if "\nRehearsed in part: " in (RUNBOOK / f"{name}.md").read_text()
    } == IN_PART
    on_the_embedded_aws = {fault.page for fault in FAULTS} | followed_by("end_to_end/test_runbook.py")
    in_memory, by_command = followed_by("cli/test_runbook.py"), followed_by("upgrade/stacks.py")
    assert on_the_embedded_aws | in_memory | by_command == set(PAGES)


def followed_by(test: str) -> set[str]:
    """The pages whose commands a test file runs."""
    text = (ROOT / "tests" / test).read_text()
    return set(re.findall(r'(?:follow\((?:desk, |night, )?|commands\(|words_of\()"([\w-]+)"', text))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_same_parts_and_begins_with_one_command(name: str) -> None:
    text = (RUNBOOK / f"{name}.md").read_text()
    assert (f"Alarm `minute8-<stage>-{name}`." in text) == (name in NAMES)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    look = text.split("## First look")[1].split("## Decide")[0]
    assert look.count("```console\n$ ") == 1
    assert len(re.findall(r"^\$ ", look, re.MULTILINE)) == 1


@pytest.mark.parametrize("name", declared())
def test_an_alarm_says_what_it_means_and_where_its_page_is(name: str) -> None:
    alarm = declared()[name]
    meaning, _, page = alarm["AlarmDescription"]["Fn::Sub"].rpartition(" ")
    assert page.startswith("${runbookUrl}/")
    assert (RUNBOOK / page.removeprefix("${runbookUrl}/")).exists()
    assert len(meaning) > 40
    if name not in NAMES:
        assert "AlarmActions" not in alarm
    else:
        assert page.endswith(f"/{name}.md")
        assert alarm["AlarmActions"] == alarm["OKActions"]
        assert alarm["AlarmActions"]["Fn::If"][0] == "HasAlarmTopic"
