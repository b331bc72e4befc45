# SPDX-License-Identifier: Apache-2.0
"""Optimal excitation: informative motions within limits."""
