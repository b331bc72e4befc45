# SPDX-License-Identifier: Apache-2.0
"""The library and the command line as a wheel; setup.cfg describes it."""

import configparser
import re
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent


def description():
    """README.md for the page of a package index, where links and pictures must be absolute: those of the release."""
    metadata = configparser.ConfigParser(interpolation=None)
    metadata.read(HERE / "setup.cfg", encoding="utf-8")
    sources = metadata["metadata"].get("url", "")
    pictures = sources.replace("https://github.com/", "https://raw.githubusercontent.com/") + "/main/"
    text = (HERE / "README.md").read_text(encoding="utf-8")
    if not sources:
        return text
    text = re.sub(r"(!\[[^]]*\]\()(?!\w+:|#)", rf"\1{pictures}", text)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!\w+:|#)", rf"\1{sources}/blob/main/", text)


setup(long_description=description(), long_description_content_type="text/markdown")
