"""What the commands share: the API's address and key, the client, and the current time.

Address and key come from options, the environment, or a profile of the settings file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from common.clock import Clock, SystemClock

if TYPE_CHECKING:
    from minute8.client import Client

_HOW_TO_KEY = "; `minute8 keys create TENANT` makes a key, on the embedded AWS `. .minute8/env` sets one"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a command needs to reach the API."""

    url: str
    key: str


def settings_file(env: Mapping[str, str]) -> Path:
    """$XDG_CONFIG_HOME/minute8/config.toml, ~/.config by default."""
    home = env.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "minute8" / "config.toml"


def read_settings(
    url: str | None, key: str | None, profile: str | None, env: Mapping[str, str] = os.environ
) -> Settings:
    """Options override the environment, which overrides the profile. Raises typer.BadParameter."""
    stored = _profile(profile, env)
    url = _url(url, profile, env, stored)
    key = key or (env.get("MINUTE8_KEY") if not profile else None) or stored.get("key")
    if not url or not key:
        missing = "address" if not url else "key"
        raise typer.BadParameter(
            f"the API's {missing} is not known: set MINUTE8_URL and MINUTE8_KEY, or a profile in {settings_file(env)}"
            + (_HOW_TO_KEY if url else "")
        )
    return Settings(check_url(url), key)


def api_url(url: str | None, profile: str | None, env: Mapping[str, str] = os.environ) -> str | None:
    """The API's address as `read_settings` finds it; None without one. Raises typer.BadParameter."""
    url = _url(url, profile, env, _profile(profile, env))
    return check_url(url) if url else None


def check_url(url: str) -> str:
    """An address that a client can call. Raises typer.BadParameter."""
    if not url.startswith(("https://", "http://")):
        host = url.lstrip("/:")
        scheme = "http" if host.startswith(("localhost", "127.")) else "https"
        raise typer.BadParameter(f"the API's address {url!r} has no scheme; write {scheme}://{host}")
    return url


def operator_settings(
    url: str | None, profile: str | None, env: Mapping[str, str] = os.environ
) -> Settings | None:
    """The same for the platform's commands; None without an operator key. Raises typer.BadParameter."""
    stored = _profile(profile, env)
    key = (env.get("MINUTE8_OPERATOR_KEY") if not profile else None) or stored.get("operator_key")
    if not key:
        return None
    url = _url(url, profile, env, stored)
    if not url:
        raise typer.BadParameter(
            "there is an operator key, and the API's address is not known: set MINUTE8_URL, or --stage to use AWS"
        )
    return Settings(check_url(url), key)


def _url(
    url: str | None, profile: str | None, env: Mapping[str, str], stored: Mapping[str, str]
) -> str | None:
    return url or (env.get("MINUTE8_URL") if not profile else None) or stored.get("url")


def _parsed(text: str) -> dict[str, Any]:
    import tomllib  # only where there is a settings file

    return tomllib.loads(text)


def _profile(profile: str | None, env: Mapping[str, str]) -> dict[str, str]:
    """The text fields of the named profile, or of `default`. Raises typer.BadParameter if the named one is missing."""
    path = settings_file(env)
    try:
        stored = _parsed(path.read_text("utf-8")).get("profiles")
    except FileNotFoundError:
        stored = None
    except ValueError as error:  # not TOML, or not text
        raise typer.BadParameter(f"{path} cannot be read: {error}") from None
    profiles = {name: fields for name, fields in _table(stored).items() if isinstance(fields, dict)}
    name = profile or env.get("MINUTE8_PROFILE")
    if name is not None and name not in profiles:
        raise typer.BadParameter(f"no profile {name!r} in {path}; there are: {', '.join(profiles) or 'none'}")
    fields = profiles.get(name or "default", {})
    return {field: value for field, value in fields.items() if isinstance(value, str)}


def _table(stored: object) -> dict[str, Any]:
    return stored if isinstance(stored, dict) else {}


@dataclass
class Session:
    """One invocation of the command."""

    url: str | None = None
    key: str | None = None
    profile: str | None = None
    clock: Clock = field(default_factory=lambda: SystemClock())

    def client(self) -> Client:
        """A client of the API, to be closed by the caller. Raises typer.BadParameter."""
        from minute8.client import Client  # httpx is slow to load, and `--help` does not need it

        settings = read_settings(self.url, self.key, self.profile)
        return Client(settings.url, settings.key)


def session(ctx: typer.Context) -> Session:
    """The session of a command."""
    current = ctx.find_object(Session)
    assert current is not None
    return current
