# SPDX-License-Identifier: Apache-2.0
"""Reports, one HTML page of recordings: ``record`` evaluates a recording, ``read`` reads it, ``results`` shows it."""
