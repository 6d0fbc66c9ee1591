"""CloudWatch as far as the API asks it for alarms; tests/doctor/test_checks.py asks moto the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass
class AlarmBoard:
    """The alarms that are on, by their names, each with its reason."""

    on: dict[str, str] = field(default_factory=dict)
    requests: int = 0
    error: Exception | None = None

    def describe_alarms(self, AlarmNamePrefix: str, StateValue: str, **_: Any) -> dict[str, Any]:
        self.requests += 1
        if self.error:
            raise self.error
        assert StateValue == "ALARM"
        ringing = [
            {
                "AlarmName": name,
                "StateValue": "ALARM",
                "StateReason": reason,
                "AlarmDescription": f"What it means. docs/runbook/{name.removeprefix(AlarmNamePrefix)}.md",
                "StateTransitionedTimestamp": datetime(2026, 11, 21, 3, tzinfo=UTC),
            }
            for name, reason in self.on.items()
            if name.startswith(AlarmNamePrefix)
        ]
        return {"MetricAlarms": ringing, "CompositeAlarms": []}
