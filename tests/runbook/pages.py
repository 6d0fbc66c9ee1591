"""The commands of the runbook's pages, as the pages show them."""

from __future__ import annotations

import re
from typing import Final

from tests.docs.test_docs import ROOT

RUNBOOK: Final = ROOT / "docs" / "runbook"
# The parts of a page whose commands an operator runs, in this order.
PARTS: Final = ("First look", "Fix", "Verify")


def commands(page: str, stage: str, *parts: str) -> list[str]:
    """The lines that begin with `$` in these parts of a page, all by default; `prod` becomes the stage."""
    text = (RUNBOOK / f"{page}.md").read_text()
    found = []
    for part in parts or PARTS:
        content = text.split(f"\n## {part}\n")[1].split("\n## ")[0]
        for block in re.findall(r"```console\n(.*?)```", content, re.DOTALL):
            lines = block.replace("\\\n", "").splitlines()
            found += [re.sub(r"\bprod\b", stage, line[2:]) for line in lines if line.startswith("$ ")]
    return found
