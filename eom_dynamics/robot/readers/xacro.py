# SPDX-License-Identifier: Apache-2.0
"""Expansion of xacro files to URDF."""

from __future__ import annotations

import ast
import json
import math
import os
import resource
import signal
import subprocess
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.parsers.expat import ErrorString, ExpatError

from ...exceptions import RobotDescriptionError
from ...extras import MissingLibraryError, require
from ...spelling import close_match, hint
from .files import KNOWN, package_folder, refuse_special_file
from .files import Expand as Expand
from .xml import MAX_CHARACTERS

# No name of an expression, nor of a property.
_GUARD = "<attribute>"

# Functions that make classes, or reach their attributes by items.
_LEFT_OUT = ("type", "vars")

_OPEN = (str, int, float, complex, list, tuple, dict, set, frozenset)


@contextmanager
def confined(xacro: Any) -> Iterator[None]:
    """Sandbox in which the package ``xacro`` evaluates Python expressions: arithmetic, strings and collections only.

    The package evaluates ``${…}`` without builtins and refuses names that begin with two underscores; from the
    functions that it offers one still reaches its modules, such as within a comprehension, and ``$(eval …)`` has all
    builtins. Here an attribute is taken only of numbers, texts, collections and namespaces, at the time it is taken:
    not of functions, classes, generators or modules, which lead to the rest of the process.
    """
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


# Processor time of an expansion, s, beside that of Python's start, and the time after which one that waits is given up,
# such as for the other end of a pipe. Large robots take a second or two.
_PROCESSOR_TIME, _TIME = 10, 20

# Memory of an expansion, bytes.
_MEMORY = 2**30

_CHILD = f"from {__name__} import main; main()"


def expand_xacro(path: Path, arguments: Mapping[str, str]) -> str:
    """Expand a xacro file to URDF with the package ``xacro``, and these values of its arguments, ``<xacro:arg>``.

    A xacro file is a program: it reads any file that you can read, and evaluates expressions, which are confined
    (:func:`confined`). It is run by xacro's own function ``xacro.process_file``, in a process of its own with
    bounds of time and memory. Expand only files that you trust, and none that something from the network names.

    RobotDescriptionError if the package ``xacro`` is missing, the file cannot be read or expanded, an argument has no
    value or is not one of the file's, or the expansion takes too long or too much memory.
    """
    try:
        require("xacro")
    except MissingLibraryError as error:
        raise RobotDescriptionError(f"{path}: {error}") from None
    request = {
        "path": str(path),
        "arguments": dict(arguments),
        "packages": dict(KNOWN.get()),
        "seconds": _PROCESSOR_TIME,
    }
    # With the modules that this process would import; isolated, so that none of the working directory comes first.
    command = [sys.executable, "-I", "-c", f"import sys; sys.path[:] = {sys.path!r}; {_CHILD}"]
    too_long = "its expansion takes too long: expand it with the command xacro, and load the URDF, or simplify it"
    try:
        # In a session of its own: Ctrl-C is handled here.
        done = subprocess.run(
            command, input=json.dumps(request).encode(), capture_output=True, timeout=_TIME, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        raise RobotDescriptionError(f"{path}: {too_long}") from None
    if done.returncode == -signal.SIGXCPU:
        raise RobotDescriptionError(f"{path}: {too_long}")
    if done.returncode:
        lines = done.stderr.decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        raise RobotDescriptionError(f"{path}: the process that expands it has failed, {done.returncode}: {last:.200}")
    sys.stderr.write(done.stderr.decode(errors="replace"))  # warnings of xacro
    answer = json.loads(done.stdout)
    if errors := answer.get("errors"):
        raise RobotDescriptionError(*errors)
    return answer["text"]


def main() -> None:
    """Expand the file that a request on stdin names, and write the URDF, or errors, to stdout."""
    request = json.load(sys.stdin)
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what others print is no part of the answer
    KNOWN.set(request["packages"])
    _bound(request["seconds"])
    try:
        answer: dict[str, Any] = {"text": expand_here(Path(request["path"]), request["arguments"])}
    except RobotDescriptionError as error:
        answer = {"errors": list(error.errors)}
    with output:
        json.dump(answer, output)


def _bound(seconds: int) -> None:
    """Bound the processor time and the memory of this process from here on."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    for kind, most in (
        (resource.RLIMIT_CPU, math.ceil(used) + seconds),
        (resource.RLIMIT_AS, pages * resource.getpagesize() + _MEMORY),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def expand_here(path: Path, arguments: Mapping[str, str]) -> str:
    """Expand a xacro file as :func:`expand_xacro`, but in this process, without bounds.

    The package ``xacro`` keeps its state in global variables: expand one file at a time.
    """
    import xacro

    refuse_special_file(path)
    values = _Arguments(arguments)
    try:
        with confined(xacro), _finding_packages():
            document = xacro.process_file(str(path), mappings=values, verbosity=0)
    except Exception as error:  # of xacro, its expressions, the XML parser, the file system
        unused = [name for name in arguments if name not in values.used]
        raise RobotDescriptionError(f"{_place(path, xacro)}: {_reason(error, path, xacro, unused)}") from None
    for name in arguments:
        if name not in values.used:
            raise RobotDescriptionError(
                f"{path}: xacro argument {name!r} does not exist; {hint(name, sorted(values.used))}"
            )
    # As the command xacro writes it, so that lines have the same numbers; a document type is not accepted.
    if document.doctype is not None:
        document.replaceChild(document.createComment(""), document.doctype)
    try:
        text: str = document.toprettyxml(indent="  ")
    except MemoryError as error:
        raise RobotDescriptionError(f"{path}: {_reason(error, path, xacro, ())}") from None
    if len(text) > MAX_CHARACTERS:
        raise RobotDescriptionError(f"{path}: expands to {len(text)} characters, may have {MAX_CHARACTERS}")
    return text


@contextmanager
def _finding_packages() -> Iterator[None]:
    """Have ``$(find …)`` look for packages as ``package://`` does, without ament_index_python."""
    substitution: Any = import_module("xacro.substitution_args")
    original, substitution._eval_find = substitution._eval_find, package_folder
    try:
        yield
    finally:
        substitution._eval_find = original


class _Arguments(dict[str, str]):
    """Values of xacro arguments, with the names that the file has used."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.used: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.used.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.used.add(name)
        return super().__getitem__(name)


def _place(path: Path, xacro: ModuleType) -> str:
    """The file, and the file that it includes where the error occurred."""
    current = xacro.filestack[-1] if xacro.filestack else str(path)
    return str(path) if current == str(path) else f"{path}: in {os.path.relpath(current, path.parent)}"


def _reason(error: Exception, path: Path, xacro: ModuleType, unused: Sequence[str]) -> str:
    """The innermost cause of an error, on one line, and what to do about it."""
    context = ""
    cause: Any = error
    while isinstance(cause, xacro.XacroException) and cause.exc is not None:
        context = " ".join(f"{context} {cause.suffix or ''}".split())
        cause = cause.exc
    kind = type(cause).__name__
    if kind == "ArgException":
        if misspelled := close_match(cause, unused):
            return f"argument {str(cause)!r} has no value; is {misspelled} a misspelling of it?"
        return f"argument {str(cause)!r} has no value; set it in xacro_arguments (command line: --xacro {cause}:=…)"
    if isinstance(cause, ModuleNotFoundError):
        return f"needs the Python module {cause.name}, which is not installed"
    if isinstance(cause, MemoryError):
        return f"its expansion takes more than {_MEMORY // 2**20} MiB of memory: simplify it"
    if isinstance(cause, RecursionError):
        return "a macro, or a file that is included, contains itself without end"
    if isinstance(cause, OSError) and cause.filename:
        other = "" if os.path.abspath(cause.filename) == os.path.abspath(path) else f"{cause.filename}: "
        return f"{other}cannot be read: {cause.strerror}"
    if isinstance(cause, ExpatError):
        return f"line {cause.lineno}, column {cause.offset + 1}: not valid XML: {ErrorString(cause.code)}"
    return " ".join(f"{str(cause) or kind} {context}".split())
