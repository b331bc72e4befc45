# SPDX-License-Identifier: Apache-2.0
"""Identification: from recordings of a robot to the parameters that predict them."""

from .base_parameters import BaseParameters, base_parameters, parameter_names
from .exceptions import IdentificationError
from .fit import Fit, Options, fit
from .identified_robot import identified_robot, not_in_file
from .joint_terms import TERMS, Motion, Term
from .recording import Recording
from .regressor import Regressor
from .residuals import Score

__all__ = [
    "TERMS",
    "BaseParameters",
    "Fit",
    "IdentificationError",
    "Motion",
    "Options",
    "Recording",
    "Regressor",
    "Score",
    "Term",
    "base_parameters",
    "fit",
    "identified_robot",
    "not_in_file",
    "parameter_names",
]
