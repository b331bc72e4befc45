# SPDX-License-Identifier: Apache-2.0
"""Templates of exported files, with ``@fields@``, and files that are the same for every robot."""

from importlib import resources


def template(name: str) -> str:
    """Text of a template."""
    return (resources.files(__package__) / name).read_text(encoding="ascii")
