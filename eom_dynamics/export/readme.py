# SPDX-License-Identifier: Apache-2.0
"""README of exported code: its functions, and how to build, test and use them."""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.emit_c import filled
from ..codegen.program import Program
from .cpp_robot import type_name
from .functions import Function
from .project import SUMMARIES, Project
from .ros2_control import package_name
from .templates import template


def readme(project: Project, languages: Sequence[str]) -> bytes:
    """README in Markdown for these languages."""
    functions = [
        f"- `{function.name}`: {SUMMARIES[name]}\n"
        f"  {', '.join(function.inputs)} → {', '.join(function.outputs)}; {_cost(function)}"
        for name, function in project.functions.items()
    ]
    first = next(iter(project.programs.values()))
    parts = [
        f"# Dynamics of {project.name}\n",
        project.notice_as("    ") + "\n",
        "## Functions\n",
        "\n".join(functions) + "\n",
    ]
    for language in languages:
        parts.append(
            filled(
                template(f"readme_{language}.md.in"),
                library=project.library,
                name=project.name,
                type=type_name(project),
                package=package_name(project),
                option=project.library.upper(),
                function=first.name,
                inputs=", ".join(first.inputs),
                outputs=", ".join(first.outputs),
            )
        )
    return "\n".join(parts).encode()


def _cost(function: Function) -> str:
    if isinstance(function, Program):
        total = function.costs()["total"]
        return f"{total} operations a state" if total else "no operations but factors of results"
    return f"{' then '.join(f'`{step.name}`' for step in function.programs)}"
