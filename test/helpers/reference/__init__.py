# SPDX-License-Identifier: Apache-2.0
"""Formulas of the control loop in readable Python, which share no code with it."""
