"""How long after its claim a call goes out: what the record of an `Event` run, which is the claim, has to foresee."""

from __future__ import annotations

from typing import Final

_SHARE: Final = 0.2
# One slow call, such as the first of a process, must not spoil the estimate for the next ones.
_STEP_S: Final = 0.02
_MAX_S: Final = 5.0


class Lead:
    """The time between claim and call, estimated from the last calls of this process. `s`: seconds."""

    def __init__(self) -> None:
        self.s = 0.0

    def saw(self, seconds: float) -> None:
        """Take in that a call went out `seconds` after its claim."""
        step_s = max(-_STEP_S, min(_STEP_S, _SHARE * (seconds - self.s)))
        self.s = max(0.0, min(_MAX_S, self.s + step_s))
