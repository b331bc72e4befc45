# SPDX-License-Identifier: Apache-2.0
"""Parts of the node ``eom_dynamics_planning``: requests and answers."""
