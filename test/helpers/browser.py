# SPDX-License-Identifier: Apache-2.0
"""A real browser without a window, that has no network, and keeps what a page complains of and asks for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# Names under which distributions install it.
_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

# It is not to go on errands of its own, and in a container it has no sandbox to put pages in.
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str:
    """The browser's executable, or a skip with what is missing."""
    pytest.importorskip("playwright", reason="playwright is missing: make build")
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(_NAMES)}")
    return found


@contextmanager
def started() -> Iterator[Any]:
    """A browser of Playwright; a skip where there is none."""
    executable = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, headless=True, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page that is open.

    Attributes:
        page: of Playwright.
        complaints: errors and warnings of its console, and exceptions that nobody caught.
        requests: what it asked for beside itself.
    """

    def __init__(self, browser: Any, file: Path, **settings: Any) -> None:
        self.page = browser.new_context(accept_downloads=True, **settings).new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: m.type in ("error", "warning") and self.complaints.append(m.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        url = file.resolve().as_uri()
        # What a page makes itself, as the picture of a figure, has no address of a network.
        self.page.on(
            "request",
            lambda r: r.url != url and not r.url.startswith(("data:", "blob:")) and self.requests.append(r.url),
        )
        self.page.goto(url)

    def chart(self, name: str) -> Any:
        """The place of a chart, drawn."""
        place = self.page.locator(f'[data-chart="{name}"]')
        place.scroll_into_view_if_needed()
        place.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=20_000)
        return place

    def charts(self) -> list[str]:
        """Names of all charts that are not hidden."""
        return self.page.eval_on_selector_all(
            "[data-chart]", "all => all.filter(e => e.checkVisibility()).map(e => e.dataset.chart)"
        )

    def of_plot(self, name: str, expression: str) -> Any:
        """A JavaScript expression of ``plot``, the element of a drawn chart."""
        return self.chart(name).locator(".plot").evaluate(f"plot => {expression}")

    def range(self, name: str) -> list[float]:
        """What a chart shows of x."""
        return self.of_plot(name, "plot.layout.xaxis.range.map(Number)")

    def shown(self, name: str) -> set[str]:
        """The joints whose curves a chart shows."""
        return set(self.of_plot(name, "plot.data.filter(t => t.visible !== false && t.meta).map(t => t.meta)"))

    def zoom(self, name: str, start: float, end: float) -> None:
        """Drag with the mouse from one share of a chart's width to another."""
        box = self.chart(name).locator(".nsewdrag").first.bounding_box()
        y = box["y"] + box["height"] / 2
        mouse = self.page.mouse
        mouse.move(box["x"] + start * box["width"], y)
        mouse.down()
        mouse.move(box["x"] + end * box["width"], y, steps=5)
        mouse.up()
        self.page.wait_for_timeout(300)

    def download(self, name: str, kind: str) -> bytes:
        """The file that a button of a chart gives."""
        with self.page.expect_download(timeout=20_000) as download:
            self.chart(name).locator(f'[data-do="{kind}"]').click()
        return Path(download.value.path()).read_bytes()

    def width(self) -> tuple[int, int]:
        """Of the page, and of what is seen of it."""
        root = self.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        return root[0], root[1]
