# SPDX-License-Identifier: Apache-2.0
"""Simulation of links and motors of rigid or elastic arms: integrators, energy, and stability margins."""

from ..exceptions import SimulationError
from .elastic_plant import ElasticPlant
from .integration import Energy, Simulation, energy, energy_audit, simulate
from .margins import LinearLoop, Margins, OuterLoop, motor_gains, motor_loop, outer_loop
from .simulated_robot import SimulatedDrives, SimulatedRobot
from .stepping import Servo, Stepper

__all__ = [
    "ElasticPlant",
    "Energy",
    "LinearLoop",
    "Margins",
    "OuterLoop",
    "Servo",
    "SimulatedDrives",
    "SimulatedRobot",
    "Simulation",
    "SimulationError",
    "Stepper",
    "energy",
    "energy_audit",
    "motor_gains",
    "motor_loop",
    "outer_loop",
    "simulate",
]
