# SPDX-License-Identifier: Apache-2.0
"""From a robot to straight-line code: traced, compiled, cached, called, exported."""
