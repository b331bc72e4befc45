# SPDX-License-Identifier: Apache-2.0
"""Contacts: constrained dynamics, friction cones and contact wrench cones."""

from .contact import Contact, FrictionCone, PointContact, SurfaceContact, WrenchCone, axes_of_normal
from .contact_dynamics import ContactDynamics, ContactEfforts, ContactSolution

__all__ = [
    "Contact",
    "ContactDynamics",
    "ContactEfforts",
    "ContactSolution",
    "FrictionCone",
    "PointContact",
    "SurfaceContact",
    "WrenchCone",
    "axes_of_normal",
]
