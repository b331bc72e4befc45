# SPDX-License-Identifier: Apache-2.0
"""Closing the loop: excite a simulated robot that differs from its file, identify it, and track with the result.

``experiment`` holds the true robot, its motions and the runs, ``over_ros`` plays them by ``lockstep_player``,
``results`` and ``page`` show the figures.
"""
