"""The commands of the runbook's pages, as the pages show them."""

from __future__ import annotations

import re
from typing import Final

from tests.docs.test_docs import ROOT

RUNBOOK: Final = ROOT / "docs" / "runbook"
# The sections of a page whose commands an operator runs, in this order.
SECTIONS: Final = ("First look", "Fix", "Verify")


def commands(page: str, stage: str, *sections: str) -> list[str]:
    """The lines that begin with `$` in these sections of a page, all by default; `prod` becomes the stage."""
    text = (RUNBOOK / f"{page}.md").read_text()
    lines_run = []
    for section in sections or SECTIONS:
        content = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
        for block in re.findall(r"```console\n(.*?)```", content, re.DOTALL):
            lines = block.replace("\\\n", "").splitlines()
            lines_run += [re.sub(r"\bprod\b", stage, line[2:]) for line in lines if line.startswith("$ ")]
    return lines_run
