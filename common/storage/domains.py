"""The partitions of AWS, their regions and domains. Pure.

A test compares them with botocore's own list.
"""

from __future__ import annotations

import re
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
# What AWS had when this release was made. A later region works, too, but a call that cannot reach it is a failure.
KNOWN_REGIONS: Final = frozenset(
    {
        *("af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3"),
        *("ap-south-1", "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3"),
        *("ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "ca-central-1"),
        *("ca-west-1", "cn-north-1", "cn-northwest-1", "eu-central-1", "eu-central-2"),
        *("eu-isoe-west-1", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-2"),
        *("eu-west-3", "eusc-de-east-1", "il-central-1", "me-central-1", "me-south-1", "mx-central-1"),
        *("sa-east-1", "us-east-1", "us-east-2", "us-gov-east-1", "us-gov-west-1", "us-iso-east-1"),
        *("us-iso-west-1", "us-isob-east-1", "us-isob-west-1", "us-isof-east-1", "us-isof-south-1"),
        *("us-west-1", "us-west-2"),
    }
)
_REGION: Final = re.compile(r"[a-z]{2,4}(-[a-z]{1,20}){1,4}-[0-9]")


def partition_of(region: str) -> str:
    """The partition of a region: `aws-cn` of `cn-north-1`."""
    return next((partition for begin, partition in _REGIONS.items() if region.startswith(begin)), "aws")


def domain_of(partition: str) -> str:
    """The end of its endpoints' names: `amazonaws.com`. That of `aws` for a partition that is not known."""
    return DOMAINS.get(partition, DOMAINS["aws"])


def is_of_aws(host: str) -> bool:
    """Whether a host's name ends with a domain of AWS."""
    return any(host.endswith(f".{domain}") for domain in DOMAINS.values())


def unknown_region(host: str) -> str:
    """The region in the name of an endpoint of AWS if KNOWN_REGIONS has no such region, or empty."""
    labels = host.split(".") if is_of_aws(host) else ()
    return next((label for label in labels if _REGION.fullmatch(label) and label not in KNOWN_REGIONS), "")
