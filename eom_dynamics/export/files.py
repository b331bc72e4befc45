# SPDX-License-Identifier: Apache-2.0
"""All files of a project in several languages."""

from __future__ import annotations

from collections.abc import Sequence

from .languages import LANGUAGES, UnavailableError, language_unavailable, library_missing
from .project import Project
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
        UnavailableError: a language of ``languages`` cannot be generated here, or for this project.
    """
    wanted = list(dict.fromkeys(LANGUAGES if languages is None else languages))
    unable = {x: reason for x in wanted if (reason := language_unavailable(project, x))}
    missing = {x: reason for x in wanted if x not in unable and (reason := library_missing(x))}
    generated = [x for x in wanted if x not in unable | missing]
    if languages is not None and len(generated) < len(wanted):
        raise UnavailableError(next(iter((unable | missing).values())))
    stored = stored_values(project)
    files = {
        f"{language}/{name}": content
        for language in generated
        for name, content in LANGUAGES[language].files(project, stored).items()
    }
    return {"README.md": readme(project, generated), **files}, missing
