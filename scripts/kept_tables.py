"""Keep the tables of a stage when its stack goes back to a deployment that did not have them.

CloudFormation would delete such a table, or leave it outside the stack. The next deployment could then not create it,
since its name is taken. So the template of the earlier deployment gets the tables that are there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

TEMPLATE: Final = "compiled-cloudformation-template.json"
_TABLE: Final = "AWS::DynamoDB::Table"


def with_tables(template: Mapping[str, Any], running: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The template with the tables of the running one that it lacks, and the logical names of these. Pure.

    Their conditions come with them, and the parameters on which these depend.
    """
    added = {
        name: resource
        for name, resource in running["Resources"].items()
        if resource["Type"] == _TABLE and name not in template["Resources"]
    }
    if not added:
        return dict(template), []
    with_added = {
        part: {**running.get(part, {}), **template.get(part, {})} for part in ("Conditions", "Parameters")
    }
    return {**template, **with_added, "Resources": {**template["Resources"], **added}}, sorted(added)


def keep_tables(s3: Any, bucket: str, key: str, running: Mapping[str, Any]) -> list[str]:
    """Add the running stack's tables to the stored template of an earlier deployment.

    Returns the logical names of the tables that it lacked. Raises botocore's errors.
    """
    stored = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    template, added = with_tables(stored, running)
    if added:
        s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(template).encode())
    return added
