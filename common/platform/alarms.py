"""The alarms of a stage: for `minute8 doctor`, and for the API, which says which of them are on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from common.cache import Cache
from common.platform.findings import Finding, failed, not_checked, ok

# As deploy/alarms.yml deploys them; each has a page in docs/runbook.
ALARMS: Final = (
    *("no-tick", "tick-errors", "tick-duration", "mark-lag", "quarantine"),
    *("executor-errors", "executor-throttles", "overdue", "lateness", "no-record", "contradictions", "skips"),
    *("burn-fast", "burn-slow"),
    *("dead-letters", "planning-dead-letters", "outcomes-dead-letters", "outcomes-lag"),
    "notifier-errors",
    *("api-errors", "api-latency", "table-throttles", "concurrency", "recursion"),
)
# Of a stage whose parameter `canary` is "true".
CANARY_ALARM: Final = "canary"
# Of a stage with `runsExport`; deploy/runs_export.yml has it.
EXPORTER_ALARM: Final = "exporter-errors"
OPTIONAL_ALARMS: Final = (CANARY_ALARM, EXPORTER_ALARM)
# Alarms look each minute, and consoles ask twice. CloudWatch takes nine such requests a second from an account.
MAX_AGE_S: Final = 55


def alarms_by_name(client: Any, names: list[str], **more: str) -> dict[str, Mapping[str, Any]]:
    """CloudWatch's alarms of these names, by name. Unknown ones are missing."""
    answer = client.describe_alarms(
        AlarmNames=names, AlarmTypes=["MetricAlarm", "CompositeAlarm"], MaxRecords=100, **more
    )
    return {alarm["AlarmName"]: alarm for alarm in (*answer["MetricAlarms"], *answer["CompositeAlarms"])}


def finding_of(alarm: Mapping[str, Any], short: str) -> Finding:
    """The finding of an alarm that is on. The alarm's description names the page of the runbook."""
    remedy = alarm.get("AlarmDescription") or f"see docs/runbook/{short}.md"
    # The second one changes with the reason, too; old alarms have it alone.
    since = alarm.get("StateTransitionedTimestamp") or alarm.get("StateUpdatedTimestamp")
    finding = failed(f"{alarm['AlarmName']} is on: {alarm.get('StateReason', '')}", remedy, page=short)
    return replace(finding, since_at=since.timestamp()) if since else finding


class Alarms:
    """Which alarms of a stage are on. CloudWatch is asked at most once in MAX_AGE_S."""

    def __init__(self, client: Any, stage: str) -> None:
        self._client = client
        self._names = {f"minute8-{stage}-{short}": short for short in (*ALARMS, *OPTIONAL_ALARMS)}
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
            alarms = alarms_by_name(self._client, list(self._names), StateValue="ALARM")
        except (BotoCoreError, ClientError) as error:
            return [
                not_checked(f"CloudWatch does not tell the alarms: {error}", "`minute8 doctor` asks it, too")
            ]
        # moto returns all named alarms, whatever their state.
        on = {name: alarm for name, alarm in alarms.items() if alarm["StateValue"] == "ALARM"}
        return [finding_of(alarm, self._names[name]) for name, alarm in on.items()] or [ok("no alarm is on")]
