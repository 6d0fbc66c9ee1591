"""The API of EventBridge Scheduler is part of our API, so its fixtures are the API's."""

from tests.api.conftest import aws, office, pair
from tests.cli.conftest import desk

__all__ = ["aws", "desk", "office", "pair"]
