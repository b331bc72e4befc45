# SPDX-License-Identifier: Apache-2.0
"""Write the addresses of the owner into setup.cfg, package.xml and CITATION.cff, before a release.

addresses.py SOURCES DOCUMENTATION EMAIL    such as https://github.com/me/eom_dynamics https://… me@example.org
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Addresses by file: pattern and text; the text follows the first group, and replaces the rest of the match.
TEXTS = {
    "setup.cfg": (
        r"(\[metadata\]\n)(?:url = .*\nmaintainer_email = .*\nproject_urls =\n(?:    .*\n){4})?",
        "url = {sources}\nmaintainer_email = {email}\nproject_urls =\n    Documentation = {documentation}\n"
        "    Source = {sources}\n    Issues = {sources}/issues\n    Changelog = {sources}/blob/main/CHANGELOG.rst\n",
    ),
    "package.xml": (
        r'(<maintainer email=)"[^"]*"(.*</maintainer>\n.*</license>\n)(?:  <url .*\n)*',
        '"{email}"\\2  <url type="website">{documentation}</url>\n  <url type="repository">{sources}</url>\n'
        '  <url type="bugtracker">{sources}/issues</url>\n',
    ),
    "CITATION.cff": (
        r"(type: software\n)(?:repository-code: .*\nurl: .*\n)?",
        "repository-code: {sources}\nurl: {documentation}\n",
    ),
}


def write_addresses(sources: str, documentation: str, email: str, root: Path = ROOT) -> None:
    """Fill in the addresses, replacing addresses of an earlier call."""
    for name, (place, text) in TEXTS.items():
        filled = text.format(sources=sources.rstrip("/"), documentation=documentation, email=email)
        found, count = re.subn(place, rf"\g<1>{filled}", (root / name).read_text(), count=1)
        if not count:
            raise SystemExit(f"{name}: no place for the addresses, {place!r}")
        (root / name).write_text(found)


if __name__ == "__main__":
    if len(sys.argv) != 4 or "@" not in sys.argv[3] or not all(x.startswith("https://") for x in sys.argv[1:3]):
        raise SystemExit(__doc__.strip())
    write_addresses(*sys.argv[1:])
