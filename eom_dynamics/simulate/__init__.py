# SPDX-License-Identifier: Apache-2.0
"""Simulation of arms with elastic joints: links and motors together, with energy, and feedforwards compared."""

from .elastic_plant import ElasticPlant
from .energy import Energy, energy
from .fake_robot import FakeRobot
from .feedforward_comparison import Comparison, compare_feedforward
from .forward_dynamics import forward_dynamics
from .integration import Simulation, SimulationError, simulate
from .servo import Servo
from .stepping import Stepper

__all__ = [
    "Comparison",
    "ElasticPlant",
    "Energy",
    "FakeRobot",
    "Servo",
    "Simulation",
    "SimulationError",
    "Stepper",
    "compare_feedforward",
    "energy",
    "forward_dynamics",
    "simulate",
]
