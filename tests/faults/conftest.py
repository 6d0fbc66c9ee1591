"""Fault tests play each flow some hundred times: two partitions in place of eight are as good, and cost a quarter."""

import pytest

from common.storage import keys


@pytest.fixture(autouse=True)
def few_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "SPREAD", 2)
