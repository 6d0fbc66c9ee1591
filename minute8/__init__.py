"""Minute8, a multi-tenant cron for AWS. Here are the clients of its HTTP API (docs/client.md):

from minute8 import Client

with Client("https://….execute-api.eu-west-1.amazonaws.com", "m8_…") as minute8:
    minute8.put_job("report", {"schedule": {"cron": "30 2 * * *", "timezone": "Europe/Paris"}, "target": {…}})

`minute8.client` has its exceptions and types, `minute8.direct` the client without HTTP.
"""

from typing import TYPE_CHECKING

__all__ = ["AsyncClient", "AsyncOperator", "Client", "Operator"]

if TYPE_CHECKING:
    from minute8.client import AsyncClient, AsyncOperator, Client, Operator
else:  # a type checker would take any name for one of this module's

    def __getattr__(name):
        """The clients are loaded when they are first used: functions have this package too, but no httpx."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from minute8 import client

        return getattr(client, name)
