# SPDX-License-Identifier: Apache-2.0
"""Identification of robot parameters from recordings."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .elastic.arm import ArmFit, identify_arm, identify_elasticity
    from .elastic.delay import drive_delay, period_of
    from .elastic.motor import MotorFit, MotorModel, fit_motor
    from .elastic.options import ElasticOptions
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

# Names by module. They are imported at their first use, since the fits take long to import.
_MODULES = {
    "elastic.arm": "ArmFit identify_arm identify_elasticity",
    "elastic.delay": "drive_delay period_of",
    "elastic.motor": "MotorFit MotorModel fit_motor",
    "elastic.options": "ElasticOptions",
    "elastic.resonance": "ResonanceFit fit_resonance frequency_response identify_resonance with_resonance",
    "elastic.springs": "SpringFit fit_spring",
    "excitation": "Excitation ExcitationOptions OptimalExcitation",
    "links.fit": "Fit fit identified_robot verified",
    "links.parameters": "Options",
    "links.regressor": "TERMS BaseParameters Motion Regressor Term base_parameters parameter_names",
    "links.verification": "Score",
    "recording": "ArmRecording IdentificationError Recording",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
