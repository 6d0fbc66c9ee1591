"""The version of Minute8."""

from __future__ import annotations

from pydantic import Field

from api.shapes.parts import Answer, Shapes


class Version(Answer):
    """What is deployed."""

    version: str = Field(description="Of Minute8, as `minute8 --version` prints the command's.")


TAKEN: Shapes = ()
GIVEN: Shapes = (Version,)
