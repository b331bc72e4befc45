# SPDX-License-Identifier: Apache-2.0
"""Identification of springs and motors, and of the delay of commands."""
