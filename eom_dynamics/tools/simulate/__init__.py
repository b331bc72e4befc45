# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics simulate``: trajectory, and page, picture and summary of a feedforward comparison."""

LONGEST = 600.0
"""Longest motion, s; a second takes about as long to compute."""

FASTEST = 1000.0
"""Largest natural frequency of the motor PD, rad/s; a faster one takes more steps of the integrator."""

MOST_GAINS = 50
"""Each gain is simulated with every feedforward, all of them at once."""
