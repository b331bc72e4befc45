# SPDX-License-Identifier: Apache-2.0
"""Programs for people: the command line in ``cli``, and a folder for each command or shared idea."""
