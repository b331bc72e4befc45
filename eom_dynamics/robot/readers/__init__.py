# SPDX-License-Identifier: Apache-2.0
"""Readers of robot descriptions: URDF, xacro, and parameter files."""
