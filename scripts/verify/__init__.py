"""Verifies Minute8 in an AWS account: `make verify STAGE=…`. docs/verified.md says how, and what has been verified."""
