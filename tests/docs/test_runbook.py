"""The runbook has a page for each alarm, its table says how soon each alarm notices, and tests follow its pages."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from common.platform.alarms import ALARMS, CANARY_ALARM
from minute8.cli.doctor.inventory import QUIET_ALARMS
from scripts.cloudwatch.alarms import period_of
from tests.docs.test_docs import ROOT
from tests.runbook.faults import FAULTS
from tests.runbook.pages import RUNBOOK

HEADINGS = ["What it means for tenants", "First look", "Decide", "Fix", "Verify", "Tell"]
RESOURCES: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "alarms.yml").read_text())["Resources"]
BY_NAME = {
    alarm["Properties"]["AlarmName"].removeprefix("minute8-${sls:stage}-"): alarm["Properties"]
    for alarm in RESOURCES.values()
}
NAMES = sorted({*ALARMS, CANARY_ALARM})
PAGES = sorted({path.stem for path in RUNBOOK.glob("*.md")} - {"README"})
# What the embedded AWS, or a world in memory, can have a part of; each page says which.
IN_PART = {
    *("api-latency", "burn-slow", "concurrency", "lateness", "tick-duration"),
    *("cost-jump", "region-lost", "restore", "exporter-errors"),
}


def rows() -> dict[str, tuple[str, str]]:
    """Alarm -> its time to notice, and its page."""
    cells = re.findall(r"^\| .+ \| `([\w-]+)` \| (\d+ min) \| \[.*\]\((.*)\) \|$", readme(), re.MULTILINE)
    return {alarm: (time, page) for alarm, time, page in cells}


def readme() -> str:
    return (RUNBOOK / "README.md").read_text()


def test_alarms_pages_and_the_table_are_the_same() -> None:
    assert set(BY_NAME) == {*NAMES, *QUIET_ALARMS}
    assert sorted(rows()) == NAMES
    assert set(NAMES) <= set(PAGES)
    assert all(f"[{page}.md]({page}.md) |" in readme() for page in PAGES)


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


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_an_alarm_says_what_it_means_and_where_its_page_is(name: str) -> None:
    alarm = BY_NAME[name]
    meaning, _, page = alarm["AlarmDescription"].rpartition(" ")
    assert page.startswith("${param:runbookUrl}/")
    assert (RUNBOOK / page.removeprefix("${param:runbookUrl}/")).exists()
    assert len(meaning) > 40
    if name in QUIET_ALARMS:
        assert "AlarmActions" not in alarm
    else:
        assert page.endswith(f"/{name}.md")
        assert alarm["AlarmActions"] == alarm["OKActions"]
        assert alarm["AlarmActions"]["Fn::If"][0] == "HasAlarmTopic"


@pytest.mark.parametrize("name", NAMES)
def test_the_table_says_how_long_an_alarm_waits(name: str) -> None:
    minutes = int(rows()[name][0].removesuffix(" min"))
    assert rows()[name][1] == f"{name}.md"
    alarm = BY_NAME[name]
    if "AlarmRule" in alarm:  # the short window is what has to pass
        alarm = BY_NAME[f"{name}-now"]
    to_alarm = alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"])
    assert minutes * 60 == to_alarm * period_of(alarm)
