# SPDX-License-Identifier: Apache-2.0
"""Simulation of arms with elastic joints: links and motors together, with energy, and feedforwards compared."""

from .elastic_plant import ElasticPlant
from .energy import Energy, energy
from .feedforward_comparison import Comparison, compare_feedforward
from .forward_dynamics import forward_dynamics
from .integration import Simulation, SimulationError, simulate

__all__ = [
    "Comparison",
    "ElasticPlant",
    "Energy",
    "Simulation",
    "SimulationError",
    "compare_feedforward",
    "energy",
    "forward_dynamics",
    "simulate",
]
