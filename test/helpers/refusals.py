# SPDX-License-Identifier: Apache-2.0
"""Tests of refusals."""

from collections.abc import Callable
from typing import Any

import pytest


def refusals(
    error: type[Exception] | tuple[type[Exception], ...],
    *cases: tuple[Any, ...],
    call: Callable[..., object] = lambda function: function(),
) -> Callable[..., None]:
    """A test that a call with each case's arguments raises an error on one line, with the message at the case's end."""

    @pytest.mark.parametrize(("arguments", "message"), [(case[:-1], case[-1]) for case in cases])
    def test(arguments: tuple[Any, ...], message: str) -> None:
        with pytest.raises(error, match=message) as raised:
            call(*arguments)
        assert "\n" not in str(raised.value)

    return test
