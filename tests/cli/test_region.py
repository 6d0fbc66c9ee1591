"""The region and endpoint of the commands that use AWS credentials."""

from __future__ import annotations

import pytest

from common.storage import aws


@pytest.mark.parametrize(
    ("environment", "region"),
    [
        ({"AWS_REGION": "eu-central-1"}, "eu-central-1"),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, "eu-west-1"),
        ({"AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "eu-west-1"}, "eu-central-1"),
        ({"AWS_REGION": "", "AWS_DEFAULT_REGION": "eu-west-1"}, "eu-west-1"),
        ({}, None),
    ],
)
def test_the_region_is_the_aws_cli_s(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], region: str | None
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert aws.new_session().get_config_variable("region") == region
