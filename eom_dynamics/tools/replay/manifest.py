# SPDX-License-Identifier: Apache-2.0
"""Manifest of outputs: settings and content hashes of bag, robot and the files written."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..contents import file_hash
from .job import Job, Report


class Entry(NamedTuple):
    """What an output was made of.

    Attributes:
        settings: of the replay, as of :meth:`.Job.settings`.
        report: on it, with the content hashes.
        files: SHA-256 of the files written, by name.
    """

    settings: dict[str, Any]
    report: Report
    files: dict[str, str]

    def wrote(self, path: Path) -> bool:
        """Whether a file has the content that the replay wrote: any other is the user's."""
        return path.is_file() and file_hash(path) == self.files.get(path.name)


Manifest = dict[str, Entry]
"""Entries by the name of the output."""


def add_to_manifest(job: Job, report: Report, files: dict[str, str]) -> None:
    """Add a complete output with its ``files`` as of :class:`Entry`; processes of a command share the manifest."""
    sources = {"bag": job.bag.name, "robot": job.robot}
    entry = {"output": job.name, "sources": sources, "settings": job.settings(), "report": report.as_json()}
    entry["files"] = files
    with job.manifest.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(entry, default=_plain) + "\n")
        file.flush()


def read_manifest(path: Path) -> Manifest:
    """Read a manifest: of several lines on an output the last one counts, and lines that are cut off do not."""
    found: Manifest = {}
    try:
        lines = path.read_bytes().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return found
    for line in lines:
        try:
            entry = json.loads(line)
            files = {Path(name).name: value for name, value in entry["files"].items()}
            found[entry["output"]] = Entry(entry["settings"], Report.from_json(entry["report"]), files)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            continue
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is not for JSON")
