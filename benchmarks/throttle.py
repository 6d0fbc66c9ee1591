"""DynamoDB's partitions, and a client's retries when one throttles; part of the model."""

from __future__ import annotations

import random

# A partition gives this many units a second, even if the table has more.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
PARTITION_READS, PARTITION_WRITES = 3_000, 1_000
# The initial throughput of a new on-demand table.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html
NEW_TABLE_READS, NEW_TABLE_WRITES = 12_000, 4_000
# botocore's "standard" mode as common/storage/aws.py sets it: four attempts, a random part of 1, 2, 4 s between them.
# https://docs.aws.amazon.com/boto3/latest/guide/retries.html
ATTEMPTS = 4


class Partitions:
    """One table's units of one kind; each partition begins with the units of one second."""

    def __init__(self, units_a_second: int, partition_units: int) -> None:
        self.count = max(1, round(units_a_second / partition_units))
        self._most = units_a_second / self.count
        self._left = [self._most] * self.count
        self._at = [0.0] * self.count
        self.refused = 0

    def take(self, partition: int, units: float, now: float) -> bool:
        """False if this partition has none left at the moment."""
        left = min(self._most, self._left[partition] + (now - self._at[partition]) * self._most)
        self._at[partition] = now
        self._left[partition] = left - units if left >= units else left
        self.refused += left < units
        return left >= units


def backoff_s(attempt: int, rng: random.Random) -> float:
    """The client's wait after its n-th attempt, from 1."""
    return rng.random() * 2.0 ** (attempt - 1)
