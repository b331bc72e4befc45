# SPDX-License-Identifier: Apache-2.0
"""All files of a project in several languages."""

from __future__ import annotations

from collections.abc import Sequence

from ..exceptions import KernelError
from .languages import LANGUAGES
from .project import Project, UnavailableError
from .readme import readme
from .stored_values import stored_values


def project_files(project: Project, languages: Sequence[str] | None = None) -> tuple[dict[str, bytes], dict[str, str]]:
    """Generate the code of a project.

    Args:
        project: a robot's programs.
        languages: keys of :data:`LANGUAGES`; None for all that can be generated here.

    Returns:
        Contents of the files by path, and the reason why a language cannot be generated here by its name.

    Raises:
        ExportError: the programs differ from the closed form.
        KernelError: a language of ``languages`` cannot be generated here.
        UnavailableError: a language of ``languages`` cannot be generated for this project.
    """
    stored = stored_values(project)
    files: dict[str, bytes] = {}
    skipped: dict[str, str] = {}
    generated = []
    for language in dict.fromkeys(LANGUAGES if languages is None else languages):
        try:
            contents = LANGUAGES[language](project, stored)
        except UnavailableError:
            if languages is not None:
                raise
            continue
        except KernelError as error:
            if languages is not None:
                raise
            skipped[language] = str(error)
            continue
        generated.append(language)
        files |= {f"{language}/{name}": content for name, content in contents.items()}
    return {"README.md": readme(project, generated), **files}, skipped
