"""Register the canary of a stage: python -m scripts.canary --stage prod

Creates its tenant and its job, or makes them what they should be; a second time changes nothing. If the stage has no
canary function (parameter `canary`), the job is deleted. docs/service-levels.md explains the canary.
"""

from __future__ import annotations

import argparse
import sys

from botocore.exceptions import BotoCoreError, ClientError

from common.clock import SystemClock
from common.errors import Minute8Error
from minute8.cli.doctor.canary import register
from minute8.cli.doctor.deployment import connect


def main(arguments: list[str] | None = None) -> int:
    """Register it where AWS's environment variables point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.canary", description=__doc__)
    parser.add_argument("--stage", required=True)
    options = parser.parse_args(arguments)
    try:
        print(f"canary: {register(connect(options.stage, SystemClock()))}")
    except (BotoCoreError, ClientError, Minute8Error) as error:
        print(f"canary: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
