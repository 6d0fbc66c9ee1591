"""The command: the console script `minute8`, and `python -m minute8`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command, or name the missing package: the client alone is installed without it."""
    try:
        from minute8.cli.main import main as run
    except ModuleNotFoundError as error:
        sys.exit(f"minute8: {error.name} is not installed; the command needs: pip install 'minute8[cli]'")
    run()


if __name__ == "__main__":
    main()
