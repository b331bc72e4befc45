# SPDX-License-Identifier: Apache-2.0
"""Robot table of the control loop: parameters and kernels of an arm (eom/robot_table.hpp)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import SHAFT_UNITS, Array
from ..codegen.backends import KERNELS
from ..codegen.compiler import require_compiler
from ..codegen.functions import Stage
from ..codegen.native import NativeKernel
from ..codegen.programs import TOOL_KINEMATICS, WITH_PAYLOAD
from ..elastic import ElasticArm, LimitCheck
from ..elastic.elastic_arm import require_arm
from ..elastic.limits import TOLERANCE
from ..exceptions import KernelError
from ..robot.model import ENDS
from .headers import LARGEST_LOADED
from .library import library
from .online_trajectory import braking, stop_limits


def limits_of(arm: ElasticArm) -> dict[str, Array]:
    """Limits of an arm: ends of the ranges ``lower.q`` … ``upper.motor_sum``, and the other limits."""
    check = LimitCheck(arm)
    sums = check.motor_effort * (1 + TOLERANCE)
    numbers = {"largest_effort": check.largest["effort"], "stops": stop_limits(arm), "turn": check.turn}
    numbers |= {f"{name}_limit": check.largest[f"motor_{name}"] for name in SHAFT_UNITS}
    numbers |= {"jump_rate": check.rate_limits[0]}
    numbers |= {"lower.motor_sum": -sums, "upper.motor_sum": sums}
    numbers |= {f"{side}.{name}": x[k] for k, side in enumerate(ENDS) for name, x in check.ends.items()}
    return numbers | {"motor_speed": _motor_speeds(arm, numbers)}


_LIMITED = {"velocity": ("upper.qd", "upper.motor_velocity"), "effort": ("upper.tau", "upper.motor_effort")}


def missing_limits(arm: ElasticArm) -> dict[str, list[str]]:
    """Missing limits (``velocity``, ``effort``) by joint name, if neither a joint nor all of its motors have them."""
    limits, missing = limits_of(arm), dict[str, list[str]]()
    for joint, name in enumerate(arm.robot.joint_names):
        motors = np.asarray(arm.motor_joint) == joint
        for quantity, (of_joint, of_motors) in _LIMITED.items():
            if not (np.isfinite(limits[of_joint][joint]) or np.isfinite(limits[of_motors][motors]).all()):
                missing.setdefault(name, []).append(quantity)
    return missing


def _motor_speeds(arm: ElasticArm, limits: Mapping[str, Array]) -> Array:
    """Maximum speed of each motor (m,), rad/s or m/s, on the link side.

    It is the limit of the motor; or else the velocity limit of the joint plus the deflection rate of its spring at the
    effort rate limit, through the transmission. Without a velocity limit of the joint, it is the speed from which the
    joint can stop within its range; infinite if this is unknown.
    """
    joint = arm.motor_joint
    with np.errstate(divide="ignore", invalid="ignore"):
        within = np.sqrt(2.0 * braking(arm) * (limits["upper.q"] - limits["lower.q"]))
        velocity = np.where(np.isfinite(limits["upper.qd"]), limits["upper.qd"], within)[joint]
        rate = limits["upper.taud"][joint]
        deflection = np.where(np.isfinite(rate), rate / arm.stiffness[joint], 0.0)
    joint_side = np.nan_to_num(velocity + deflection, nan=np.inf, posinf=np.inf)
    to_motors = np.abs(np.linalg.inv(arm.side.joint_sides(list(np.eye(len(joint))))))
    through = np.where(to_motors > 0, to_motors * np.where(to_motors > 0, joint_side, 0.0), 0.0).sum(axis=1)
    of_motor = limits["upper.motor_velocity"]
    return np.where(np.isfinite(of_motor), of_motor, through)


def matrices_of(arm: ElasticArm) -> dict[str, Array]:
    """Matrices from motors to joint sides of springs, and from efforts there to motors and back; rotor inertia."""
    identity = list(np.eye(len(arm.motor_names)))
    sides, loads = arm.side.joint_sides(identity), arm.side.motor_loads(identity)
    matrices = {"joint_sides": np.array(sides), "load_weights": np.array(loads), "to_springs": np.linalg.inv(loads)}
    return matrices | {"motor_inertia": arm.motor_inertia}


def kernels_of(arm: ElasticArm) -> dict[str, Sequence[Stage]]:
    """Kernels by the functions of eom::Kernels, without payload kernels."""
    kernels = _feedforward(arm, "", payload=False)
    if arm.robot.moving_base and arm.rotors is None:
        kernels |= _feedforward(arm, _ON_BASE, payload=False)
    kernels["motors"] = arm.functions.function("motors", spin=arm.rotors is not None).stages
    kernels["drive"] = arm.functions.function("drive").stages
    if arm.damped.any():
        kernels["filtered"] = arm.functions.function("filtered").stages
    if arm.side.presliding.any():
        kernels["presliding"] = arm.functions.function("presliding").stages
    if arm.converts:
        kernels["drive_command"] = arm.drive_function("drive_command").stages
    return kernels


def payload_kernels_of(arm: ElasticArm) -> dict[str, Sequence[Stage]]:
    """Kernels with payloads, compiled at the first call."""
    kernels = _feedforward(arm, "", payload=True)
    if arm.robot.moving_base and arm.rotors is None:
        kernels |= _feedforward(arm, _ON_BASE, payload=True)
    if arm.compensates_payload:
        kernels[f"drive_command{WITH_PAYLOAD}"] = arm.drive_function("drive_command", payload=True).stages
    return kernels


_ON_BASE = "_on_base"


def _feedforward(arm: ElasticArm, suffix: str, *, payload: bool) -> dict[str, Sequence[Stage]]:
    stages = arm.stages(on_base=bool(suffix), payload=payload)
    suffix += WITH_PAYLOAD * payload
    return {f"inverse_dynamics{suffix}": stages[:1], f"feedforward{suffix}": stages}


class RobotTable:
    """Robot table of an arm, in the memory of the loop's library.

    Attributes:
        arm: the arm.
        library: library of the loop.
        address: address of the table.
    """

    def __init__(self, arm: ElasticArm) -> None:
        """Load the library, and load or compile kernels.

        Raises:
            KernelError: the backend of the arm is not compiled, compilation fails, or the library is not built.
        """
        require_arm(arm)
        if arm.backend != "native":
            require_compiler()  # raises the reason if there is no compiler
            raise KernelError("a control loop needs compiled kernels: load the robot for the backend native")
        self.arm = arm
        self._carries = self._observes = self._reads_drives = False
        n, m, tools = arm.robot.n, len(arm.motor_names), len(arm.robot.tools)
        most = tuple(LARGEST_LOADED.values())
        if any(x > largest for x, largest in zip((n, m, tools), most, strict=True)):
            raise KernelError(f"a control loop is for at most {most} joints, motors and tools, not {n, m, tools}")
        self.library = library()
        self.address: int | None = self.library.robot_make(n, m, tools)
        for joints, names in ((True, arm.robot.joint_names), (False, arm.motor_names)):
            self.library.robot_call(self.address, joints, _names(names), len(names))
        numbers = {
            "nominal_stiffness": arm.side.nominal_stiffness,
            "motor_joint": arm.motor_joint,
            "transmission": arm.transmission is not None,
            "commanded_stiffness": arm.variable.any(),
            "command_lead": arm.robot.command_lead,
        }
        for name, values in (numbers | limits_of(arm) | matrices_of(arm)).items():
            row = np.ascontiguousarray(values, dtype=float).ravel()
            raise_reason(self.library.robot_set(self.address, name.encode(), row.ctypes.data, len(row)), name)
        self._add(kernels_of(arm))

    def prepare_payload(self) -> None:
        """Compile the kernels with payloads, or load them from the cache, also for existing loops of the table."""
        if not self._carries:
            self._add(payload_kernels_of(self.arm))
            self._carries = True

    def prepare_tools(self) -> None:
        """Compile the kernels of tool kinematics, or load them from the cache, also for existing loops of the table."""
        if self.arm.robot.tools:
            kernel = KERNELS[self.arm.backend](self.arm.robot, TOOL_KINEMATICS)
            self._add({"tool_kinematics": [Stage(kernel, TOOL_KINEMATICS.inputs, TOOL_KINEMATICS.outputs)]})

    def prepare_observer(self) -> None:
        """Compile the kernels of the observer, or load them from the cache, also for existing loops of the table."""
        motors = ("spring_loads", "motor_loads", "deflections")
        links = ("momentum_balance", f"momentum_balance{WITH_PAYLOAD}")
        if not self._observes:
            self._add({name: self.arm.functions.function(name).stages for name in motors})
            self._add({name: self.arm.dynamics._function(name).stages for name in links})
            self._observes = True

    def prepare_drive_states(self) -> None:
        """Compile the kernels that convert from drive units, or load them from the cache, also for existing loops."""
        if self.arm.converts and not self._reads_drives:
            self._add({"drive_state": self.arm.drive_function("drive_state").stages})
            self._reads_drives = True

    def _add(self, kernels: Mapping[str, Sequence[Stage]]) -> None:
        for function, stages in kernels.items():
            for kernel, inputs, outputs in stages:
                assert isinstance(kernel, NativeKernel)
                lists = [part for names in (inputs, outputs) for part in (_names(names), len(names))]
                reason = self.library.robot_add(self.address, function.encode(), kernel.state_address, *lists)
                raise_reason(reason, function)

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self.library.robot_free(self.address)


def raise_reason(reason: bytes | None, name: str) -> None:
    """Raise AssertionError: Python and C++ disagree on a name."""
    assert reason is None, (name, reason)


def _names(names: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(names))(*(name.encode() for name in names))
