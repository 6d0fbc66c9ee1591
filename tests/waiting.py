"""Waits for other processes. A wait ends as soon as its condition holds: only a failure takes the whole time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scripts.embedded import Embedded

# An idle machine needs a few seconds; a machine with ten other programs may need minutes.
PATIENCE_S = 300


def wait_until(look: Callable[[], Any], failure: Callable[[], object] | str, every_s: float = 0.3) -> Any:
    """The first true answer of `look`. Without one it fails with the text `failure`."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not (result := look()):
        if time.monotonic() > give_up_at:
            raise AssertionError(
                f"after {PATIENCE_S} s: {failure if isinstance(failure, str) else failure()}"
            )
        time.sleep(every_s)
    return result


def keep_clear_of_the_rule(for_s: int = 15) -> None:
    """If the rule of minute 8, 18, 28… ticks within `for_s`, wait until that is over."""
    since_the_last_s = (time.time() - 8 * 60) % 600
    if not 10 < since_the_last_s < 600 - for_s:
        time.sleep((10 - since_the_last_s) % 600)


def wait_for_snapshots(embedded: Embedded) -> None:
    """The second snapshot from now on: its state is of a moment after this call."""
    current, seen = Path(embedded.state_dir, "aws", "current"), set[Path]()

    def third() -> bool:
        if current.is_symlink():
            seen.add(current.readlink())
        return len(seen) > 2

    wait_until(third, "no two snapshots", every_s=0.1)
