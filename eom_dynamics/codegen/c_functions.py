# SPDX-License-Identifier: Apache-2.0
"""Functions and tables that emitted C calls, over numbers or over vector lanes of doubles."""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib import resources
from typing import NamedTuple

from ..filling import filled as filled
from .expressions import ELEMENTARY, Op
from .program import MonotoneFunction, Program
from .straight_line import FUNCTIONS, Syntax, straight_line

_SOURCES = resources.files(__package__) / "csrc"


def csrc(name: str) -> str:
    """Text of a file in the folder csrc, with the files of it that this includes."""
    text = (_SOURCES / name).read_text(encoding="ascii")
    return re.sub(r'^#include "(.+)"$', lambda included: csrc(included[1]), text, flags=re.MULTILINE)


class Real(NamedTuple):
    """C type of numbers or vector lanes. Names of its functions end in its key in :data:`REALS`.

    Attributes:
        name: name of the type.
        syntax: syntax of definitions that use :func:`functions_source` over the type.
        bits: unsigned integer type of the same size; empty if elementary functions come from the C library.
        static: specifiers of inlined functions and tables.
        apart: specifiers of functions that are not inlined.
    """

    name: str
    syntax: Syntax
    bits: str = ""
    static: str = "static"
    apart: str = "EOM_APART"

    @property
    def fields(self) -> dict[str, str]:
        """Values of the keys of templates."""
        bits = self.bits or "int"
        # Comparing lanes gives all bits, comparing numbers one.
        mask = f"({bits})" if self.name == "lanes" else f"-({bits})"
        return {"real": self.name, "bits": bits, "mask": mask, "static": self.static, "apart": self.apart}

    def broadcast(self, text: str) -> str:
        """Expression of this type from an expression that may be a number."""
        return f"((lanes){{0}} + {text})" if self.name == "lanes" else text


def _syntax(suffix: str, real: str, number: str = "{value}") -> Syntax:
    return Syntax(f"    const {real} {{name}} = {{value}};", function=f"eom_{{name}}_{suffix}", number=number)


REALS = {
    "one": Real("double", _syntax("one", "double"), "uint64_t"),
    # Adding a zero vector broadcasts a number with both GCC and Clang.
    "lanes": Real("lanes", _syntax("lanes", "lanes", "(lanes){{0}} + {value}"), "lane_words"),
    "device": Real("double", _syntax("device", "double"), static="static __device__", apart="static __device__"),
}
"""Number types, by the suffix of function names."""


def sincos_source(suffix: str, real: str, bits: str, kind: str = "static inline") -> str:
    """Sine and cosine over ``real``, a C type of doubles, and ``bits``, of as many 64-bit integers."""
    return filled(csrc("sincos.h.in"), suffix=suffix, real=real, bits=bits, kind=kind)


def scalar_sincos(kind: str = "static") -> str:
    """``static void eom_sincos_any(double x, double *sine, double *cosine)``, for any angle."""
    return "\n".join([sincos_source("one", "double", "uint64_t"), filled(csrc("sincos_any.h.in"), kind=kind)])


def elementary_source(names: Collection[str], suffix: str) -> str:
    """The named functions ``eom_<name>_<suffix>`` of ``csrc/elementary.h.in``, after their callees.

    The same text over scalars and lanes, without branches, gives the same bits in both. ``sqrt`` requires math.h.

    Args:
        names: names among exp, expm1, log, log1p, sqrt, tanh, select, where, size, any.
        suffix: ``one`` for doubles, or ``lanes``.
    """
    apart = [name for name in sorted(names) if any(name == op.value for op in ELEMENTARY)]
    wanted, parts = {*names, *(f"{name}_inlined" for name in apart)}, list[str]()
    # Functions call only those before them.
    for part in reversed(csrc("elementary.h.in").split("\n\n/*")):
        name, *called = re.findall(r"eom_(\w+)_@suffix@", part)
        if name in wanted:
            wanted.update(called)
            parts.insert(0, part if part.startswith("/*") else f"/*{part}")
    parts += [
        f"EOM_APART @real@ eom_{name}_@suffix@(@real@ x) {{ return eom_{name}_inlined_@suffix@(x); }}" for name in apart
    ]
    return filled("\n\n".join([csrc("apart.h").rstrip(), *parts]), suffix=suffix, **REALS[suffix].fields)


def functions_source(program: Program, suffix: str, *, packed: bool = False) -> str:
    """Functions ``eom_<name>_<suffix>`` and tables that a program uses, except sines and cosines.

    Args:
        suffix: ``one`` for doubles, ``lanes`` for vector lanes, ``device`` for doubles in CUDA by library functions.
        packed: only the functions over doubles that a packed :func:`core_source` calls.
    """
    kind = REALS[suffix]
    roots = [] if packed else program.constants(Op.ROOT)
    names = {op.value for op in (Op.SQRT, Op.SELECT) if program.uses(op)} if packed else used_functions(program)
    parts = [elementary_source(names, suffix) if kind.bits else _of_library(names, suffix)]
    tables = program.constants(Op.INDEX, Op.LOOKUP)
    if tables:
        template = csrc("tables_lanes.h" if suffix == "lanes" else "tables.h.in")
        parts.append(filled(template, suffix=suffix, **kind.fields))
    used = {(node.op, node.constant) for node in program.nodes if node.op in (Op.INDEX, Op.LOOKUP)}
    for k, table in enumerate(tables):
        if suffix == "lanes" and (Op.INDEX, table) not in used:
            continue  # lookups over lanes have rows of tables
        # Guarded, since a file may have functions over both types.
        entry = "double" if suffix == "lanes" else kind.name
        values = ", ".join(map(kind.syntax.constant, table))
        parts += [f"#ifndef EOM_TABLE_{k}", f"#define EOM_TABLE_{k} {len(table)}"]
        parts += [f"{kind.static} const {entry} eom_table_{k}[{len(table)}] = {{{values}}};", "#endif"]
        for op, arguments in ((Op.INDEX, f"eom_table_{k}, {len(table)}"), (Op.LOOKUP, f"eom_table_{k}")):
            if (op, table) in used and not (suffix == "lanes" and op is Op.LOOKUP):
                parts.append(
                    f"{kind.static} inline {kind.name} eom_{op.value}_{k}_{suffix}({kind.name} x) "
                    f"{{ return eom_{op.value}_{suffix}(x, {arguments}); }}"
                )
    parts += [_root_source(root, k, suffix) for k, root in enumerate(roots)]
    if suffix == "lanes":
        # One function of rows of numbers for states and batches, so that it gives equal bits.
        parts += [
            f"EOM_APART void eom_{op.value}_rows(const double *const *a, double *r, int count)\n"
            "{\n    for (int i = 0; i < count; i += EOM_LANES)\n"
            f"        eom_put_row(r + i, eom_{op.value}_inlined_lanes(eom_row(a[0] + i)));\n}}"
            for op in sorted(ELEMENTARY, key=lambda op: op.value)
            if program.uses(op)
        ]
    return "\n".join(parts)


def used_functions(program: Program) -> set[str]:
    """Names of the functions of :func:`elementary_source` that a program and its roots use."""
    roots = program.constants(Op.ROOT)
    used = {node.op for traced in (program, *(root.program for root in roots)) for node in traced.nodes}
    return {op.value for op in used & FUNCTIONS} | ({"where", "size", "any"} if roots else set())


def _of_library(names: Collection[str], suffix: str) -> str:
    """The named functions as calls of the C library."""
    kind, text = REALS[suffix], []
    real = kind.name
    functions = {
        "select": (real, f"{real} condition, {real} a, {real} b", "condition > 0 ? a : b"),
        "where": (real, f"int mask, {real} a, {real} b", "mask ? a : b"),
        "size": (real, f"{real} x", "fabs(x)"),
        "any": ("int", "int mask", "mask"),
    }
    for name in sorted(names):
        call = (real, f"{real} x", f"{name}(x)")
        result, arguments, value = functions.get(name, call)
        text.append(f"{kind.static} inline {result} eom_{name}_{suffix}({arguments}) {{ return {value}; }}")
    return "\n".join(text)


def _root_source(root: MonotoneFunction, k: int, suffix: str) -> str:
    """Function of a root, and the root; over lanes, the roots of rows of numbers."""
    program, kind = root.program, REALS[suffix]
    parameters = [f"p{i}" for i in range(program.inputs["p"])]
    lines, results = straight_line(program, ["x", *parameters], kind.syntax)
    names = ("value", "slope", "curvature")
    body = [*lines, *(f"    *{name} = {kind.broadcast(r)};" for name, r in zip(names, results, strict=True))]
    templates = csrc("root_step.h.in") + csrc("root_rows.h.in" if suffix == "lanes" else "root.h.in")
    return filled(
        templates,
        **kind.fields,
        suffix=suffix,
        k=str(k),
        parameters="".join(f", {kind.name} {name}" for name in parameters),
        arguments="".join(f", {name}" for name in parameters),
        rows="".join(f", eom_row(a[{4 + i}] + at)" for i in range(len(parameters))),
        body="\n".join(body),
        zero=kind.broadcast(kind.syntax.constant(0.0)),
        half=kind.syntax.constant(0.5),
    )
