# SPDX-License-Identifier: Apache-2.0
"""Texts with ``@fields@`` that exported files are made of."""

from importlib import resources


def template(name: str) -> str:
    """The text of a template."""
    return (resources.files(__package__) / name).read_text(encoding="ascii")
