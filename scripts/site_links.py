# SPDX-License-Identifier: Apache-2.0
"""Check the links of a built site: ``site_links.py FOLDER``.

Each link to a file of the site must have its file, each fragment its element; nothing that a page needs may come from
the network. Links to other sites are not fetched.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """Links, resources and ids of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.resources: set[str] = set()
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids |= {str(found[name]) for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.add(str(found["href"]))
        elif tag in ("img", "script", "source") and found.get("src"):
            self.resources.add(str(found["src"]))
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon"):
            self.resources.add(str(found["href"]))


def problems(site: Path) -> list[str]:
    """Broken links of all pages of a site, a line each."""
    site = site.resolve()
    pages = {path.resolve(): _Page(path) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site} has no pages"]
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in sorted(page.links | page.resources):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.resources and parts.scheme != "data":
                    found.append(f"{where}: {link} comes from the network")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{where}: {link} has no file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{where}: {link} has no such place")
    return found


if __name__ == "__main__":
    lines = problems(Path(sys.argv[1]))
    print("\n".join(lines) if lines else "all links of the site lead somewhere")
    sys.exit(bool(lines))
