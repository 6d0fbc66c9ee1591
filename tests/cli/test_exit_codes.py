"""Each exit code in docs/cli.md occurs in the situation that it describes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from minute8.cli.options import ExitCode
from tests.cli.conftest import Desk
from tests.worlds import ARN, job

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text()


def nothing(desk: Desk) -> None:
    """As it is."""


def broken(*failures: int | Exception) -> Callable[[Desk], None]:
    return lambda desk: desk.transport.failures.extend(failures)


def registered(desk: Desk) -> None:
    desk.office.alice("PUT", "/v1/jobs/report", job(cron="0 3 * * *"))


def reading(desk: Desk) -> None:
    desk.environment["MINUTE8_KEY"] = desk.office.alice_reads.key or ""


def stranger(desk: Desk) -> None:
    desk.environment["MINUTE8_KEY"] = "m8_nobody"


CREATE = ("jobs", "create", "report", "--cron", "0 3 * * *", "--target", ARN)
CASES = [
    (0, nothing, ("jobs", "list")),
    (1, broken(*[500] * 4), ("jobs", "list")),
    (2, nothing, ("jobs", "create", "report", "--cron", "61 3 * * *", "--target", ARN)),
    (2, nothing, ("jobs", "lst")),
    (2, nothing, ("jobs", "list", "--nope")),
    (3, nothing, ("jobs", "show", "nothing")),
    (4, registered, CREATE),
    (4, registered, ("jobs", "delete", "report", "--revision", "7")),
    (5, reading, CREATE),
    (5, stranger, ("jobs", "list")),
    (6, broken(*[503] * 4), ("jobs", "list")),
    (6, broken(*[429] * 4), ("jobs", "list")),
    (6, broken(*[httpx.ConnectError("refused")] * 4), ("jobs", "list")),
]


@pytest.mark.parametrize(("code", "before", "words"), CASES)
def test_an_end_has_its_code(
    desk: Desk, code: int, before: Callable[[Desk], None], words: tuple[str, ...]
) -> None:
    before(desk)
    result = desk(*words)
    assert result.code == code, result
    assert bool(result.err) == (code != 0), "what went wrong is said on stderr"
    assert (result.out == "") == (code != 0), "and stdout is for answers"


def test_each_documented_code_is_reached() -> None:
    section = DOCUMENT.partition("## Exit codes")[2].partition("\n## ")[0]
    documented = {int(code) for code in re.findall(r"^\| (\d) \|", section, re.MULTILINE)}
    assert documented == {code for code, _, _ in CASES} == {0, *ExitCode}
