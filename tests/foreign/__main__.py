"""Compares the answers of other projects with ours.

python -m tests.foreign                      writes tests/foreign/README.md
python -m tests.foreign list cronos          prints every disagreement with a suite, one a line
python -m tests.foreign differential --expressions 10000 --seed 8
                                             asks cronsim and Debian's rule, keeps the counts, writes the page
"""

from __future__ import annotations

import argparse
import sys

from tests.foreign import differential, report
from tests.foreign.facts import suites


def main() -> int:
    options = argparse.ArgumentParser(
        prog="python -m tests.foreign", description="Compare with other projects."
    )
    commands = options.add_subparsers(dest="command")
    listing = commands.add_parser("list", help="print every disagreement with a suite")
    listing.add_argument("suite", choices=sorted(suites()))
    long_run = commands.add_parser(
        "differential", help="generated expressions against cronsim and Debian's rule"
    )
    long_run.add_argument("--expressions", type=int, default=10_000)
    long_run.add_argument("--seed", type=int, default=8)
    chosen = options.parse_args()
    if chosen.command == "list":
        for disagreement in report.disagreements(chosen.suite, suites()[chosen.suite]):
            print(f"{disagreement.name}\t{report.shown(disagreement)}")
        return 0
    if chosen.command == "differential":
        differential.save(differential.compared(chosen.expressions, chosen.seed, _progress))
    page, counts = report.page_and_counts(differential.saved())
    report.DOCUMENT.write_text(page, "utf-8")
    drawn = {suite: result["classes"] for suite, result in differential.saved()["suites"].items()}
    unexplained = sum(classes.get("unclassified", 0) for classes in [*counts.values(), *drawn.values()])
    print(f"{report.DOCUMENT.name} written; {unexplained} disagreements unexplained")
    return 1 if unexplained else 0


def _progress(done: int, of: int) -> None:
    if done % 50 == 0 or done == of:
        print(f"\r{done} of {of}", end="\n" if done == of else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
