# SPDX-License-Identifier: Apache-2.0
"""Identification as a command: recordings from files, robot files with uncertainties, tables and a page."""
