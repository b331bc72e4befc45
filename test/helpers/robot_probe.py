# SPDX-License-Identifier: Apache-2.0
"""A node of this process with nothing but a robot supply."""

import contextlib
import itertools
import time
from types import SimpleNamespace

from eom_dynamics.ros.diagnostics import Level, StatusReport
from eom_dynamics.ros.parameter_tables import COMMON
from eom_dynamics.ros.robot_node import RobotNode

PATIENCE = 60.0

_numbers = itertools.count(1)


class RobotProbe(RobotNode):
    """Collects the robots delivered in ``loaded``.

    Attributes:
        robot_wanted: whether robots that arrive by themselves are to be loaded.
    """

    arm = None
    robot_wanted = True

    def __init__(self, executor, *arguments):
        self.namespace_of_probe = f"/probe_{next(_numbers)}"
        super().__init__(
            "probe",
            namespace=self.namespace_of_probe,
            allow_undeclared_parameters=True,
            cli_args=["--ros-args", *map(str, arguments)],
            use_global_arguments=False,
        )
        self.loaded = []
        self.declare(COMMON)
        self.complete("probe", SimpleNamespace(interrupting=contextlib.nullcontext))
        self._spinner = executor
        executor.add_node(self)

    def on_robot(self, loaded):
        self.loaded.append(loaded)

    def report(self, seconds):
        return StatusReport(Level.OK, "", {})

    def spin_until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.supply.problem
            self._spinner.spin_once(timeout_sec=0.05)

    def spin(self, seconds):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._spinner.spin_once(timeout_sec=left)
