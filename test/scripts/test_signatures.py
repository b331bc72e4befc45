# SPDX-License-Identifier: Apache-2.0
"""Docstrings of compiled methods: shapes of the declared signatures."""

from __future__ import annotations

import re

import pytest

import eom_dynamics as eom


def test_docstrings_have_the_shapes_of_the_results() -> None:
    """Of all methods in the reference, or refer to one that has them."""
    pytest.importorskip("rclpy", reason="pages of the reference need rclpy")
    from reference_pages import signature_page

    owner: type = object
    method, missing, count = "", [], 0
    for line in signature_page().splitlines():
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
