# SPDX-License-Identifier: Apache-2.0
"""Simulation of links and motors of arms, rigid or elastic: integrators, energy, and comparison of feedforwards."""

from ..exceptions import SimulationError
from .elastic_plant import ElasticPlant
from .energy import Energy, EnergyAudit, energy, energy_audit
from .expected_errors import Advice, expected_errors, feedforward_advice
from .feedforward_comparison import Comparison, compare_feedforward
from .free_motion import FreeMotion, simulate_free_motion
from .integration import Simulation, simulate
from .margins import LinearLoop, Margins, OuterLoop, link_loop, motor_gains, motor_loop, outer_loop
from .simulated_robot import SimulatedDrives, SimulatedRobot
from .stepping import Servo, Stepper

__all__ = [
    "Advice",
    "Comparison",
    "ElasticPlant",
    "Energy",
    "EnergyAudit",
    "FreeMotion",
    "LinearLoop",
    "Margins",
    "OuterLoop",
    "Servo",
    "SimulatedDrives",
    "SimulatedRobot",
    "Simulation",
    "SimulationError",
    "Stepper",
    "compare_feedforward",
    "energy",
    "energy_audit",
    "expected_errors",
    "feedforward_advice",
    "link_loop",
    "motor_gains",
    "motor_loop",
    "outer_loop",
    "simulate",
    "simulate_free_motion",
]
