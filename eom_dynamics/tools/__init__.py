# SPDX-License-Identifier: Apache-2.0
"""User-facing tools: the command line in ``cli``, and a file or a folder for each command or shared part."""
