"""Fault tests play each flow hundreds of times: two partitions instead of eight find the same faults at less cost."""

import pytest

from common.storage import keys


@pytest.fixture(autouse=True)
def few_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "SPREAD", 2)
