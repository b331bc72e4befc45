# SPDX-License-Identifier: Apache-2.0
"""Parts of the node ``simulated_robot``: pace, watchdog, statistics and parameters."""
