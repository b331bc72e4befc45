# SPDX-License-Identifier: Apache-2.0
"""Recordings and motions in files of numbers."""
