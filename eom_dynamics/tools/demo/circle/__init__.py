# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics demo --identify``: excitation, recording, identification, and tracking before and after.

``task`` holds the true robot and its motions, ``recording`` what was read from bags, ``result`` the figures.
"""
