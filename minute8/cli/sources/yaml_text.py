"""YAML of strangers, read within bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

# Each value takes a character, unless an alias repeats it. Some lines of aliases of aliases stand for billions.
_MAX_REPEATED: Final = 100_000
# JSON's readers take no more digits, and a hexadecimal number or one of base 60 may have more than characters.
_MAX_NUMBER_CHARS: Final = 1_000


def load_documents(text: str) -> list[Any]:
    """All documents. A tag of somebody's own, such as `!Ref`, leaves the value that it stands before.

    Raises ValueError: it is no YAML, or its aliases stand for more than anybody can read.
    """
    # Imported here: nothing else in the command needs it.
    import yaml

    class Loader(bounded_loader()):  # type: ignore[misc]
        """Takes tags of somebody's own."""

    def untagged(loader: Any, _tag: str, node: Any) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return loader.construct_scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_mapping(node, deep=True)

    Loader.add_multi_constructor("!", untagged)
    try:
        documents = list(yaml.load_all(text, Loader))
        check_repeated(documents, text)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{line}{error.problem}; of a template, import what it renders") from error
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    except (RecursionError, OverflowError) as error:
        raise ValueError(beyond(error)) from None
    return documents


def beyond(error: RecursionError | OverflowError) -> str:
    """What PyYAML cannot take."""
    return (
        "it nests too deeply" if isinstance(error, RecursionError) else "it has a character beyond Unicode's"
    )


def bounded_loader() -> Any:
    """A loader of YAML whose values have bounds: a few lines of merge keys (`<<`) would fill the memory.

    What it cannot make raises ValueError or a YAMLError.
    """
    import yaml

    class Bounded(yaml.SafeLoader):
        def construct_object(self, node: Any, deep: bool = False) -> Any:
            line, tag = node.start_mark.line + 1, node.tag.rpartition(":")[2]
            if tag == "int" and len(node.value) > _MAX_NUMBER_CHARS:
                raise ValueError(
                    f"line {line}: a number of more than {_MAX_NUMBER_CHARS} characters: quote it"
                )
            try:
                return super().construct_object(node, deep)
            except (LookupError, AttributeError, TypeError, ArithmeticError):
                raise ValueError(f"line {line}: this is no {tag}") from None

        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            if len(node.value) > _MAX_REPEATED:
                raise ValueError(f"merge keys make more than {_MAX_REPEATED} fields of one object")

    return Bounded


def check_repeated(value: Any, text: str) -> None:
    """Raises ValueError: the aliases of the text, which is the value, stand for more than anybody can read."""
    nodes = _nodes(value, {})
    if nodes == math.inf:
        raise ValueError("it nests too deeply: an alias stands for what contains it")
    if nodes > len(text) + _MAX_REPEATED:
        raise ValueError(f"its aliases repeat more than {_MAX_REPEATED} values")


def _nodes(value: Any, known: dict[int, float]) -> float:
    """The number of values. An alias counts as the values that it repeats; a value that contains itself is infinite."""
    if not isinstance(value, Mapping | list):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf  # until it is counted
        inside = value.values() if isinstance(value, Mapping) else value
        known[id(value)] = 1 + sum(_nodes(inner, known) for inner in inside)
    return known[id(value)]
