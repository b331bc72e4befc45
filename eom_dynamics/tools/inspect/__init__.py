# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics inspect``: the facts of a robot description, as data and as text."""
