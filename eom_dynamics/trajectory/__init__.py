# SPDX-License-Identifier: Apache-2.0
"""Motions of the joints in time, with as many time derivatives as the dynamics ask for."""

from .cosine import Cosine, paper_motion, paper_wrench

__all__ = ["Cosine", "paper_motion", "paper_wrench"]
