# SPDX-License-Identifier: Apache-2.0
"""Timing of the dynamics beside other libraries; the full comparison is ``bench/`` in the sources."""
