# SPDX-License-Identifier: Apache-2.0
"""Time the dynamics beside other ways to the same numbers; ``bench/`` in the sources holds the full comparison."""
