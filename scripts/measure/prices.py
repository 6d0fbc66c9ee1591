"""AWS's list prices, which benchmarks, `make verify` and the page about idle cost share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PRICES: Final[Mapping[str, float]] = json.loads(Path(__file__).with_name("prices.json").read_text())
