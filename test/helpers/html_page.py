# SPDX-License-Identifier: Apache-2.0
"""Parse an HTML page."""

from html.parser import HTMLParser

# Attributes of links and loaded resources of a page.
LOADING = {"src", "srcset", "href", "data", "action", "poster", "background", "xlink:href"}


class Page(HTMLParser):
    """References, scripts, places of charts, and text of an HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self.places: set[str] = set()
        self.policy = ""
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._within = tag
        self.references += [value or "" for name, value in attributes if name in LOADING]
        given = dict(attributes)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        if "data-chart" in given:
            self.places.add(given["data-chart"] or "")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.scripts[-1] += data
        elif self._within != "style":
            self.text += data
