# SPDX-License-Identifier: Apache-2.0
"""Code generation: dynamics traced for one robot, emitted as straight-line C, compiled, cached and called."""
