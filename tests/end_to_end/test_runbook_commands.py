"""The commands of pages whose faults nothing here can have run all the same, on a stage that is well."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.embedded import Embedded
from tests.docs.test_runbook import NOT_REHEARSED, PAGES
from tests.runbook.pages import commands
from tests.runbook.site import Site

pytestmark = pytest.mark.embedded


def test_the_commands_of_pages_that_cannot_be_rehearsed_run(embedded: Embedded, tmp_path: Path) -> None:
    site = Site(embedded, tmp_path)
    of = {page: set(commands(page, site.name)) for page in PAGES}
    rehearsed = set().union(*(of[page] for page in PAGES if page not in NOT_REHEARSED))
    for command in sorted(set().union(*(of[page] for page in NOT_REHEARSED)) - rehearsed):
        printed = site.run(command).partition("\n")[2]
        if "describe-alarms" in command:
            assert printed in ('["OK"]\n', '["INSUFFICIENT_DATA"]\n', '["ALARM"]\n'), command
        else:  # a log may be empty
            assert printed or "logs tail" in command, command
