"""The version of Minute8, in the wheel and in `minute8 --version`. CHANGELOG.md has the changes."""

VERSION = "0.2.0"
