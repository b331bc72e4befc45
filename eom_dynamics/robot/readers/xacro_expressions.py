# SPDX-License-Identifier: Apache-2.0
"""Sandbox for the Python expressions of xacro files: arithmetic, strings and collections only.

The package ``xacro`` evaluates ``${…}`` without builtins and refuses names that begin with two underscores; from the
functions that it offers one still reaches its modules, such as within a comprehension, and ``$(eval …)`` has all
builtins. Here an attribute is taken only of numbers, texts, collections and namespaces, at the time it is taken: not of
functions, classes, generators or modules, which lead to the rest of the process.
"""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

# No name of an expression, nor of a property.
_GUARD = "<attribute>"

# Functions that make classes, or reach their attributes by items.
_LEFT_OUT = ("type", "vars")

_OPEN = (str, int, float, complex, list, tuple, dict, set, frozenset)


@contextmanager
def confined(xacro: Any) -> Iterator[None]:
    """Context in which the package ``xacro`` evaluates expressions in this sandbox only."""
    substitution: Any = import_module("xacro.substitution_args")
    python = xacro._global_symbols["python"]
    left_out = {name: python.pop(name) for name in _LEFT_OUT if name in python}
    builtins = {name: python[name] for name in python}

    def refuse(reason: str) -> None:
        raise xacro.XacroException(reason)

    def safe_eval(expression: str, globals: dict[str, Any], locals: Mapping[str, Any] | None = None) -> Any:
        globals.update({"__builtins__": {}})
        return _evaluated(expression, globals, locals, refuse)

    def eval_of_substitution(expression: str, globals: dict[str, Any], locals: Mapping[str, Any]) -> Any:
        return _evaluated(expression, {**globals, "__builtins__": builtins}, locals, refuse)

    original, xacro.safe_eval, substitution.eval = xacro.safe_eval, safe_eval, eval_of_substitution
    try:
        yield
    finally:
        xacro.safe_eval = original
        del substitution.eval
        python.update(left_out)


def _evaluated(
    expression: str, globals: dict[str, Any], locals: Mapping[str, Any] | None, refuse: Callable[[str], None]
) -> Any:
    def attribute(value: Any, name: str) -> Any:
        if name.startswith("_") or not isinstance(value, _OPEN):
            refuse(f"attribute {name!r} of a {type(value).__name__} is not allowed")
        return getattr(value, name)

    tree = ast.fix_missing_locations(_Guarded().visit(ast.parse(expression.strip(), "<expression>", "eval")))
    dict.__setitem__(globals, _GUARD, attribute)  # not that of xacro, which warns of a second definition
    if locals is not None:
        locals = ChainMap({_GUARD: attribute}, locals)  # type: ignore[arg-type]  # which only reads
    return eval(compile(tree, "<expression>", "eval"), globals, locals)


class _Guarded(ast.NodeTransformer):
    """Turns ``value.name`` into a call of the guard."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        name = ast.Constant(node.attr)
        return ast.Call(ast.Name(_GUARD, ast.Load()), [self.visit(node.value), name], [])
