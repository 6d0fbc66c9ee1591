"""Sends the platform's daily report to a topic of SNS, once a day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import Minute8Error
from common.platform.daily_report import read_report
from common.platform.dead_letters import DeadLetters
from common.storage import keys
from common.storage.expressions import ABSENT, Attribute
from common.storage.table import Tables
from common.timing.instants import DAY_S

HOUR_S: Final = 3_600
# The projection of the day's last runs takes half an hour. What fails is tried again until the hour is over.
SENT_AFTER_S: Final = 40 * 60


@dataclass(frozen=True, slots=True)
class DailyReports:
    """`hour`: the report covers the day up to this hour, UTC. `sns` is SNS's client."""

    tables: Tables
    stage: str
    topic_arn: str
    hour: int
    sns: Any
    letters: DeadLetters

    def send_if_due(self, now: float) -> bool:
        """Send the report if it is time and no other round has. Raises what SNS raises: the next minute tries again."""
        until_at = int(now) // DAY_S * DAY_S + self.hour * HOUR_S
        if until_at + SENT_AFTER_S > now:
            until_at -= DAY_S
        if not SENT_AFTER_S <= now - until_at < SENT_AFTER_S + HOUR_S or not self._take(until_at):
            return False
        try:
            report = read_report(self.tables, self.stage, until_at, now, self.letters)
            self.sns.publish(TopicArn=self.topic_arn, Subject=report.subject, Message=report.text())
        except (BotoCoreError, ClientError, Minute8Error):
            self.tables.jobs.delete(keys.REPORTED)
            raise
        return True

    def _take(self, until_at: int) -> bool:
        item = {**keys.REPORTED, "until_at": until_at}
        return self.tables.jobs.put_if(item, ABSENT | (Attribute("until_at") < until_at))
