"""The API of EventBridge Scheduler is part of our API, so its fixtures are the API's."""

from tests.api.conftest import aws, office, pair

__all__ = ["aws", "office", "pair"]
