# SPDX-License-Identifier: Apache-2.0
"""The motor side of a stream as compiled code: the exported ``eom_motors`` for one robot.

It must give the bits of :meth:`eom_dynamics.ElasticArm.feedforward`. Sums, products and quotients of doubles are the
same in C and NumPy as long as none are fused, so fusing is off here; exponentials, roots and matrix products differ in
their last bits between libraries. For arms that need one of these there is no such code: see
:func:`has_equal_arithmetic`.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np

from ..codegen.cache import digest
from ..codegen.compiler import compiled
from ..codegen.emit_c import filled
from ..elastic import ElasticArm
from ..exceptions import KernelError
from ..export.c_motors import C, motors_header
from ..export.motors import MOTOR_NAMES, motor_feedforward
from ..export.project import Project
from ..states import EFFORT_NAMES, STATE_NAMES, derivative_names

_EXACT_SPRINGS = ("linear", "rigid")

_UNFUSED = "-ffp-contract=off"

_SOURCE = """
/* From state (5 n) and efforts (3 n) to motors (4 m). */
void eom_stream_motors(const double *state, const double *efforts, double *motors)
{
    eom_motors(@arguments@);
}
"""


def has_equal_arithmetic(arm: ElasticArm) -> bool:
    """Whether C and NumPy give the same bits for the motor side of an arm.

    It takes rigid joints and linear springs, the reduced rotor model, lossless gears, friction without a dry part, and
    no transmission.
    """
    robot = arm.robot
    dry = (arm.friction.coulomb, arm.friction.static)
    return (
        arm.rotors is None
        and arm.transmission is None
        and arm.coupled is None
        and all(spring.kind in _EXACT_SPRINGS for spring in arm.springs)
        and all(joint.actuator.gear.is_lossless for joint in robot.independent_joints)
        and not any(np.any(x) for x in dry)
    )


def motors_address(arm: ElasticArm) -> int:
    """Address of ``void(const double *state, const double *efforts, double *motors)``; compiled or from the cache.

    Args:
        arm: an arm that :func:`has_equal_arithmetic`.

    Returns:
        The address; 0 if springs or rotors of the arm are not those of its robot, so that the motor side differs.

    Raises:
        KernelError: it cannot be compiled or loaded.
    """
    source = _source(arm)
    with compiled(lambda: source, digest("stream motors", source), [_UNFUSED, "-lm"]) as path:
        try:
            function = ctypes.CDLL(str(path)).eom_stream_motors
        except (OSError, AttributeError) as error:
            raise KernelError(f"a compiled kernel cannot be loaded: {error}") from None
    if not _agrees(arm, function):
        return 0
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None  # it was found in the library
    return address


def _agrees(arm: ElasticArm, function: Any) -> bool:
    """Whether the code has the numbers of the arm: the same bits for one state."""
    state = np.linspace(0.1, 1.0, len(STATE_NAMES) * arm.robot.n).reshape(len(STATE_NAMES), -1)
    command = arm.feedforward(*state)
    efforts, wanted = np.stack(command[: len(EFFORT_NAMES)]), np.stack(command[len(EFFORT_NAMES) :])
    motors = np.empty_like(wanted)
    function(*(ctypes.c_void_p(x.ctypes.data) for x in (state, efforts, motors)))
    return motors.tobytes() == wanted.tobytes()


def _source(arm: ElasticArm) -> str:
    robot, n, m = replace(arm.robot, joint_friction=False), arm.robot.n, len(arm.motor_names)
    wrenches = derivative_names("W", len(EFFORT_NAMES))
    inputs = dict.fromkeys(STATE_NAMES, n) | dict.fromkeys(wrenches, 6 * len(robot.tools))
    feedforward = motor_feedforward(robot, "eom_feedforward", inputs, dict.fromkeys(EFFORT_NAMES, n))
    place = {name: f"state + {k * n}" for k, name in enumerate(STATE_NAMES)}
    place |= {name: f"efforts + {k * n}" for k, name in enumerate(EFFORT_NAMES)}
    place |= {name: f"motors + {k * m}" for k, name in enumerate(MOTOR_NAMES)}
    project = Project(robot=robot, name="eom", joints=(), programs={}, feedforward=feedforward)
    arguments = ", ".join(place[name] for name in (*feedforward.motor_inputs, *MOTOR_NAMES))
    return motors_header(project, feedforward, C) + filled(_SOURCE, arguments=arguments)
