# SPDX-License-Identifier: Apache-2.0
"""Correct a repeated motion by the tracking error of its last run: iterative learning on the links.

Each bag is a run of the same motion: setpoints, whose first stamp is the motion's time 0, and the measured positions of
the links as JointState. Several bags are repetitions, of which the mean counts; of two and more, the share of the error
that repeats is printed, and how much of it errors of the model explain. Writes the motion for the next run, a .npz file
for the player; name it as the motion of the next call. Refused where learning would diverge.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ...exceptions import EomDynamicsError
from ...extras import require
from ..results import Result
from .arguments import add_json, add_number, add_output_file, add_robot_arguments, load
from .options import add_options, options_of, path, path_with

if TYPE_CHECKING:
    from ...learning import ErrorShares

_MOSTLY = 0.5  # from this share on, errors of the model are worth identifying


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ...learning import LearningSettings, Uncertainty

    parser.add_argument("bags", metavar="BAG", nargs="+", type=path, help="run of the motion")
    add_robot_arguments(parser, "--robot")
    what = "commanded motion: arrays t, joint_names, q, qd, qdd, qddd, qdddd; or the file written by the last call"
    parser.add_argument("--motion", metavar="FILE.npz", type=path, required=True, help=what)
    add_output_file(parser, "FILE.npz", path_with(".npz"), "motion of the next run")
    parser.add_argument("--topic", metavar="NAME", help="topic of the measured positions, if there are several")
    add_number(parser, "--natural-frequency", "W", 70.0, "of the motors' PD, rad/s", "not negative")
    add_json(parser)
    add_options(parser, LearningSettings)
    add_options(parser, Uncertainty)


def run(options: argparse.Namespace) -> Result:
    """Learn and write; it fails where learning is refused."""
    require("replay")
    require("simulate")
    from ...elastic import ElasticArm
    from ...learning import (
        LearningError,
        LearningSettings,
        Uncertainty,
        contraction,
        error_shares,
        learn,
        read_correction,
    )
    from ..learn import measured_run
    from ..quantity_text import position_units, together
    from ..writing import whole_file

    robot = load(options)
    last = read_correction(Path(options.motion))
    if last.joint_names != robot.joint_names:
        raise EomDynamicsError(
            f"{options.motion}: has the joints {', '.join(last.joint_names)}, in this order; robot {robot.name} has "
            f"{', '.join(robot.joint_names)}"
        )
    arm = ElasticArm(robot)
    settings, uncertainty = options_of(LearningSettings, options), options_of(Uncertainty, options)
    w0 = options.natural_frequency
    bound = contraction(arm, last.reference[0], settings, uncertainty, natural_frequency=w0)
    recorded = [measured_run(bag, robot, last, options.topic) for bag in options.bags]
    runs = [run.positions for run in recorded]
    shares = error_shares(arm, last, runs, options.bandwidth, natural_frequency=w0) if len(runs) > 1 else ()
    remedy = "eom_dynamics identify finds them in runs recorded with efforts"
    if all(run.efforts for run in recorded):
        command = ["eom_dynamics", "identify", *map(str, options.bags)]
        remedy = f"run {shlex.join([*command, '--robot', options.robot, '-o', 'identified.yaml'])}"
    sentences = [_sentence(x, remedy) for x in shares]
    try:
        correction = learn(arm, last, runs, settings, uncertainty=uncertainty, natural_frequency=w0)
    except LearningError as refusal:
        return Result(lead=sentences, failures=[f"refused: {refusal}"])
    with whole_file(options.output, force=options.force) as aside:
        correction.write(aside)
    errors = ", ".join(f"{x:.3g}" for x in correction.errors)
    return Result(
        lead=[
            f"error of the links: {errors} {together(position_units(robot))} rms, run by run",
            f"bound: errors change by at most {bound.ratio:.2g} a run within the bandwidth, at "
            f"{bound.frequency:.2g} Hz",
            *sentences,
        ],
        notes=[f"{bag}: {note}" for bag, run in zip(options.bags, recorded, strict=True) for note in run.notes],
        files={"motion": options.output},
        json={
            "errors": correction.errors,
            "shares": [{key: None if x != x else x for key, x in joint._asdict().items()} for joint in shares],
            "contraction": {"ratio": bound.ratio, "frequency": bound.frequency},
        },
    )


def _sentence(x: ErrorShares, remedy: str) -> str:
    """What repeats in the error of a joint, and what to do about it; ``remedy`` is that of errors of the model."""
    if not x.repeats:
        return f"{x.joint}: no part of the error repeats beyond its noise; more runs tell smaller ones"
    line = f"{x.joint}: {_percent(x.repeating, x.deviation)} of the error repeats"
    if x.explained != x.explained:
        return f"{line}; what the model explains of it cannot be told of this arm or so short a motion"
    rest = ", the rest is a disturbance that repeats, which learning corrects and identify does not"
    advice = f": {remedy}" if x.explained >= _MOSTLY else rest
    return f"{line}; of this {_percent(x.explained)} is explained by model parameters{advice}"


def _percent(share: float, deviation: float = 0.0) -> str:
    """A share, and its standard deviation if that shows in the digits printed."""
    spread = f"{100 * deviation:.0f}" if deviation >= 0.01 else f"{100 * deviation:.1f}"
    return f"{100 * share:.1f}".removesuffix(".0") + (" %" if spread == "0.0" else f" ± {spread} %")
