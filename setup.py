# SPDX-License-Identifier: Apache-2.0
"""The library and the command line as a wheel; setup.cfg says it all."""

from setuptools import setup

setup()
