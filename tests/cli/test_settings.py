"""The order of settings for the API's address and key: options, then the environment, then a profile."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from minute8.cli.session import Settings, read_settings, settings_file

PROFILES = """
[profiles.default]
url = "https://default"
key = "default-key"
[profiles.staging]
url = "https://staging"
key = "staging-key"
[profiles.half]
url = "https://half"
"""
ENVIRONMENT = {"MINUTE8_URL": "https://environment", "MINUTE8_KEY": "environment-key"}


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with a settings file."""
    (tmp_path / "minute8").mkdir()
    (tmp_path / "minute8" / "config.toml").write_text(PROFILES)
    return {"XDG_CONFIG_HOME": str(tmp_path)}


@pytest.mark.parametrize(
    ("options", "environment", "expected"),
    [
        ((None, None, None), {}, ("https://default", "default-key")),
        ((None, None, "staging"), {}, ("https://staging", "staging-key")),
        ((None, None, None), {"MINUTE8_PROFILE": "staging"}, ("https://staging", "staging-key")),
        ((None, None, None), ENVIRONMENT, ("https://environment", "environment-key")),
        (
            (None, None, None),
            ENVIRONMENT | {"MINUTE8_PROFILE": "staging"},
            ("https://environment", "environment-key"),
        ),
        ((None, None, "staging"), ENVIRONMENT, ("https://staging", "staging-key")),
        (("https://option", "option-key", "staging"), ENVIRONMENT, ("https://option", "option-key")),
        (("https://option", None, None), ENVIRONMENT, ("https://option", "environment-key")),
        ((None, None, None), {"MINUTE8_KEY": "environment-key"}, ("https://default", "environment-key")),
        ((None, "option-key", "half"), {}, ("https://half", "option-key")),
    ],
)
def test_the_first_found_wins(
    home: dict[str, str],
    options: tuple[str | None, str | None, str | None],
    environment: dict[str, str],
    expected: tuple[str, str],
) -> None:
    assert read_settings(*options, env=home | environment) == Settings(*expected)


@pytest.mark.parametrize(
    ("content", "profile", "message"),
    [
        (PROFILES, "nope", "no profile 'nope' in .*config.toml; there are: default, staging, half"),
        (PROFILES, "half", "the API's key is not known: set MINUTE8_URL and MINUTE8_KEY, or a profile in"),
        ("[profiles", None, "cannot be read"),
        ("profiles = 3", "staging", "no profile 'staging' .* there are: none"),
        ("[profiles]\nstaging = 3", "staging", "no profile 'staging' .* there are: none"),
        ("[profiles.staging]\nurl = 3\nkey = 'k'", "staging", "the API's address is not known"),
        ("", None, "the API's address is not known"),
    ],
)
def test_missing_and_wrong_settings_are_named(
    home: dict[str, str], content: str, profile: str | None, message: str
) -> None:
    settings_file(home).write_text(content)
    with pytest.raises(typer.BadParameter, match=message):
        read_settings(None, None, profile, env=home)


def test_the_file_is_where_other_commands_have_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ada"))
    assert settings_file({}) == Path("/home/ada/.config/minute8/config.toml")
    assert settings_file({"XDG_CONFIG_HOME": "/etc/xdg"}) == Path("/etc/xdg/minute8/config.toml")
