# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics simulate``: trajectory, and page, picture and summary of a feedforward comparison."""
