# SPDX-License-Identifier: Apache-2.0
"""Templates of exported files, with ``@fields@``."""

from importlib import resources


def template(name: str) -> str:
    """Text of a template."""
    return (resources.files(__package__) / name).read_text(encoding="ascii")
