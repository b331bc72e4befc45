# SPDX-License-Identifier: Apache-2.0
"""Arguments of the command line from dataclasses of options, and back."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eom_dynamics.arguments import check_options, option
from eom_dynamics.exceptions import StateError
from eom_dynamics.identification import Options
from eom_dynamics.identification.elastic.options import ElasticOptions
from eom_dynamics.recordings import Conventions, MotorSource, Sampling, Source
from eom_dynamics.tools.options import CommandOptions, RobotOptions, add_options, options_of


@dataclass(frozen=True)
class Part:
    """Part of it.

    Attributes:
        half: half of it, 50 %.
    """

    half: float = option(0.5, rule="(0, 1]", metavar="X")


@dataclass(frozen=True)
class Whole:
    """Whole of it.

    Attributes:
        files: files
            to read.
        keep: if False, throw :data:`.it` away.
        count, size: number of ``things``.
        names: names of them; default: all.
        gains: gains by joint.
        speed: measured or not.
        part: part.
    """

    files: tuple[Path, ...] = option((), flag="files", metavar="FILE")
    keep: bool = option(True)
    count: int = option(3, rule="[1, 9]", metavar="N", without="count")
    size: int | None = option(metavar="N", without="count")
    names: tuple[str, ...] | None = option(choices=("a", "b"), metavar="NAME,…")
    gains: Mapping[str | None, float] = option({}, metavar="[JOINT=]X")
    speed: bool | None = option(choices={"auto": None, "yes": True, "no": False})
    part: Part = field(default_factory=Part)
    hidden: str = "not an option"

    def __post_init__(self) -> None:
        check_options(self, StateError)


def parser(cls: type) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_options(made, cls)
    return made


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("f", {}),
        ("f --no-keep --count 2", {"keep": False, "count": 2}),
        ("f --size 7 --half 1", {"size": 7, "part": Part(1.0)}),
        ("f --names b,a,b --speed no", {"names": ("b", "a"), "speed": False}),
        ("f --names none", {"names": ()}),
        ("f --gains 2 --gains knee=3", {"gains": {None: 2.0, "knee": 3.0}}),
    ],
)
def test_arguments_become_options(arguments: str, expected: dict[str, object]) -> None:
    assert options_of(Whole, parser(Whole).parse_args(arguments.split())) == Whole(files=(Path("f"),), **expected)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--count 0", "must be within [1, 9], is 0"),
        ("--count 1.5", "must be a whole number, is '1.5'"),
        ("--count 9e19", "must be a whole number, is '9e19'"),
        ("--count 90000000000000000000", "must be a number, is 9000"),
        (f"--count {9999 * '9'}", "must be a whole number, is '9999"),
        ("--half 1.5", "must be within (0, 1], is 1.5"),
        ("--half fast", "must be a number, is 'fast'"),
        ("--names a,c", "invalid choice: 'c' (choose from a, b)"),
        ("--gains =3", "must be [JOINT=]X, is '=3'"),
        ("--half nan", "must be finite, is nan"),
        ("--count 2 --size 3", "not allowed with"),
    ],
)
def test_wrong_arguments(arguments: str, reason: str, capsys) -> None:
    with pytest.raises(SystemExit):
        parser(Whole).parse_args(["f", *arguments.split()])
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    "cls", [RobotOptions, Conventions, Sampling, Source, MotorSource, CommandOptions, Options, ElasticOptions]
)
def test_defaults_are_those_of_the_class_and_each_option_has_a_text(cls: type) -> None:
    made = parser(cls)
    assert options_of(cls, made.parse_args([])) == cls()
    assert all(action.help for action in made._actions)
