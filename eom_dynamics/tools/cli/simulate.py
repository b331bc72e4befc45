# SPDX-License-Identifier: Apache-2.0
"""Simulate an arm with elastic joints on a trajectory under several feedforwards, and compare the link errors.

The feedforwards: none, that of a rigid arm (tau), and that of differential flatness (tau, taud, taudd), each with the
same PD on the motors. Writes index.html, tracking.png and data.npz.

With --free or --efforts, the motion of any arm, rigid or elastic, from a given state; writes index.html, data.npz and
motion.csv.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ...exceptions import EomDynamicsError
from ...extras import require
from ...robot import packaged_robots
from ..results import Result
from ..simulate import SimulationRequest
from ..writing import check_folder
from .arguments import add_json, add_output_folder, add_robot_arguments, load
from .console import progress_bars
from .options import add_options, options_of

if TYPE_CHECKING:
    from ...elastic import ElasticArm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot_arguments(parser)
    add_output_folder(parser)
    add_json(parser)
    add_options(parser, SimulationRequest)


def run(options: argparse.Namespace) -> Result:
    """Simulate and write; it fails if no arm can be followed to the end, or if energy and work differ."""
    request = options_of(SimulationRequest, options)
    require("simulate")
    from ...elastic import ElasticArm
    from ...simulation import SimulationError, compare_feedforward
    from ...simulation.integrators import check_method
    from ..simulate.results import comparison_result, read_trajectory, write_comparison

    if request.method is not None or request.efforts is None:
        check_method(request.method or "DOP853", request.step)
    robot = load(options)
    check_folder(options.output, force=options.force)
    arm = ElasticArm(robot)
    if request.trajectory is None:
        return _run_open_loop(options, request, arm)
    if arm.rigid.all() and robot.coupled_stiffness is None:
        raise EomDynamicsError(
            f"{robot.name}: all joints are rigid, so that there is nothing to compare; give a joint a stiffness, see "
            "docs/actuators.md, or simulate the arm with --free or --efforts"
        )
    motion, times = read_trajectory(request.trajectory, robot, request.duration, request.rate)
    with progress_bars() as bars:
        bar = bars.add_task(robot.name, total=times[-1] - times[0])
        try:
            comparison = compare_feedforward(
                robot,
                motion,
                times,
                sorted(set(request.gains)),
                **request.model_errors,
                method=request.method or "DOP853",
                step=request.step,
                progress=lambda t: bars.update(bar, completed=t - times[0]),
            )
        except SimulationError as error:
            return Result(failures=[str(error)])
        about = {"robot": f"{options.robot:.200}", "trajectory": request.trajectory}
        if options.robot in packaged_robots():
            about["springs and rotors"] = "example values: the sources of the packaged robots give none"
        page = bars.add_task("page", total=None)  # which shows that it is under way
        result = comparison_result(comparison, options.output / "index.html", about, audited=request.audit)
        write_comparison(options.output, comparison, result, force=options.force)
        bars.update(page, total=1, completed=1)
    return result


def _run_open_loop(options: argparse.Namespace, request: SimulationRequest, arm: ElasticArm) -> Result:
    from ...simulation import SimulationError
    from ..simulate.open_loop import open_loop_result, read_efforts, run_open_loop, write_motion

    robot, start = arm.robot, []
    for name, values in (("--start", request.start), ("--velocity", request.velocity)):
        if values and len(values) != robot.n:
            options.refuse(f"{name} takes {robot.n} numbers, has {len(values)}: {', '.join(robot.joint_names)}")
        start.append(values or [0.0] * robot.n)
    efforts = read_efforts(request.efforts, arm) if request.efforts else None
    q, qd = start
    try:
        motion = run_open_loop(arm, q, qd, efforts, duration=request.duration, method=request.method, step=request.step)
    except SimulationError as error:
        return Result(failures=[str(error)])
    about = {"robot": f"{options.robot:.200}", "efforts": str(request.efforts or "none")}
    result = open_loop_result(motion, options.output / "index.html", about)
    write_motion(options.output, motion, result, force=options.force)
    return result
