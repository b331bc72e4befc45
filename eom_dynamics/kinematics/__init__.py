# SPDX-License-Identifier: Apache-2.0
"""Where the bodies are."""

from .forward import body_poses

__all__ = ["body_poses"]
