# SPDX-License-Identifier: Apache-2.0
"""Fastest motions along paths in files: reading waypoints, and the page of the result."""
