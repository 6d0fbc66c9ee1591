"""The shell's completion: job ids, tags and states of the API that the settings name."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Desk
from tests.worlds import job


def offered(desk: Desk, line: str) -> list[str]:
    """What bash offers for the last word of a line."""
    desk.environment |= {
        "_MINUTE8_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    return desk(name="minute8").out.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("minute8 jobs show re", ["rent", "report"]),
        ("minute8 jobs run repo", ["report"]),
        ("minute8 runs list x", ["x"]),
        ("minute8 jobs list --tag ", ["blue", "red"]),
        ("minute8 jobs list --state p", ["paused"]),
        ("minute8 runs list --status f", ["failed"]),
        ("minute8 jobs show nothing", []),
    ],
)
def test_the_shell_offers(desk: Desk, line: str, words: list[str]) -> None:
    for name, tags in (("report", ["red"]), ("rent", ["red", "blue"]), ("x", [])):
        desk.office.alice("PUT", f"/v1/jobs/{name}", job(cron="0 3 * * *", tags=tags))
    assert offered(desk, line) == words


def test_without_an_api_it_offers_nothing(desk: Desk) -> None:
    desk.environment["MINUTE8_URL"] = ""
    assert offered(desk, "minute8 jobs show re") == []


@pytest.mark.parametrize(
    "setting", [("MINUTE8_URL", "ftp://nowhere"), ("MINUTE8_KEY", "m8_nobody"), ("MINUTE8_KEY", "ключ")]
)
def test_settings_that_the_api_refuses_offer_nothing(desk: Desk, setting: tuple[str, str]) -> None:
    name, value = setting
    desk.environment[name] = value
    assert offered(desk, "minute8 jobs show re") == []


@pytest.mark.parametrize("command", [("apply",), ("jobs", "run"), ("tenants", "list")])
def test_only_the_command_itself_offers_to_install_it(desk: Desk, command: tuple[str, ...]) -> None:
    assert "--install-completion" in desk("--help").out
    assert "completion" not in desk(*command, "--help").out
