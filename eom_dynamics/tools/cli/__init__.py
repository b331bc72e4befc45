# SPDX-License-Identifier: Apache-2.0
"""The command line: ``main``, and a file of arguments, calls and printing for each command."""
