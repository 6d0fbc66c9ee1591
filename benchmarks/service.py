"""How long one batch takes; part of the model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """Where nothing is throttled: from a batch's begin, or its second, to each call; and whole."""

    leads_s: tuple[float, ...]
    whole_s: float
