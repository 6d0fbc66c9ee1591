"""`make rollback STAGE=… ARGS=…` for the runbook's shell, without the installation that comes before it."""

import sys

from scripts import stack

if __name__ == "__main__":
    target, stage, *more = sys.argv[1:]
    assert target == "rollback", f"only rollback, not {target}"
    arguments = [word for text in more for word in text.removeprefix("ARGS=").split()]
    sys.exit(stack.main(["rollback", "--stage", stage.removeprefix("STAGE="), *arguments]))
