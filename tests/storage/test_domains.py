"""Partitions and their domains, compared with botocore's own list."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import botocore
import pytest

from common.storage import aws
from common.storage.domains import (
    DOMAINS,
    KNOWN_REGIONS,
    domain_of,
    is_of_aws,
    partition_of,
    unknown_region,
)
from minute8.eventbridge.names import AwsAccount

_LIST = json.loads((Path(botocore.__file__).parent / "data" / "partitions.json").read_text())["partitions"]
_REGIONS = {
    name: partition["id"]
    for partition in _LIST
    for name in partition["regions"]
    if not name.endswith("-global")
}


def test_the_partitions_and_domains_are_botocores() -> None:
    assert {partition["id"]: partition["outputs"]["dnsSuffix"] for partition in _LIST} == DOMAINS


def test_each_region_is_of_its_partition() -> None:
    assert len(_REGIONS) > 40
    assert {region: partition_of(region) for region in _REGIONS} == _REGIONS
    assert set(_REGIONS) == KNOWN_REGIONS
    assert {AwsAccount.in_region(region, "1").partition for region in _REGIONS} == set(DOMAINS)


@pytest.mark.parametrize("partition", DOMAINS)
def test_a_parameter_is_read_in_its_partition(partition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    region = next(name for name, of in _REGIONS.items() if of == partition)
    monkeypatch.setenv("AWS_REGION", region)
    addresses: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], timeout_s: float) -> Any:
        addresses.append(address)
        raise OSError("no answer is needed")

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(aws.Busy):
        aws.read_parameter("/minute8/prod/signing-masters")
    assert addresses == [(f"ssm.{region}.{domain_of(partition)}", 443)]


def test_which_hosts_are_aws() -> None:
    assert is_of_aws("sts.eusc-de-east-1.amazonaws.eu")
    assert is_of_aws("sts.us-east-1.amazonaws.com")
    assert not is_of_aws("127.0.0.1")
    assert not is_of_aws("amazonaws.com.example.org")


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("lambda.us-east-9.amazonaws.com", "us-east-9"),
        ("123456789012.ddb.eu-nowhere-1.amazonaws.com", "eu-nowhere-1"),
        ("lambda.us-east-1.amazonaws.com", ""),
        ("sqs.cn-north-1.amazonaws.com.cn", ""),
        ("iam.amazonaws.com", ""),
        ("s3.dualstack.us-west-2.amazonaws.com", ""),
        ("lambda.us-east-9.example.com", ""),
        ("", ""),
    ],
)
def test_which_endpoints_are_in_a_region_that_is_not_known(host: str, region: str) -> None:
    assert unknown_region(host) == region
