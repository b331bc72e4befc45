# SPDX-License-Identifier: Apache-2.0
"""The node ``eom_dynamics`` and its parts."""

NODE = "eom_dynamics"
"""Its name."""
