# SPDX-License-Identifier: Apache-2.0
"""Timing of the dynamics compared with other libraries; the full comparison is ``bench/`` in the sources."""
