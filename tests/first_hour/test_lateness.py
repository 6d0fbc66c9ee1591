"""Which failures of the doctor are this machine's, in the first hour."""

from __future__ import annotations

import pytest

from tests.first_hour.__main__ import is_late_alone

LATE = "failed       alarms                   minute8-dev-burn-fast is on: it transitioned to ALARM"
UNMARKED = "failed       alarms                   minute8-dev-mark-lag is on: it transitioned to ALARM"
GONE = "failed       stack                    there is none"


@pytest.mark.parametrize(
    ("printed", "is_late"), [([LATE], True), ([LATE, GONE], False), ([UNMARKED], False), ([], False)]
)
def test_alarms_of_late_executions_are_the_machines(printed: list[str], is_late: bool) -> None:
    assert is_late_alone("\n".join(["minute8-dev: 1 failed", *printed])) == is_late
