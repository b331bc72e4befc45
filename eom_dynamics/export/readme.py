# SPDX-License-Identifier: Apache-2.0
"""README of exported code: its functions, and how to build, test and use them."""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.emit_c import filled
from .project import SUMMARIES, Project
from .templates import template


def readme(project: Project, languages: Sequence[str]) -> bytes:
    """README in Markdown for these languages."""
    functions = [
        f"- `{program.name}`: {SUMMARIES[function]}\n"
        f"  {', '.join(program.inputs)} → {', '.join(program.outputs)}; {program.costs()['total']} operations a state"
        for function, program in project.programs.items()
    ]
    first = next(iter(project.programs.values()))
    parts = [
        f"# Dynamics of {project.name}\n",
        "\n".join(f"    {line}".rstrip() for line in project.notice()) + "\n",
        "## Functions\n",
        "\n".join(functions) + "\n",
    ]
    for language in languages:
        parts.append(
            filled(
                template(f"readme_{language}.md.in"),
                library=project.library,
                option=project.library.upper(),
                function=first.name,
                inputs=", ".join(first.inputs),
                outputs=", ".join(first.outputs),
            )
        )
    return "\n".join(parts).encode()
