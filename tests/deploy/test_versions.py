"""A function's published versions: what calls it with another configuration for a while leaves none behind."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from common.config import LIVE
from scripts import versions

NAME = "minute8-trial-executor"


@pytest.fixture
def functions() -> Iterator[Any]:
    """A function whose alias calls its second version."""
    with mock_aws(config={"lambda": {"use_docker": False}}):
        iam = boto3.client("iam", region_name="us-east-1")
        role = iam.create_role(
            RoleName="role", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17"})
        )
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("handler.py", "")
        client = boto3.client("lambda", region_name="us-east-1")
        client.create_function(
            FunctionName=NAME,
            Runtime="python3.13",
            Role=role["Role"]["Arn"],
            Handler="handler.handle",
            Code={"ZipFile": archive.getvalue()},
            Description="first",
            Timeout=50,
            Publish=True,
        )
        client.update_function_configuration(FunctionName=NAME, Description="second", Timeout=60)
        client.publish_version(FunctionName=NAME)
        client.create_alias(FunctionName=NAME, Name=LIVE, FunctionVersion="2")
        yield client


def called(functions: Any) -> int:
    """The time limit of the version that the alias calls."""
    return int(functions.get_function_configuration(FunctionName=NAME, Qualifier=LIVE)["Timeout"])


def test_another_configuration_is_called_for_a_while_and_leaves_no_version(functions: Any) -> None:
    before = versions.published(functions, NAME)
    with versions.changed(functions, NAME, Timeout=3):
        assert called(functions) == 3
    assert (called(functions), versions.live(functions, NAME)) == (60, 2)
    assert versions.published(functions, NAME) == before
    assert functions.get_function_configuration(FunctionName=NAME)["Timeout"] == 60


def test_a_rollback_afterwards_goes_to_the_deployment_before(functions: Any) -> None:
    with versions.changed(functions, NAME, Timeout=3):
        pass
    assert versions.go_back(functions, "trial") == "first"
    assert called(functions) == 50


def test_what_fails_meanwhile_leaves_no_version_either(functions: Any) -> None:
    with pytest.raises(KeyboardInterrupt), versions.changed(functions, NAME, Timeout=3):
        raise KeyboardInterrupt
    assert (called(functions), len(versions.published(functions, NAME))) == (60, 2)


def test_a_configuration_that_changes_nothing_keeps_the_version_that_is_called(functions: Any) -> None:
    with versions.changed(functions, NAME, Timeout=60):
        pass
    assert (called(functions), versions.live(functions, NAME)) == (60, 2)
