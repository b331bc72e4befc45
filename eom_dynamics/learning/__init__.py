# SPDX-License-Identifier: Apache-2.0
"""Repeated motions: iterative learning control, and the part of an error that repeats."""

from .iteration import (
    DEFAULT,
    USUAL,
    Contraction,
    Correction,
    LearningError,
    LearningSettings,
    Uncertainty,
    contraction,
    learn,
    read_correction,
    uncorrected,
)
from .repetition import ErrorShares, error_shares

__all__ = [
    "DEFAULT",
    "USUAL",
    "Contraction",
    "Correction",
    "ErrorShares",
    "LearningError",
    "LearningSettings",
    "Uncertainty",
    "contraction",
    "error_shares",
    "learn",
    "read_correction",
    "uncorrected",
]
