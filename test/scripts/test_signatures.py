# SPDX-License-Identifier: Apache-2.0
"""``docs/signatures.md`` and the docstrings: those of the declared signatures."""

from __future__ import annotations

import re

import signatures

import eom_dynamics as eom


def test_the_document_is_that_of_the_declarations() -> None:
    written = signatures.DOCUMENT.read_text(encoding="utf-8")
    assert written == signatures.text(), "run: python scripts/signatures.py"


def test_docstrings_have_the_shapes_of_the_results() -> None:
    """Of all methods in the document, or refer to one that has them."""
    owner: type = object
    method, missing, count = "", [], 0
    for line in signatures.DOCUMENT.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            owner = getattr(eom, line.removeprefix("## "))
        elif line.startswith("### "):
            method = line.removeprefix("### ")
        elif found := re.match(r"\| → \w+ \| (\(.*?\)) \|", line):
            text, count = getattr(owner, method).__doc__ or "", count + 1
            shape = found.group(1)
            if shape not in text and not re.search(r"as (in|for) :meth:", text):
                missing.append(f"{owner.__name__}.{method}: {shape}")
    assert count > 50 and not missing
