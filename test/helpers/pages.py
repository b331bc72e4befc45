# SPDX-License-Identifier: Apache-2.0
"""The Python code of a page of docs."""

from __future__ import annotations

import re
from typing import Any

from paths import DOCS


def page_variables(name: str, heading: str = "") -> dict[str, Any]:
    """What the blocks of a page, or of the section under a heading, define, run one after the other."""
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    if heading:
        page = page.partition(f"# {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert blocks
    variables: dict[str, Any] = {}
    # As in a file of its own, without the future imports of this one.
    exec(compile("\n".join(blocks), name, "exec", dont_inherit=True), variables)
    return variables
