# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics with time derivatives, and flatness-based feedforward for elastic-joint arms."""

__version__ = "0.1.0"
