# SPDX-License-Identifier: Apache-2.0
"""The parts of the node ``simulated_robot``: its time, its watchdog, its commands and its parameters."""
