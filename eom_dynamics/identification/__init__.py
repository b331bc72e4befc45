# SPDX-License-Identifier: Apache-2.0
"""Identification: from recordings of a robot to the parameters that predict them."""

from .base_parameters import BaseParameters, base_parameters, parameter_names
from .excitation import Excitation, OptimalExcitation
from .joint_terms import TERMS, Motion, Term
from .regressor import Regressor

__all__ = [
    "TERMS",
    "BaseParameters",
    "Excitation",
    "Motion",
    "OptimalExcitation",
    "Regressor",
    "Term",
    "base_parameters",
    "parameter_names",
]
