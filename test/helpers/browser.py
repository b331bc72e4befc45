# SPDX-License-Identifier: Apache-2.0
"""A headless browser that records errors and requests of a page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# Names of the executable in distributions.
_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

# Without background requests, and without a sandbox, which containers lack.
_ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)

SIZE = {"width": 1280, "height": 720}  # of the window, pixels


def chromium() -> str:
    """Return the executable of the browser, or skip the test."""
    pytest.importorskip("playwright", reason="playwright is missing: make build")
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(_NAMES)}")
    return found


@contextmanager
def started() -> Iterator[Any]:
    """Start the browser, or skip the test."""
    executable = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, headless=True, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """An open HTML page.

    Attributes:
        page: of Playwright.
        complaints: errors and warnings on its console, and uncaught exceptions.
        requests: URLs it requested besides its own.
    """

    def __init__(self, browser: Any, file: Path, **settings: Any) -> None:
        settings = {"viewport": SIZE} | settings
        self.page = browser.new_context(accept_downloads=True, **settings).new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: m.type in ("error", "warning") and self.complaints.append(m.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        url = file.resolve().as_uri()
        # data: and blob: are made by the page itself, such as the picture of a chart.
        self.page.on(
            "request",
            lambda r: r.url != url and not r.url.startswith(("data:", "blob:")) and self.requests.append(r.url),
        )
        self.page.goto(url)

    def chart(self, name: str) -> Any:
        """Scroll to a chart and wait until it is drawn."""
        place = self.page.locator(f'[data-chart="{name}"] .plotly-graph-div')
        place.scroll_into_view_if_needed()
        place.locator(".main-svg").first.wait_for(timeout=20_000)
        return place

    def charts(self) -> list[str]:
        """Return the names of all charts."""
        return self.page.eval_on_selector_all("[data-chart]", "all => all.map(e => e.dataset.chart)")

    def of_plot(self, name: str, expression: str) -> Any:
        """Evaluate a JavaScript expression of ``plot``, the element of a drawn chart."""
        return self.chart(name).evaluate(f"plot => {expression}")

    def width(self) -> tuple[int, int]:
        root = self.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        return root[0], root[1]
