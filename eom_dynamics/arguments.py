# SPDX-License-Identifier: Apache-2.0
"""Argument validation: numbers by rules, states and wrenches as arrays, choices, and options.

These functions word the reasons of errors; callers add the location of a number. Options are fields of dataclasses with
choices and number rules. The command line has arguments for the same fields, with the attribute's text in the class
docstring as help.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import Field, field, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import STATE_NAMES, WRENCH_NAMES, AnyArray, Array, name_of
from .exceptions import EomDynamicsError, RobotDescriptionWarning, StateError
from .spelling import shown

_RULES: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "finite": (lambda x: True, ""),
    "positive": (lambda x: x > 0, "must be positive"),
    "not negative": (lambda x: x >= 0, "must not be negative"),
    "not zero": (lambda x: x != 0, "must not be 0"),
}


def violation(value: Any, rule: str = "finite", *, smallest: float = 0.0, largest: float = np.inf) -> str:
    """Reason why a number or array breaks a rule, such as "must be positive, is -3"; empty if valid.

    Rules are finite, positive, not negative, not zero, and intervals, such as ``[0, 1)``. Computations neither overflow
    nor vanish with sizes from ``smallest`` to ``largest``. Bools and texts are not numbers.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        return f"must be {'numbers' if array.ndim else 'a number'}, is {shown(value)}"
    holds, words = _RULES.get(rule) or _interval(rule)
    if not all_finite(array):
        return f"must be finite, is {_written(array)}"
    if np.any(np.abs(array) > largest):
        return f"must not exceed {largest:g} in SI units, is {shown(value)}"
    if not np.all(holds(array)):
        return f"{words}, is {_written(array)}"
    if np.any(np.abs(array) < smallest):
        return f"must be at least {smallest:g}, is {_written(array)}"
    return ""


def _interval(rule: str) -> tuple[Callable[[Any], Any], str]:
    """Test and description of an interval: a square bracket includes its end."""
    least, most = map(float, rule[1:-1].split(","))
    above = np.greater_equal if rule[0] == "[" else np.greater
    below = np.less_equal if rule[-1] == "]" else np.less
    return (lambda x: above(x, least) & below(x, most)), f"must be within {rule}"


def _written(array: np.ndarray) -> str:
    return str(array) if array.ndim else f"{float(array):g}"


LARGEST, SMALLEST = 1e12, 1e-12
"""Bounds of plausible values in SI units; products of values beyond them overflow."""


def warn_of_degrees(where: str, angles: Iterable[float]) -> None:
    """Warn of the first angle, rad, above a turn that is a common number of degrees: a multiple of 2.5."""
    for angle in angles:
        if 2 * math.pi < abs(angle) <= 360 and angle % 2.5 == 0:
            reason = f"angle {angle:g} rad is more than a turn; if it is in degrees, it is {math.radians(angle):.4g}"
            warnings.warn(f"{where}: {reason}", RobotDescriptionWarning, stacklevel=3)
            return


WRENCH_SEQUENCE = "the wrench and its time derivatives, (W, Wd, …), or ()"
"""Description of the argument ``wrench``, for errors."""


def number_of_states(q: ArrayLike) -> int | None:
    """Number of states N of a batch (N, n); None for one state. An empty batch raises StateError."""
    array = _array(q, STATE_NAMES[0])
    if array.ndim == 2 and not len(array):
        raise StateError(f"{STATE_NAMES[0]} has no states: its shape is {array.shape}")
    return len(array) if array.ndim == 2 else None


def joint_vectors(
    n: int, *vectors: ArrayLike, first: int = 0, samples: tuple[int, ...] = (), names: Sequence[str] = STATE_NAMES
) -> list[AnyArray]:
    """State or batch as arrays (*samples, n) of finite numbers; symbols are returned unchanged.

    The vectors are q and its time derivatives from the order ``first`` on, called ``names`` in errors. Raises
    StateError for a wrong shape or a number that is not finite.
    """
    return [_checked(vector, name_of(names, k), (*samples, n)) for k, vector in enumerate(vectors, start=first)]


def joint_states(n: int, *vectors: ArrayLike, finite: bool = True, names: Sequence[str] = STATE_NAMES) -> list[Array]:
    """State or batch as arrays of numbers, all (n,) or all (N, n), checked by :func:`state_arrays`."""
    known = [name_of(names, k) for k in range(len(vectors))]
    return state_arrays(vectors, known, [(n,)] * len(vectors), finite=finite)[0]


def state_arrays(
    values: Sequence[ArrayLike], names: Sequence[str], shapes: Sequence[tuple[int, ...]], *, finite: bool = True
) -> tuple[list[Array], tuple[int, ...]]:
    """State or batch as arrays of different shapes, such as a pose and joint variables.

    Each array has a name and the shape of one state. ``finite`` is False if a kernel checks that numbers are finite.
    Returns the arrays, each (*samples, *shape), and the samples () or (N,) of the first array. Raises StateError for a
    wrong shape or a number that is not finite.
    """
    first, shape = np.shape(_array(values[0], names[0], symbols=False)), shapes[0]
    samples = first[: len(first) - len(shape)]
    if len(samples) > 1 or first[len(samples) :] != shape:
        batch = ", ".join(["N", *map(str, shape)])
        raise StateError(f"{names[0]} must have shape {shape} or ({batch}), has {first}")
    arrays = [
        _checked(value, name, samples + shape, symbols=False, finite=finite)
        for value, name, shape in zip(values, names, shapes, strict=True)
    ]
    return arrays, samples


def with_unit_rates(q: ArrayLike, n: int, size: int) -> tuple[Array, Array, tuple[int, ...]]:
    """Joint variables (n,) or (N, n) repeated for ``size`` unit rates, the rates, and (size,) or (N, size).

    A quantity linear in the rates thus gives its tensor in one batch, see :func:`by_unit_rates`.
    """
    (checked,), samples = state_arrays((q,), (STATE_NAMES[0],), [(n,)])
    count = samples[0] if samples else 1
    return np.repeat(checked.reshape(count, n), size, axis=0), np.tile(np.eye(size), (count, 1)), (*samples, size)


def by_unit_rates(values: Array, samples: tuple[int, ...]) -> Array:
    """Tensor (…, rows, columns, size) of matrices (N size, rows, columns) for the rates of :func:`with_unit_rates`."""
    return np.ascontiguousarray(np.moveaxis(values.reshape(*samples, *values.shape[-2:]), -3, -1))


def zeros_if_omitted(q: ArrayLike, *vectors: ArrayLike | None) -> list[ArrayLike]:
    """Vectors, with zeros of the shape of q for None."""
    if all(vector is not None for vector in vectors):
        return list(vectors)  # type: ignore[arg-type]
    zero = np.zeros(shape_of(q, STATE_NAMES[0]))
    return [zero if vector is None else vector for vector in vectors]


def shape_of(value: ArrayLike, name: str) -> tuple[int, ...]:
    """Shape of an array-like argument; raises StateError, with its name, for anything else."""
    return _array(value, name).shape


def is_sequence(value: object) -> bool:
    """True for a value with ordered items, unlike a set, a mapping, a text or a number."""
    ordered = hasattr(value, "__len__") and hasattr(value, "__getitem__") and getattr(value, "ndim", 1) > 0
    return ordered and not isinstance(value, str | bytes | Mapping)


def sequence(
    value: Any,
    name: str,
    of: str,
    *,
    least: int = 0,
    most: int | None = None,
    error: type[EomDynamicsError] = StateError,
) -> list[Any]:
    """Entries of a list, tuple or array, from ``least`` to ``most``; else an error with its name."""
    # The usual types first, which takes a fifth of the time.
    if type(value) not in (tuple, list) and not is_sequence(value):
        raise error(f"{name} must be a sequence of {of}, is {shown(value)}")
    entries = list(value)
    few, many = len(entries) < least, most is not None and len(entries) > most
    if few or many:
        limit = "" if least == most else f", at least {least}" if few else f", at most {most}"
        raise error(f"{name} must be a sequence of {of}{limit}, has {len(entries)}")
    return entries


def mapping(value: Any, name: str, of: str, error: type[EomDynamicsError] = StateError) -> Mapping[Any, Any]:
    """Mapping argument; else an error with its name."""
    if not isinstance(value, Mapping):
        raise error(f"{name} must be a mapping from {of}, is {shown(value)}")
    return value


def wrench_sequence(wrench: Any) -> list[Any]:
    """Wrench and its time derivatives as a list; StateError if it is not a sequence."""
    return sequence(wrench, "wrench", WRENCH_SEQUENCE)


def wrenches(
    wrench: Sequence[ArrayLike],
    count: int | None,
    shape: tuple[int, ...] = (6,),
    samples: tuple[int, ...] = (),
    *,
    symbols: bool = False,
) -> list[AnyArray]:
    """Wrench and its time derivatives as arrays (*samples, *shape); omitted derivatives are zero.

    Each has the shape (6,) or (number of tools, 6), or with the leading axis of a batch. There are ``count`` results,
    or the length of ``wrench`` for None. With ``symbols``, symbols are returned unchanged rather than refused. Raises
    StateError for a wrong shape or a number that is not finite.
    """
    arrays = []
    for k, W in enumerate(wrench_sequence(wrench)):
        name = f"wrench {name_of(WRENCH_NAMES, k)}"
        leading = samples if _array(W, name).ndim > len(shape) else ()
        arrays.append(np.broadcast_to(_checked(W, name, leading + shape, symbols=symbols), samples + shape))
    if count is None:
        return arrays
    return (arrays + [np.broadcast_to(np.zeros(shape), samples + shape)] * count)[:count]


def real_array(
    value: ArrayLike,
    name: str,
    shape: tuple[int, ...] | None = None,
    *,
    finite: bool = True,
    rule: str = "finite",
    error: type[EomDynamicsError] = StateError,
) -> Array:
    """Array of numbers, optionally of a shape, valid by a rule of :func:`violation`; else raises ``error``.

    With ``finite`` False, any numbers are valid.
    """
    try:
        array = _checked(value, name, shape_of(value, name) if shape is None else shape, symbols=False, finite=finite)
    except StateError as reason:
        raise error(*reason.args) from None
    if rule != "finite" and (broken := violation(array, rule)):
        raise error(f"{name} {broken}")
    return array


def number_or_vector(
    value: ArrayLike,
    name: str,
    size: int,
    rule: str = "finite",
    *,
    finite: bool = True,
    error: type[EomDynamicsError] = StateError,
) -> Array:
    """Array (size,) from a number for all entries or a vector (size,), by the rules of :func:`real_array`."""
    array = real_array(value, name, finite=finite, rule=rule, error=error)
    if array.shape not in ((), (size,)):
        raise error(f"{name} must be a number or have shape ({size},), has {array.shape}")
    return np.broadcast_to(array, (size,))


def constant(value: ArrayLike, name: str) -> AnyArray:
    """Read-only copy of an array; raises StateError, with its name, for anything else."""
    array = _array(value, name).copy()
    array.setflags(write=False)
    return array


def refuse_overflow(
    values: Sequence[Array] | Array, quantities: Sequence[str], kind: str, names: Sequence[str]
) -> None:
    """Raise StateError if a result is not finite; the message names quantity and joint or motor (``kind``).

    ``values`` has a row (…, len(names)) for each quantity.
    """
    for quantity, row in zip(quantities, values, strict=True):
        if at := first_not_finite(row):
            raise StateError(f"numbers too large: {quantity} of {kind} {shown(names[at[-1]])} would be {row[at]}")


def all_finite(*arrays: Any) -> bool:
    """True if all numbers of all arrays are finite."""
    return all(bool(np.isfinite(array).all()) for array in arrays)


def first_not_finite(array: AnyArray) -> tuple[int, ...]:
    """Index of the first number of an array that is not finite; () if there is none."""
    finite = np.isfinite(array)
    return () if finite.all() else tuple(np.argwhere(~finite)[0].tolist())


def _checked(
    value: ArrayLike, name: str, shape: tuple[int, ...], *, symbols: bool = True, finite: bool = True
) -> AnyArray:
    array = _array(value, name, symbols=symbols)
    if array.shape != shape:
        raise StateError(f"{name} must have shape {shape}, has {array.shape}")
    if symbols and array.dtype == object:
        return array
    if array.dtype.kind not in "biuf":
        raise StateError(f"{name} must be real numbers, is of type {array.dtype}")
    array = np.asarray(array, dtype=float, order="C")  # ascontiguousarray would make a number a vector
    if finite and not all_finite(array):
        if not array.ndim:
            raise StateError(f"{name} must be finite, is {array}")
        index = first_not_finite(array)
        raise StateError(f"{name} must be finite; entry {list(index)} is {array[index]}")
    return array


def _array(value: ArrayLike, name: str, *, symbols: bool = True) -> AnyArray:
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value  # fast path: the code below takes longer than many a kernel
    rows = value if isinstance(value, list | tuple) else (value,)
    # Conversion of masked arrays would reveal masked entries. Detected by attribute, since numpy.ma takes long to
    # import.
    masked = any(hasattr(kind, "mask") for kind in set(map(type, rows)))
    if masked and any(isinstance(row, np.ndarray) and np.any(getattr(row, "mask", False)) for row in rows):
        raise StateError(f"{name} has masked entries; fill them, or leave out their states")
    try:
        array = np.asarray(value)
    except Exception:  # rows of different lengths, or CasADi symbols, which raise errors of several types
        if is_symbolic(value):
            raise StateError(f"{name} is symbolic: {SYMBOLIC}") from None
        raise StateError(f"{name} is not an array of numbers") from None
    if not symbols and is_symbolic(array):
        raise StateError(f"{name} is symbolic: {SYMBOLIC}")
    return array


SYMBOLIC = (
    "this takes numbers; use eom_dynamics.lagrange, of kinematics its SymbolicKinematics, or equations_of_motion for "
    "SymPy, and eom_dynamics codegen --language casadi for CasADi"
)
"""Remedy for symbols passed as numbers, for errors."""


def is_symbolic(value: object) -> bool:
    """True for a symbol of SymPy or CasADi, or an array that contains a symbol."""
    entries = value.flat if isinstance(value, np.ndarray) and value.dtype == object else (value,)
    rows = (y for x in entries for y in (x if isinstance(x, list | tuple) else (x,)))
    return any(type(x).__module__.partition(".")[0] in ("sympy", "casadi") for x in rows)


# Largest entry of R'R - I of a rotation matrix; accepts files with seven digits.
_ORTHOGONAL = 1e-6


def checked_pose(value: ArrayLike, name: str, error: type[EomDynamicsError] = StateError) -> Array:
    """Pose as an array (4, 4), or poses (…, 4, 4); raises ``error`` for anything else."""
    C = real_array(value, name, error=error)
    if C.ndim < 2 or C.shape[-2:] != (4, 4):
        raise error(f"{name} must have shape (4, 4), has {C.shape}")
    R = C[..., :3, :3]
    away = np.max(np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)), axis=(-2, -1))
    wrong = (away > _ORTHOGONAL) | (np.linalg.det(R) < 0) | np.any(C[..., 3, :] != [0, 0, 0, 1], axis=-1)
    if np.any(wrong):
        raise error(
            f"{name}{np.argwhere(wrong)[0].tolist() or ''} is not a homogeneous transform: it must be a rotation "
            "matrix, a translation, and a last row 0 0 0 1; see lie.pose"
        )
    return C


def choice(value: Any, name: str, known: Iterable[str], error: type[EomDynamicsError] = StateError) -> None:
    """Raise ``error`` unless the value is a known name."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        raise error(f"{name} must be one of {', '.join(names)}, is {shown(value)}")


def count(
    value: Any, name: str, least: int = 0, most: int | None = None, error: type[EomDynamicsError] = StateError
) -> int:
    """Integer from ``least``, up to ``most`` unless None; raises ``error`` for anything else."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or value < least
        or (most is not None and value > most)
    ):
        end = "" if most is None else f" to {most:,}"
        raise error(f"{name} must be an integer from {least}{end}, is {shown(value)}")
    return int(value)


def flag(value: Any, name: str) -> bool:
    """Bool; raises StateError for anything else, such as a number or a text."""
    if not isinstance(value, bool | np.bool_):
        raise StateError(f"{name} must be True or False, is {shown(value)}")
    return bool(value)


def number_by_rule(
    value: Any, name: str, error: type[EomDynamicsError] = StateError, *, rule: str, unlimited: float | None = None
) -> float:
    """Number by a rule of :func:`violation`; raises ``error`` for anything else, such as a bool or a text.

    The number ``unlimited``, for example infinity, is also allowed.
    """
    if is_sequence(value):
        raise error(f"{name} must be a number, is {shown(value)}")
    if (reason := violation(value, rule)) and not (np.asarray(value).dtype.kind == "f" and value == unlimited):
        raise error(f"{name} {reason}")
    return float(value)


positive, not_negative = (partial(number_by_rule, rule=rule) for rule in ("positive", "not negative"))


Choices = Collection[str] | Callable[[], Collection[str]]


def option(default: Any = None, *, choices: Choices = (), rule: str = "", **words: Any) -> Any:
    """Declare a field of a dataclass of options.

    Args:
        default: default value; a dict is copied.
        choices: allowed values of the option, or of each of its entries; or a function that returns them. The values of
            a mapping are the results of the choice.
        rule: number rule of the option, or of each of its entries, see :func:`violation`.
        words: settings for the command line, see :mod:`eom_dynamics.tools.options`.
    """
    start: dict[str, Any] = {"default_factory": dict} if default == {} else {"default": default}
    return field(**start, metadata={"choices": choices, "rule": rule, **words})


def choices_of(entry: Field[Any]) -> Collection[str]:
    """Choices of a field; empty without choices."""
    choices: Any = entry.metadata.get("choices", ())
    return choices() if callable(choices) else choices


def check_options(options: Any, error: type[EomDynamicsError], **known: Collection[str]) -> None:
    """Check the fields of :func:`option` in a ``__post_init__``; a default is always allowed.

    ``known`` overrides choices of the command line by field; the error names the field.
    """
    for entry in fields(options):
        value, choices, rule = getattr(options, entry.name), choices_of(entry), entry.metadata.get("rule")
        if not (choices or rule) or value == entry.default:
            continue
        names = known.get(entry.name, choices.values() if isinstance(choices, Mapping) else choices)
        parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple | list) else [value]
        for part in parts:
            if names and part not in names:
                raise error(f"{entry.name} must be one of {', '.join(map(str, names))}, is {shown(part)}")
            if rule and (reason := violation(part, rule)):
                raise error(f"{entry.name} {reason}")
            if entry.type == "int" and part != int(part):
                raise error(f"{entry.name} must be an integer, is {shown(part)}")
