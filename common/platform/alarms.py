"""The alarms of a stage: for `minute8 doctor`, and for the API, which says which of them are on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from common.cache import Cache
from common.platform.findings import Finding, failed, not_checked, ok

# Alarms look each minute, and consoles ask twice. CloudWatch takes nine such requests a second from an account.
MAX_AGE_S: Final = 55


def page_of(alarm: Mapping[str, Any], stage: str) -> str:
    """The page of the runbook after which a stage's alarm is named; its description names it (deploy/alarms.yml).

    Empty for a part of a burn rate, which notifies nobody, for another stage's alarm, and for what somebody else made.
    """
    page = alarm["AlarmName"].removeprefix(f"minute8-{stage}-")
    return page if alarm.get("AlarmDescription", "").endswith(f"/{page}.md") else ""


def alarms_of(client: Any, stage: str, **more: str) -> dict[str, Mapping[str, Any]]:
    """CloudWatch's alarms of a stage, by their pages of the runbook."""
    request = {
        "AlarmNamePrefix": f"minute8-{stage}-",
        "AlarmTypes": ["MetricAlarm", "CompositeAlarm"],
        **more,
    }
    alarms: dict[str, Mapping[str, Any]] = {}
    while True:
        answer = client.describe_alarms(**request)
        for alarm in (*answer["MetricAlarms"], *answer["CompositeAlarms"]):
            if page := page_of(alarm, stage):
                alarms[page] = alarm
        if not (token := answer.get("NextToken")):
            return alarms
        request["NextToken"] = token


def finding_of(alarm: Mapping[str, Any], page: str) -> Finding:
    """The finding of an alarm that is on."""
    # The second one changes with the reason, too; old alarms have it alone.
    since = alarm.get("StateTransitionedTimestamp") or alarm.get("StateUpdatedTimestamp")
    message = f"{alarm['AlarmName']} is on: {alarm.get('StateReason', '')}"
    finding = failed(message, alarm["AlarmDescription"], page=page)
    return replace(finding, since_at=since.timestamp()) if since else finding


class Alarms:
    """Which alarms of a stage are on. CloudWatch is asked at most once in MAX_AGE_S."""

    def __init__(self, client: Any, stage: str) -> None:
        self._client = client
        self._stage = stage
        self._kept: Cache[str, list[Finding]] = Cache(MAX_AGE_S, 1)

    def findings(self, now: float) -> list[Finding]:
        """The alarms that are on, or that no alarm is on. A failure of CloudWatch is a finding, and no error."""
        if kept := self._kept.get("", now):
            return kept.value
        findings = self._read()
        self._kept.put("", findings, now)
        return findings

    def _read(self) -> list[Finding]:
        # Imported here: no other route needs it.
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            alarms = alarms_of(self._client, self._stage, StateValue="ALARM")
        except (BotoCoreError, ClientError) as error:
            return [
                not_checked(f"CloudWatch does not tell the alarms: {error}", "`minute8 doctor` asks it, too")
            ]
        # moto returns all alarms of these names, whatever their state.
        on = {page: alarm for page, alarm in alarms.items() if alarm["StateValue"] == "ALARM"}
        return [finding_of(alarm, page) for page, alarm in on.items()] or [ok("no alarm is on")]
