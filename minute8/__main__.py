"""The command as it is installed: the console script `minute8`, and `python -m minute8`."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Run the command from the folders of this package, or after an editable install from those of the checkout.

    The folders keep their names (`cli`, `common`, `eventbridge`). Only this process has them in its path, and before
    everything else: it takes no foreign package for ours, and no other program gets ours.
    """
    package = Path(__file__).parent
    folders = package / "folders"
    sys.path.insert(0, str(folders if folders.is_dir() else package.parent))
    from cli.__main__ import main as run

    run()


if __name__ == "__main__":
    main()
