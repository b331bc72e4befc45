# SPDX-License-Identifier: Apache-2.0
"""The command line: ``main`` reads it, and each sub-command has a file of its own."""
