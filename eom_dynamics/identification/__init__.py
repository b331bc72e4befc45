# SPDX-License-Identifier: Apache-2.0
"""Identification of robot parameters from recordings."""

from .elastic.arm import ArmFit, ElasticOptions, identify_arm, identify_elasticity
from .elastic.delay import drive_delay, period_of
from .elastic.motor import MotorFit, MotorModel, fit_gear_ratio, fit_motor, fit_motors, with_motors
from .elastic.resonance import ResonanceFit, fit_resonance, frequency_response, identify_resonance, with_resonance
from .elastic.springs import SpringFit, fit_coupled_spring, fit_spring, fit_springs, with_coupled_spring, with_springs
from .excitation.excitation import Excitation, ExcitationOptions, OptimalExcitation
from .links.fit import Fit, fit, identified_robot, not_in_file, verified
from .links.parameters import Options
from .links.regressor import BaseParameters, Regressor, base_parameters, parameter_names
from .links.terms import TERMS, Motion, Term
from .links.verification import Score
from .recording import ArmRecording, IdentificationError, Recording

__all__ = ["TERMS", "Fit", "Motion", "Options", "Score", "Term", "fit", "identified_robot", "not_in_file", "verified"]
__all__ += ["BaseParameters", "Regressor", "base_parameters", "parameter_names"]
__all__ += ["SpringFit", "fit_coupled_spring", "fit_spring", "fit_springs", "with_coupled_spring", "with_springs"]
__all__ += ["MotorFit", "MotorModel", "fit_gear_ratio", "fit_motor", "fit_motors", "with_motors"]
__all__ += ["ResonanceFit", "fit_resonance", "frequency_response", "identify_resonance", "with_resonance"]
__all__ += ["ArmFit", "ElasticOptions", "drive_delay", "identify_arm", "identify_elasticity", "period_of"]
__all__ += ["Excitation", "ExcitationOptions", "OptimalExcitation"]
__all__ += ["ArmRecording", "IdentificationError", "Recording"]
