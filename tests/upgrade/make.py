"""`make rollback STAGE=…` for the runbook's shell, without the installation that comes before it."""

import sys

from scripts import stack

if __name__ == "__main__":
    target, stage = sys.argv[1:]
    assert target == "rollback", f"only rollback, not {target}"
    sys.exit(stack.main(["rollback", "--stage", stage.removeprefix("STAGE=")]))
