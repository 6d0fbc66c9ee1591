"""All checks at once: a check that raises or hangs hides no other."""

from __future__ import annotations

from threading import Event

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from common.platform.findings import Finding, Level, ok
from minute8.cli.doctor.examine import Check, examine
from tests.doctor.broken import FAILED
from tests.doctor.stage import Patient


def raising(error: Exception) -> Check:
    def look(_: object) -> list[Finding]:
        raise error

    return Check("broken", look)


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeRule")


@pytest.mark.parametrize(
    ("error", "level", "message"),
    [
        (refusal("AccessDeniedException"), Level.NOT_CHECKED, "your credentials may not DescribeRule"),
        (refusal("InvalidAction"), Level.NOT_CHECKED, "this AWS does not know DescribeRule"),
        (refusal("InternalError"), FAILED, "InternalError"),
        (EndpointConnectionError(endpoint_url="https://nowhere"), FAILED, "AWS does not answer"),
        (KeyError("State"), FAILED, "the check itself broke: KeyError('State')"),
    ],
)
def test_a_check_that_breaks_says_so_and_hides_no_other(
    patient: Patient, error: Exception, level: Level, message: str
) -> None:
    broken, other = examine(patient.deployment, 60, (raising(error), Check("other", lambda _: [ok("well")])))
    assert (broken.level, message in broken.message, other.message) == (level, True, "well"), broken


def test_a_check_without_an_answer_ends_at_its_time_limit(patient: Patient) -> None:
    never = Event()
    stuck = Check("stuck", lambda _: [ok(str(never.wait()))])
    late, other = examine(patient.deployment, 1, (stuck, Check("other", lambda _: [ok("well")])))
    never.set()
    assert (late.level, late.message, other.message) == (FAILED, "no answer within 1 s", "well")
