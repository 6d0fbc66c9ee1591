"""The version of Minute8: the wheel's, and what `minute8 --version` prints. CHANGELOG.md says what is in it."""

VERSION = "0.2.0"
