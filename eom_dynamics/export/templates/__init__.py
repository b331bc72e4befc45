# SPDX-License-Identifier: Apache-2.0
"""Templates of exported files, with ``@fields@``, and files that are the same for every robot."""

from importlib import resources


def template(name: str) -> str:
    """Text of a template."""
    return (resources.files(__package__) / name).read_text(encoding="ascii")


def template_names(folder: str) -> list[str]:
    """Names of the templates in a folder, in alphabetical order."""
    return sorted(entry.name for entry in (resources.files(__package__) / folder).iterdir() if entry.is_file())
