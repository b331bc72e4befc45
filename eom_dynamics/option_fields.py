# SPDX-License-Identifier: Apache-2.0
"""Fields of dataclasses of options: choices and number rules, checked when the options are made.

The command line makes its arguments of the same fields; their help is the attribute's text in the class's docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, field, fields
from typing import Any

from .exceptions import EomDynamicsError
from .number_rules import violation
from .spelling import shown

Choices = Collection[str] | Callable[[], Collection[str]]


def option(default: Any = None, *, choices: Choices = (), rule: str = "", **words: Any) -> Any:
    """Declare a field of a dataclass of options.

    Args:
        default: value; a dict is copied.
        choices: what the value, or each of its entries, must be one of, or a function that returns it; of a mapping,
            its values are what is chosen.
        rule: number rule of the value, or of each of its entries, see :func:`.number_rules.violation`.
        words: for the command line, see :mod:`eom_dynamics.tools.cli.options`.
    """
    start: dict[str, Any] = {"default_factory": dict} if default == {} else {"default": default}
    return field(**start, metadata={"choices": choices, "rule": rule, **words})


def choices_of(entry: Field[Any]) -> Collection[str]:
    """Choices of a field; empty without any."""
    choices: Any = entry.metadata.get("choices", ())
    return choices() if callable(choices) else choices


def check_options(options: Any, error: type[EomDynamicsError], **known: Collection[str]) -> None:
    """Check the fields of :func:`option`; a default is always allowed.

    Args:
        options: the dataclass, in its ``__post_init__``.
        error: what is raised, naming the field.
        known: by the name of a field, choices in place of those of the command line.
    """
    for entry in fields(options):
        value, choices, rule = getattr(options, entry.name), choices_of(entry), entry.metadata.get("rule")
        if not (choices or rule) or value == entry.default:
            continue
        names = known.get(entry.name, choices.values() if isinstance(choices, Mapping) else choices)
        parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple | list) else [value]
        for part in parts:
            if names and part not in names:
                raise error(f"{entry.name} must be one of {', '.join(map(str, names))}, is {shown(part)}")
            if rule and (reason := violation(part, rule)):
                raise error(f"{entry.name} {reason}")
            if entry.type == "int" and part != int(part):
                raise error(f"{entry.name} must be an integer, is {shown(part)}")
