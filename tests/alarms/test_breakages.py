"""Breakages by name: each rings in its time, the doctor names it, its repair leaves nothing lost without a record."""

from __future__ import annotations

import re
from typing import cast

import pytest

from common.platform.findings import Level
from common.platform.planning_checks import check_progress
from common.timing.fires import fires
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.doctor.queues import without_record
from minute8.cli.doctor.truth import check_tables
from tests.alarms.breakages import (
    TEN,
    TWENTY,
    Breakage,
    close_the_hole,
    put_job_back,
    repair_contradictions,
    run_unrecorded,
)
from tests.alarms.stage import Watched
from tests.desk import Desk
from tests.docs.test_docs import ROOT
from tests.worlds import World, job

# What the doctor finds of an upgrade, and of the tests that name contradictions by constants.
NAMED_ELSEWHERE = ("nothing", "tenant-corrupt", "reads")
PLAYED = [breakage for breakage in (*TWENTY, *TEN) if breakage.breaks]


def doctors_words(world: World) -> str:
    deployment = cast("Deployment", Desk(world))
    findings = [*check_tables(deployment), *without_record(deployment), *check_progress(deployment)]
    return "\n".join(finding.message for finding in findings if finding.level != Level.OK)


@pytest.mark.parametrize("breakage", PLAYED, ids=lambda breakage: breakage.name)
def test_a_breakage_rings_and_its_repair_leaves_nothing_lost(stage: Watched, breakage: Breakage) -> None:
    """Half of the first attempts fail, so there are retries."""
    world = stage.world
    world.registry.put("alice", "fails", job(every="1m", retry={"base_s": 120, "factor": 1}))
    stage.fails = lambda call: call["job_id"] == "fails" and call["attempt"] == 1
    stage.run(20)
    stage.run((8 - int(world.clock.now() // 60)) % 10)  # the longest way to a tick that finds it
    assert stage.ringing == set()
    assert breakage.breaks
    began_at = int(world.clock.now())
    breakage.breaks(stage)
    words = doctors_words(world)
    if breakage.alarm:
        stage.minutes_until(breakage.alarm, "ALARM", breakage.minutes + 1)
    else:
        stage.run(breakage.minutes)
    assert breakage.proof or breakage.doctor in words + doctors_words(world)
    close_the_hole(stage)
    if stage.kept:
        put_job_back(stage)
    for _ in range(4):
        repair_contradictions(stage)
        run_unrecorded(stage)
        stage.run(10)
    ended_at = int(world.clock.now())
    remaining = [words for words in doctors_words(world).splitlines() if "was moved back" not in words]
    assert not remaining or breakage.name.startswith("planned_until")
    for job_id in ("often", "fails"):
        expected = set(fires(world.store.get("alice", job_id).schedule, began_at - 600, ended_at - 900))
        ended = {
            run["fire_at"]: run["status"]
            for run in world.run_items("alice", job_id)
            if run["fire_at"] in expected
        }
        assert set(ended) == expected, job_id
        allowed = {"succeeded", "dispatched"} | ({"skipped"} if breakage.losses != "0" else set())
        assert set(ended.values()) <= allowed


@pytest.mark.parametrize(
    "breakage", [each for each in (*TWENTY, *TEN) if each.proof], ids=lambda each: each.name
)
def test_what_is_not_played_here_has_its_test(breakage: Breakage) -> None:
    file, _, name = breakage.proof.partition("::")
    text = (ROOT / "tests" / file).read_text()
    assert f"def {name}(" in text or f"class {name}:" in text
    assert breakage.doctor in text or breakage.doctor in NAMED_ELSEWHERE or not breakage.doctor


@pytest.mark.parametrize(
    "breakage", [each for each in (*TWENTY, *TEN) if each.alarm], ids=lambda each: each.name
)
def test_the_page_of_its_alarm_has_the_commands_that_repair_it(breakage: Breakage) -> None:
    page = (ROOT / "docs/runbook" / f"{breakage.alarm}.md").read_text().replace(" --stage prod", "")
    for command in re.findall(r"`(minute8 [^`]+)`", breakage.repair):
        assert command in page
