"""The client without HTTP, for the platform's own services (docs/client.md): `Client` and `AsyncClient`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minute8.own_modules import own_module

if TYPE_CHECKING:
    from direct import AsyncClient, Client
else:
    AsyncClient, Client = own_module("direct").AsyncClient, own_module("direct").Client

__all__ = ["AsyncClient", "Client"]
