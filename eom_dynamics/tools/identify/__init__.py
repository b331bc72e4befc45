# SPDX-License-Identifier: Apache-2.0
"""Identification as a command: request, recordings from files, robot files with uncertainties, tables and a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ...arguments import option
from ...identification.elastic.options import ElasticOptions
from ...identification.links.parameters import Options
from ...recordings import MotorSource, Source

HELD_OUT = 0.2
"""Share of each recording that is held out for validation by default."""


@dataclass(frozen=True)
class Request:
    """Recordings and validation.

    Attributes:
        training: recordings to train on.
        validation: recordings to validate on, not used for training.
        hold_out: hold out this fraction of the motion of each recording, in spread blocks, for validation; 0 validates
            on the training data; default: 0.2, or 0 with --validate, springs from a resonance, or a few seconds alone.
        tolerance: exit code 1 if the RMS residual of a joint exceeds X, N m or N, on validation (else on training).
        springs: identify springs and motors from both sides of the springs, from the resonance of the motors alone, or
            not at all; default: as recorded, if the robot has springs. From one tap on a swinging tool:
            examples/ringing.py.
        link_options, elastic_options: options of links, and of springs and motors.
        source, motors: sources of links and motors in the files.
    """

    training: tuple[Path, ...] = option((), flag="bags", metavar="BAG")
    validation: tuple[Path, ...] = option((), flag="--validate", metavar="BAG", without="hold_out")
    hold_out: float | None = option(rule="[0, 1)", metavar="SHARE", without="hold_out")
    tolerance: float | None = option(rule="not negative", metavar="X")
    springs: str = option("auto", choices=("auto", "both", "resonance", "off"))
    link_options: Options = field(default_factory=Options)
    elastic_options: ElasticOptions = field(default_factory=ElasticOptions)
    source: Source = field(default_factory=Source)
    motors: MotorSource = field(default_factory=MotorSource)
