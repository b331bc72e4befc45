# SPDX-License-Identifier: Apache-2.0
"""Simulate an arm with elastic joints on a trajectory under several feedforwards, and compare the link errors.

The feedforwards: none, that of a rigid arm (tau), and that of differential flatness (tau, taud, taudd), each with the
same PD on the motors. Writes index.html, tracking.png and data.npz.

With --free or --efforts, the motion of any arm, rigid or elastic, from a given state; writes index.html, data.npz and
motion.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...exceptions import EomDynamicsError
from ...extras import require
from ...robot import packaged_robots
from ..results import Result
from ..simulate import FASTEST, LONGEST, MOST_GAINS
from ..writing import check_folder
from .arguments import (
    add_json,
    add_model_errors,
    add_output_folder,
    add_robot_arguments,
    any_number,
    given_errors,
    load,
    number,
    path,
    positive,
)
from .console import progress_bars

if TYPE_CHECKING:
    from rich.progress import Progress

    from ...arrays import Array
    from ...elastic import ElasticArm
    from ...robot import Robot
    from ...simulation.feedforward_comparison import Comparison, SupportsDerivatives

# No model is exact: without errors, the feedforward by flatness shows that of the integration alone.
_MODEL_ERRORS = {"stiffness": -0.2, "mass": 0.1}

_GAINS = [10.0, 20.0, 32.0, 50.0, 70.0, 100.0]

SUMMARY = "simulate an arm on a trajectory, with and without feedforward, and show its link errors"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot_arguments(parser)
    parser.add_argument(
        "trajectory",
        metavar="TRAJECTORY",
        nargs="?",
        help="cosine, the example motion of the paper; or a .npz file with arrays t, q, qd, qdd, qddd, qdddd and "
        "optionally joint_names, such as the demo's data.npz; or a .csv file with columns t, q.JOINT … qdddd.JOINT",
    )
    add_output_folder(parser)
    parser.add_argument("--free", action="store_true", help="in place of TRAJECTORY: let the arm fall, without efforts")
    parser.add_argument(
        "--efforts",
        metavar="FILE",
        type=path,
        help="in place of TRAJECTORY: efforts over time: a .csv file with columns t and tau.JOINT, or a .npz or .json "
        "file with t, tau and optionally joint_names and W, the wrenches that the robot exerts at its tools; or "
        "motion.csv or data.npz of this command",
    )
    for name, what in (("--start", "joint variables, rad or m"), ("--velocity", "joint rates, rad/s or m/s")):
        text = f"with --free or --efforts, {what} at the start; default: 0"
        parser.add_argument(name, nargs="+", type=any_number, metavar="X", help=text)
    parser.add_argument(
        "--gains",
        metavar="W,…",
        type=_gains,
        default=_GAINS,
        help="natural frequencies of the motor PD, rad/s (inspect --gains takes Hz); 0: no feedback; default: "
        "10,20,32,50,70,100",
    )
    add_model_errors(parser, -0.9, 9.0, _MODEL_ERRORS)
    parser.add_argument("--exact", action="store_true", help="simulate the model itself, without these errors")
    parser.add_argument(
        "--duration",
        metavar="S",
        type=number(lambda x: 0 < x <= LONGEST, f"a number above 0, up to {LONGEST:g}"),
        help="s; default: all of a file, 5 s of the example motion and of --free",
    )
    parser.add_argument(
        "--rate", metavar="HZ", type=positive, help="samples per second of a .npz file without t, as for the player"
    )
    parser.add_argument(
        "--method",
        metavar="NAME",
        help="integrator: DOP853 (default, but with --efforts rk4) or another of SciPy's, or, with --step: "
        "euler, semi_implicit_euler, rk4",
    )
    parser.add_argument("--step", metavar="S", type=positive, help="step of the integrators that have a fixed one, s")
    parser.add_argument(
        "--audit", action="store_true", help="print energy, work and heat of the arm with flatness and the highest gain"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> Result:
    """Simulate and write; it fails if no arm can be followed to the end, or if energy and work differ."""
    errors = given_errors(options, _MODEL_ERRORS)
    given = (options.trajectory is not None, options.free, options.efforts is not None)
    if sum(given) != 1:
        options.refuse("give one of TRAJECTORY, --free and --efforts")
    if options.trajectory is None:
        if errors or options.exact or options.rate or options.gains != _GAINS:
            options.refuse("--gains, --rate, --exact and model errors go with TRAJECTORY")
    elif options.start or options.velocity:
        options.refuse("--start and --velocity go with --free and --efforts; a trajectory has its own start")
    if options.exact and errors:
        raise EomDynamicsError("--exact contradicts --stiffness-error and --mass-error; leave one out")
    errors = dict.fromkeys(_MODEL_ERRORS, 0.0) if options.exact else errors or _MODEL_ERRORS
    require("simulate")
    # After the check for the libraries that these import.
    from ...elastic import ElasticArm
    from ...simulation import SimulationError
    from ..simulate.results import comparison_result, write_results
    from ..simulate.trajectory import read_trajectory

    _check_integrator(options)
    robot = load(options)
    check_folder(options.output, force=options.force)
    arm = ElasticArm(robot)
    if options.trajectory is None:
        return _run_open_loop(options, arm)
    if arm.rigid.all() and robot.coupled_stiffness is None:
        raise EomDynamicsError(
            f"{robot.name}: all joints are rigid, so that there is nothing to compare; give a joint a stiffness, see "
            "docs/robots.md, or simulate the arm with --free or --efforts"
        )
    motion, times = read_trajectory(options.trajectory, robot, options.duration, options.rate)
    with progress_bars() as bars:
        try:
            comparison = _compared(options, robot, motion, times, errors, bars)
        except SimulationError as error:
            return Result(failures=[str(error)])
        about = {"robot": f"{options.robot:.200}", "trajectory": options.trajectory}
        if options.robot in packaged_robots():
            about["springs and rotors"] = "example values: the sources of the packaged robots give none"
        bar = bars.add_task("page", total=None)  # which shows that it is under way
        result = comparison_result(comparison, options.output / "index.html", about, audited=options.audit)
        write_results(options.output, comparison, result, force=options.force)
        bars.update(bar, total=1, completed=1)
    return result


def _check_integrator(options: argparse.Namespace) -> None:
    from ...simulation.integrators import check_method

    if options.method is None and options.efforts is None:
        options.method = "DOP853"
    try:
        if options.method is not None:
            check_method(options.method, options.step)
    except ValueError as error:
        raise EomDynamicsError(str(error)) from None


def _run_open_loop(options: argparse.Namespace, arm: ElasticArm) -> Result:
    """Simulate without a trajectory, and write."""
    from ...simulation import SimulationError
    from ..simulate.open_loop import open_loop_result, read_efforts, run_open_loop, write_results

    robot, start = arm.robot, []
    for name, values in (("--start", options.start), ("--velocity", options.velocity)):
        if values and len(values) != robot.n:
            options.refuse(f"{name} takes {robot.n} numbers, has {len(values)}: {', '.join(robot.joint_names)}")
        start.append(values or [0.0] * robot.n)
    efforts = read_efforts(options.efforts, arm) if options.efforts else None
    q, qd = start
    try:
        motion = run_open_loop(arm, q, qd, efforts, duration=options.duration, method=options.method, step=options.step)
    except SimulationError as error:
        return Result(failures=[str(error)])
    about = {"robot": f"{options.robot:.200}", "efforts": str(options.efforts or "none")}
    result = open_loop_result(motion, options.output / "index.html", about)
    write_results(options.output, motion, result, force=options.force)
    return result


def _compared(
    options: argparse.Namespace,
    robot: Robot,
    motion: SupportsDerivatives,
    times: Array,
    errors: Mapping[str, float],
    bars: Progress,
) -> Comparison:
    """Simulate all feedforwards and gains, with a progress bar; raises SimulationError if no arm can be followed."""
    from ...simulation import compare_feedforward

    bar = bars.add_task(robot.name, total=times[-1] - times[0])
    return compare_feedforward(
        robot,
        motion,
        times,
        options.gains,
        stiffness_error=errors["stiffness"],
        mass_error=errors["mass"],
        method=options.method,
        step=options.step,
        progress=lambda t: bars.update(bar, completed=t - times[0]),
    )


_gain = number(lambda x: 0 <= x <= FASTEST, f"numbers from 0 to {FASTEST:g}")


def _gains(text: str) -> list[float]:
    gains = sorted({_gain(each) for each in text.split(",")})
    if len(gains) > MOST_GAINS:
        raise argparse.ArgumentTypeError(f"must be at most {MOST_GAINS} numbers, are {len(gains)}")
    return gains
