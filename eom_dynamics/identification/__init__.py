# SPDX-License-Identifier: Apache-2.0
"""Identification of robot parameters from recordings."""

from .base_parameters import BaseParameters, base_parameters, parameter_names
from .both_sides import ArmRecording
from .elastic_arm import ArmFit, identify_arm
from .elastic_options import ElasticOptions
from .elastic_robot import with_coupled_spring, with_motors, with_resonance, with_springs
from .exceptions import IdentificationError
from .excitation import Excitation, ExcitationBounds, ExcitationCriterion, ExcitationSeries, OptimalExcitation
from .fit import Fit, fit, identified_robot, not_in_file, verified
from .joint_terms import TERMS, Motion, Term
from .motor import MotorFit, MotorModel, fit_gear_ratio, fit_motor, fit_motors
from .options import Options
from .recording import Recording
from .regressor import Regressor
from .residuals import Score
from .resonance import ResonanceFit, fit_resonance, frequency_response
from .springs import SpringFit, fit_coupled_spring, fit_spring, fit_springs

__all__ = [
    "TERMS",
    "ArmFit",
    "ArmRecording",
    "BaseParameters",
    "ElasticOptions",
    "Excitation",
    "ExcitationBounds",
    "ExcitationCriterion",
    "ExcitationSeries",
    "Fit",
    "IdentificationError",
    "Motion",
    "MotorFit",
    "MotorModel",
    "OptimalExcitation",
    "Options",
    "Recording",
    "Regressor",
    "ResonanceFit",
    "Score",
    "SpringFit",
    "Term",
    "base_parameters",
    "fit",
    "fit_coupled_spring",
    "fit_gear_ratio",
    "fit_motor",
    "fit_motors",
    "fit_resonance",
    "fit_spring",
    "fit_springs",
    "frequency_response",
    "identified_robot",
    "identify_arm",
    "not_in_file",
    "parameter_names",
    "verified",
    "with_coupled_spring",
    "with_motors",
    "with_resonance",
    "with_springs",
]
