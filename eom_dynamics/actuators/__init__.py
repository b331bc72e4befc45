# SPDX-License-Identifier: Apache-2.0
"""From the motion of the links to the motion and effort of the motors."""

from .elastic_arm import ElasticArm, Feedforward

__all__ = ["ElasticArm", "Feedforward"]
