"""A function that isolates its tenants: what it keeps between calls belongs to a single tenant.

Deploy it by template.yml, and register it with `"tenant_isolation": true` in the target.
"""

from typing import Any

# Only calls for the same tenant ever see this: Lambda gives each tenant execution environments of its own.
reports_of_this_tenant: list[str] = []


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Note the execution, and return for whom and how many this environment has made."""
    reports_of_this_tenant.append(event["minute8"]["execution_id"])
    return {"tenant": context.tenant_id, "reports": len(reports_of_this_tenant)}
