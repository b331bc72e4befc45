# SPDX-License-Identifier: Apache-2.0
"""User-facing tools: the command line in ``cli``, and a folder for each command or shared part."""
