"""The partitions of AWS, their regions and domains. Pure.

A test compares them with botocore's own list.
"""

from __future__ import annotations

from typing import Final

# What a template's `AWS::URLSuffix` is.
DOMAINS: Final = {
    "aws": "amazonaws.com",
    "aws-cn": "amazonaws.com.cn",
    "aws-us-gov": "amazonaws.com",
    "aws-eusc": "amazonaws.eu",
    "aws-iso": "c2s.ic.gov",
    "aws-iso-b": "sc2s.sgov.gov",
    "aws-iso-e": "cloud.adc-e.uk",
    "aws-iso-f": "csp.hci.ic.gov",
}
# A region's name begins so; any other region is of `aws`.
_REGIONS: Final = {
    "cn-": "aws-cn",
    "us-gov-": "aws-us-gov",
    "eusc-": "aws-eusc",
    "us-iso-": "aws-iso",
    "us-isob-": "aws-iso-b",
    "eu-isoe-": "aws-iso-e",
    "us-isof-": "aws-iso-f",
}


def partition_of(region: str) -> str:
    """The partition of a region: `aws-cn` of `cn-north-1`."""
    return next((partition for begin, partition in _REGIONS.items() if region.startswith(begin)), "aws")


def domain_of(partition: str) -> str:
    """The end of its endpoints' names: `amazonaws.com`. That of `aws` for a partition that is not known."""
    return DOMAINS.get(partition, DOMAINS["aws"])


def is_of_aws(host: str) -> bool:
    """Whether a host's name ends with a domain of AWS."""
    return any(host.endswith(f".{domain}") for domain in DOMAINS.values())
