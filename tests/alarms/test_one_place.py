"""An alarm is added in deploy/alarms.yml alone: the doctor, the API, the dashboard and the runbook's table find it."""

from __future__ import annotations

import json
import subprocess

import pytest

from common.platform.alarms import Alarms
from minute8.cli.doctor.surroundings import alarms as check
from scripts import tables
from scripts.cloudwatch.alarms import DECLARED, declared
from tests.alarms.template import ROOT
from tests.doctor.conftest import patient as patient  # the fixture
from tests.doctor.stage import ALARMS, Patient

MADE_UP = """
  FullMoonAlarm:
    Type: AWS::CloudWatch::Alarm
    Properties:
      AlarmName: minute8-${sls:stage}-full-moon
      AlarmDescription: { "Fn::Sub": "The moon is full, for three hours. ${runbookUrl}/full-moon.md" }
      AlarmActions: *actions
      Namespace: Minute8
      MetricName: Moon
      Statistic: Maximum
      Period: 3600
      EvaluationPeriods: 3
      Threshold: 0
      ComparisonOperator: GreaterThanThreshold
"""


@pytest.fixture
def text() -> str:
    return DECLARED.read_text() + MADE_UP


def test_the_doctor_misses_it_and_it_rings(patient: Patient, text: str) -> None:
    (added,) = declared(text).keys() - declared()
    patient.deploy_alarm(added)
    assert next(check(patient.deployment)).message == "there is no alarm minute8-test-full-moon"
    patient.alarm(added)
    assert [finding.message for finding in check(patient.deployment)] == [f"{len(ALARMS) + 1}, all quiet"]
    patient["cloudwatch"].set_alarm_state(
        AlarmName=patient.name(added), StateValue="ALARM", StateReason="night"
    )
    for finding in (next(check(patient.deployment)), *Alarms(patient["cloudwatch"], "test").findings(0.0)):
        assert (finding.message, finding.page) == ("minute8-test-full-moon is on: night", "full-moon")


def test_the_dashboard_lists_it(text: str) -> None:
    assert "deploy/alarm_list.js):arns" in (ROOT / "deploy" / "dashboards.yml").read_text()
    script = """
        const { load } = require("js-yaml");
        const { Resources } = load(require("node:fs").readFileSync(0, "utf8"));
        require("./deploy/alarm_list.js")({ resolveVariable: () => Resources }).then(({ arns }) => console.log(arns));
    """
    command = subprocess.run(
        ["node", "-e", script], cwd=ROOT, input=text, capture_output=True, text=True, check=True
    )
    names = [arn.rpartition(":minute8-${sls:stage}-")[2] for arn in json.loads(command.stdout)]
    assert names == [*ALARMS, "full-moon"]


def test_the_table_has_its_row(text: str) -> None:
    (rows,) = tables.rows_of_alarms(text).values()
    assert rows[-1] == "| [`full-moon`](full-moon.md) | The moon is full, for three hours. | 180 min |"
