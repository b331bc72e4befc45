# SPDX-License-Identifier: Apache-2.0
"""Write the names, addresses and version of ``setup.cfg`` and the package into the other files that state them."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def files() -> dict[Path, str]:
    """Each file that states an address or the version, as it should be."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    about = setup["metadata"]
    urls = dict(line.split(" = ") for line in about["project_urls"].strip().splitlines())
    init = (ROOT / "eom_dynamics" / "__init__.py").read_text(encoding="utf-8")
    version = re.findall(r'^__version__ = "(.*)"$', init, re.MULTILINE)[0]
    changes = {
        "package.xml": [
            (r"<version>.*</version>", f"<version>{version}</version>"),
            (
                r"<maintainer .*</maintainer>",
                f'<maintainer email="{about["maintainer_email"]}">{about["maintainer"]}</maintainer>',
            ),
            (r"<author>.*</author>", f"<author>{about['author']}</author>"),
            (r'<url type="website">.*<', f'<url type="website">{urls["Documentation"]}<'),
            (r'<url type="bugtracker">.*<', f'<url type="bugtracker">{urls["Issues"]}<'),
            (r'<url type="repository">.*<', f'<url type="repository">{urls["Source"]}<'),
        ],
        "CITATION.cff": [
            (r"(?m)^version: .*", f"version: {version}"),
            (r"(?m)^repository-code: .*", f"repository-code: {urls['Source']}"),
            (r"(?m)^url: .*", f"url: {urls['Documentation']}"),
            (r"(?m)^  - name: .*", f"  - name: {about['author']}"),
        ],
    }
    found = {}
    for name, pairs in changes.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for pattern, line in pairs:
            text, count = re.subn(pattern, lambda _, line=line: line, text)
            if count != 1:
                raise LookupError(f"{name}: {pattern} is there {count} times")
        found[ROOT / name] = text
    return found


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
