# SPDX-License-Identifier: Apache-2.0
"""Identification of robot parameters from recordings."""

from .elastic.arm import ArmFit, ElasticOptions, identify_arm, identify_elasticity
from .elastic.delay import drive_delay, period_of
from .elastic.motor import MotorFit, MotorModel, fit_motor
from .elastic.resonance import ResonanceFit, fit_resonance, frequency_response, identify_resonance, with_resonance
from .elastic.springs import SpringFit, fit_spring
from .excitation import Excitation, ExcitationOptions, OptimalExcitation
from .links.fit import Fit, fit, identified_robot, verified
from .links.parameters import Options
from .links.regressor import TERMS, BaseParameters, Motion, Regressor, Term, base_parameters, parameter_names
from .links.verification import Score
from .recording import ArmRecording, IdentificationError, Recording

__all__ = [
    "TERMS",
    "ArmFit",
    "ArmRecording",
    "BaseParameters",
    "ElasticOptions",
    "Excitation",
    "ExcitationOptions",
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
    "drive_delay",
    "fit",
    "fit_motor",
    "fit_resonance",
    "fit_spring",
    "frequency_response",
    "identified_robot",
    "identify_arm",
    "identify_elasticity",
    "identify_resonance",
    "parameter_names",
    "period_of",
    "verified",
    "with_resonance",
]
