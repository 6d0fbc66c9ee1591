"""A healthy stage for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from tests.doctor.stage import Patient


@pytest.fixture
def patient() -> Iterator[Patient]:
    with mock_aws():
        yield Patient()
