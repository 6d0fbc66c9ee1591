"""Follows docs/first-hour.md word by word, as a newcomer with an account would."""
