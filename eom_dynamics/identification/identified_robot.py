# SPDX-License-Identifier: Apache-2.0
"""The identified robot, and terms of the fit that a robot file cannot express."""

from __future__ import annotations

from ..robot import Robot
from .fit import Fit
from .parameters_in_robot import terms_not_in_file, with_parameters


def identified_robot(fit: Fit) -> Robot:
    """The robot with identified inertias, friction and rotors, see :func:`.parameters_in_robot.with_parameters`."""
    return with_parameters(fit.robot, fit.options, fit.filter, fit.parameters, fit.terms, fit.kept)


def not_in_file(fit: Fit) -> list[str]:
    """Identified terms that a robot file cannot express, one line each."""
    lines = []
    names = fit.robot.joint_names
    for term in fit.regressor.terms:
        values = zip(names, fit.terms[term], fit.term_of_file[term], strict=True)
        listed = ", ".join(f"{name} {value:.4g}" for name, value, of_file in values if not of_file)
        if not listed:
            continue
        if term in terms_not_in_file(fit.options):
            lines.append(f"{term}: {listed}")
        elif term == "stribeck" and fit.options.side == "joint":
            lines.append(f"stribeck: {listed}; joint friction has none, only that of actuators does")
    return lines
