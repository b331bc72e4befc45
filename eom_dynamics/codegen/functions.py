# SPDX-License-Identifier: Apache-2.0
"""Compiled functions: kernels with the names, shapes and checks of their arguments, for one state or a batch.

A :class:`Signature` declares the arguments and results of a function. A :class:`CompiledFunction` runs its kernels in
sequence on named vectors. For one state or a small batch of plain arrays, its call costs no more than a call in C.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import WRENCH_SEQUENCE, all_finite, real_array, sequence, shape_of, state_arrays
from ..arrays import PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES, Array, name_of
from ..exceptions import KernelError, StateError, warn_of_kernel
from ..robot import Robot
from ..robot.payload import Payload, payload_parameters, payload_shape
from .backends import Kernel, kernel_of
from .native import STATES_PER_THREAD, NativeKernel, caller, in_threads
from .program import Program
from .recipe import Recipe


def outputs(shapes: Sequence[tuple[int, ...]], out: Sequence[Array] | None) -> tuple[Array, ...]:
    """Result arrays of these shapes: ``out``, or new ones.

    Raises:
        StateError: ``out`` is not a sequence of separate C-contiguous arrays of these shapes.
    """
    if out is None:
        # Allocated together: the allocator retains one large block for the next call, but returns three to the system.
        # Clearing fresh memory costs as much as the computation.
        ends = np.cumsum([prod(shape) for shape in shapes]).tolist()
        whole = np.empty(ends[-1])
        return tuple(whole[a:b].reshape(x) for a, b, x in zip([0, *ends], ends, shapes, strict=False))
    arrays = sequence(out, "out", f"{len(shapes)} arrays", least=len(shapes), most=len(shapes))
    for k, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
        fits = isinstance(array, np.ndarray) and array.shape == shape and array.dtype == np.float64
        if not fits or not array.flags.carray:
            raise StateError(f"out[{k}] must be a writable C-contiguous float64 array of shape {shape}")
    for (i, first), (k, second) in combinations(enumerate(arrays), 2):
        if np.may_share_memory(first, second):  # exact for contiguous arrays
            raise StateError(f"out[{i}] and out[{k}] share memory; give each result an array of its own")
    return tuple(arrays)


# Largest number of vectors for csrc/caller.h, which stores their indices as bytes.
_MOST_DIMENSIONS, _MOST_PLACES = 3, 255

_PAYLOADS = "Payload, or of the parameters and their time derivatives, (P, Pd, …)"


@dataclass(frozen=True)
class Vector:
    """Array of numbers for one state.

    Attributes:
        name: name in error messages.
        shape: shape for one state.
        about: meaning and unit.
        optional: whether the argument may be omitted or None, which means zero.
        shared: whether the argument may be a single array for all states of a batch.
        unused: whether the kernels ignore the vector; used in keywords.
    """

    name: str
    shape: tuple[int, ...]
    about: str = ""
    optional: bool = False
    shared: bool = False
    unused: bool = False


@dataclass(frozen=True)
class Keyword:
    """Keyword argument: a sequence of arrays, such as a wrench and its time derivatives, or one array.

    An array without the leading axis of the batch applies to all states.

    Attributes:
        name: name of the keyword.
        vectors: the arrays; trailing arrays may be omitted.
        of: description of the sequence, for error messages.
        defaults: default of each array; zeros unless set. None as a default: if the array is omitted, the general
            function is called.
        alone: whether the argument is a single array rather than a sequence; None omits it.
        check: replaces the general check. It takes the argument and (N,) or (), and returns the passed arrays, each of
            the shape for one state or for all.
    """

    name: str
    vectors: tuple[Vector, ...]
    of: str = "arrays"
    defaults: tuple[Array | None, ...] | None = None
    alone: bool = False
    check: Callable[[Any, tuple[int, ...]], Sequence[Array]] | None = None

    def arrays(self, value: Any, samples: tuple[int, ...], *, finite: bool) -> Sequence[Array]:
        """The passed arrays, checked."""
        if self.check is not None:
            return self.check(value, samples)
        if self.alone:
            return [] if value is None else [shared_array(value, self.name, self.vectors[0].shape, samples, finite)]
        rows = sequence(value, self.name, self.of, most=len(self.vectors))
        return [
            shared_array(x, f"{self.name} {vector.name}", vector.shape, samples, finite)
            for x, vector in zip(rows, self.vectors, strict=False)
        ]


@dataclass(frozen=True)
class Signature:
    """Arguments and results of a function.

    Attributes:
        arguments: positional arguments, optional ones last. The first has the leading axis of a batch.
        results: results in order.
        keywords: keyword arguments.
        result_type: tuple, or a named tuple; None to return the only result rather than a tuple.
    """

    arguments: tuple[Vector, ...]
    results: tuple[Vector, ...]
    keywords: tuple[Keyword, ...] = ()
    result_type: type[tuple[Any, ...]] | None = tuple

    @property
    def inputs(self) -> list[Vector]:
        """All input vectors: arguments, then keyword vectors."""
        return [*self.arguments, *(vector for keyword in self.keywords for vector in keyword.vectors)]

    def table(self) -> Iterator[tuple[str, str, str]]:
        """Rows of a table for help and documentation: name, shape, and meaning with unit of each array."""
        for vector in self.arguments:
            yield vector.name + (" (optional)" if vector.optional else ""), str(vector.shape), vector.about
        for keyword in self.keywords:
            for vector in keyword.vectors:
                name = keyword.name if keyword.alone else f"{keyword.name}: {vector.name}"
                yield name, str(vector.shape), vector.about
        for vector in self.results:
            yield f"→ {vector.name}", str(vector.shape), vector.about

    def checked(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any], *, finite: bool
    ) -> tuple[list[Array], tuple[int, ...]]:
        """Inputs as arrays of one state or of a batch, and the leading axes of results: () or (N,).

        Raises:
            StateError: an array has the wrong shape, or is not finite although ``finite`` is set.
            TypeError: an argument is missing, or there are too many.
        """
        required = sum(not vector.optional for vector in self.arguments)
        if not required <= len(arguments) <= len(self.arguments):
            raise TypeError(f"{required} to {len(self.arguments)} arguments are required, {len(arguments)} are given")
        if unknown := keywords.keys() - {keyword.name for keyword in self.keywords}:
            known = ", ".join(keyword.name for keyword in self.keywords)
            raise TypeError(f"there is no keyword argument {min(unknown)}; there is {known or 'none'}")
        first = self.arguments[0]
        (array,), samples = state_arrays(arguments[:1], [first.name], [first.shape], finite=finite)
        finite = finite or samples == (0,)  # an empty batch calls no kernel
        inputs = [array]
        for k, vector in enumerate(self.arguments[1:], start=1):
            value: Any = arguments[k] if k < len(arguments) else None
            if value is None and vector.optional:
                inputs.append(np.zeros(vector.shape))
            elif vector.shared:
                inputs.append(shared_array(value, vector.name, vector.shape, samples, finite))
            else:
                inputs.append(real_array(value, vector.name, samples + vector.shape, finite=finite))
        for keyword in self.keywords:
            arrays = keyword.arrays(keywords[keyword.name], samples, finite=finite) if keyword.name in keywords else ()
            defaults = keyword.defaults or [np.zeros(vector.shape) for vector in keyword.vectors]
            inputs += [*arrays, *(x for x in defaults[len(arrays) :] if x is not None)]
        if len(inputs) != len(self.inputs):
            raise TypeError("a keyword argument without a default is missing")
        return inputs, samples


class Stage(NamedTuple):
    """A kernel and the names of the vectors that it reads and writes."""

    kernel: Kernel
    inputs: Sequence[str]
    outputs: Sequence[str]


def stage_of(program: Program, backend: str) -> Stage:
    """Stage of a traced program, for a backend in :data:`.KERNELS`."""
    return Stage(kernel_of(program, backend), tuple(program.inputs), tuple(program.outputs))


class CompiledFunction:
    """Function of one state or of a batch that runs kernels in sequence on named vectors.

    A vector is an input or a result of the signature, or an intermediate vector. Kernels receive only finite numbers,
    also from other stages. Batches run through all stages in blocks, so that intermediate numbers stay in the cache.
    """

    def __init__(
        self,
        signature: Signature,
        stages: Kernel | Sequence[Stage],
        *,
        intermediate: Mapping[str, int] | None = None,
        finite_results: bool = False,
        refuse: Callable[[Mapping[str, Array]], object] | None = None,
    ) -> None:
        """Resolve the vector names of all stages.

        Args:
            signature: arguments and results.
            stages: the kernels; or a single kernel that reads all used inputs and writes all results.
            intermediate: names and lengths of vectors that a stage passes to later stages.
            finite_results: whether to refuse states with results that are not finite.
            refuse: raises the error for finite inputs with results that are not finite. It is called with the inputs by
                name, each of one state or with the leading axis of the batch.

        Raises:
            ValueError: a stage reads a vector that no earlier stage writes, or a result is not written exactly once.
        """
        inputs, names = signature.inputs, [vector.name for vector in signature.results]
        if not isinstance(stages, Sequence):
            stages = [Stage(stages, [vector.name for vector in inputs if not vector.unused], names)]
        self.signature, self.stages, self.intermediate = signature, tuple(stages), dict(intermediate or {})
        self._finite_results, self._refuse = finite_results, refuse
        self._shapes = {vector.name: vector.shape for vector in (*inputs, *signature.results)}
        self._shapes |= {name: (size,) for name, size in self.intermediate.items()}
        if len(self._shapes) != len(inputs) + len(names) + len(self.intermediate):
            raise ValueError("two vectors of a function have the same name")
        arguments = {vector.name for vector in inputs}
        known, written = set(arguments), list[str]()
        for stage in self.stages:
            if unknown := {*stage.inputs, *stage.outputs} - self._shapes.keys():
                raise ValueError(f"a function has no vector {min(unknown)}")
            if unknown := {*stage.inputs} - known:
                raise ValueError(f"a stage reads a value before it is written: {min(unknown)}")
            written += stage.outputs
            known.update(stage.outputs)
        if sorted(written) != sorted(self._shapes.keys() - arguments):
            raise ValueError("each result must be written by one stage")

    def __call__(self, *arguments: ArrayLike | None, out: Sequence[Array] | None = None, **keywords: Any) -> Any:
        """:meth:`results` in the signature's form: a single result or a tuple."""
        results = self.results(*arguments, out=out, **keywords)
        if self.signature.result_type is None:
            return results[0]
        return results if self.signature.result_type is tuple else self.signature.result_type(*results)

    def results(
        self, *arguments: ArrayLike | None, out: Sequence[Array] | None = None, **keywords: Any
    ) -> tuple[Array, ...]:
        """Compute one state or a batch.

        Args:
            arguments, keywords: arrays of the signature, each of the shape for one state or with a leading axis N.
            out: C-contiguous arrays for the results, in their shapes.

        Returns:
            The results, each (*shape) or (N, *shape).

        Raises:
            StateError: an argument has the wrong shape or is not finite, or a state is refused.
        """
        signature = self.signature
        inputs, samples = signature.checked(arguments, keywords, finite=False)
        results = outputs([samples + vector.shape for vector in signature.results], out)
        count = samples[0] if samples else 1
        if count:
            rows = tuple(self._rows(x, vector, out or ()) for x, vector in zip(inputs, signature.inputs, strict=True))
            if not self._run(count, rows, tuple(result.reshape(count, -1) for result in results)):
                signature.checked(arguments, keywords, finite=True)  # the error names argument and entry
                if self._refuse is not None:
                    self._refuse(dict(zip((vector.name for vector in signature.inputs), inputs, strict=True)))
                unknown = [
                    vector.name
                    for vector, result in zip(signature.results, results, strict=True)
                    if not all_finite(result)
                ]
                raise StateError(f"numbers too large: {', '.join(unknown) or 'a result'} would not be finite")
        return results

    def state_call(self, general: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """The function with fast dispatch: a C call for one state, or a small batch, of plain arrays.

        Args:
            general: called for all other arguments; by default the function itself.
        """
        general = self if general is None else general
        try:
            return self._caller(general) or general
        except KernelError as error:
            warn_of_kernel(f"{error}; each call will take about 20 µs longer")
            return general

    def _rows(self, x: Array, vector: Vector, out: Sequence[Array]) -> Array:
        """Array of one state or of a batch as (1, size) or (N, size), with contiguous, aligned rows.

        Copied only if necessary, for example if writing a result to ``out`` would overwrite unread rows.
        """
        count = len(x) if x.ndim > len(vector.shape) else 1
        rows = x.reshape(count, prod(vector.shape))
        if not (rows.flags.aligned and rows.strides[1] == rows.itemsize and rows.strides[0] >= 0):
            rows = rows.copy()
        for array in out:
            # A single stage reads rows before it writes to them.
            same_place = rows.ctypes.data == array.ctypes.data and rows.size == array.size
            if np.may_share_memory(rows, array) and not (same_place and len(self.stages) == 1):
                return rows.copy()
        return rows

    def _run(self, count: int, rows: tuple[Array, ...], results: tuple[Array, ...]) -> bool:
        """Run all stages on (N, size) or (1, size) rows; True if all numbers they read are finite."""
        if count > 1 and self._batches is not None:
            run = self._batches.batch
            return all(in_threads(count, STATES_PER_THREAD, lambda i, k: run(i, k, (*rows, *results))))
        vectors = dict(zip(self._shapes, (*rows, *results), strict=False))
        for name, shape in self._shapes.items():
            if name not in vectors:
                vectors[name] = np.empty((count, *shape))
        for stage in self.stages:
            read, written = ([vectors[name] for name in names] for names in (stage.inputs, stage.outputs))
            if not stage.kernel(count, read, written):
                return False
        return not self._finite_results or all_finite(*results)

    @cached_property
    def _batches(self) -> Any:
        """Compiled caller for batches; None if it cannot be compiled, or kernels are not compiled."""
        try:
            return self._caller(None)
        except KernelError:
            return None

    def _caller(self, general: Callable[..., Any] | None) -> Any:
        """Compiled caller of the kernels; None for unsupported kernels or too many vectors.

        It may outlive the kernels: ctypes never unloads a library.
        """
        signature, places = self.signature, {name: k for k, name in enumerate(self._shapes)}
        most = _MOST_DIMENSIONS
        if len(places) > _MOST_PLACES or any(len(shape) > most for shape in self._shapes.values()):
            return None
        stages, read = [], {name for stage in self.stages for name in stage.inputs}
        for kernel, *vectors in self.stages:
            if not isinstance(kernel, NativeKernel):
                return None
            taken, written = (bytes(places[name] for name in names) for names in vectors)
            stages.append((kernel.state_address, kernel.batch_address, taken, written))
        shapes = [
            (len(shape), *shape, *[0] * (most - len(shape)), prod(shape), name in read)
            for name, shape in self._shapes.items()
        ]
        results = [places[vector.name] for vector in signature.results]
        defaults = [np.zeros(vector.shape) if vector.optional else None for vector in signature.arguments]
        for keyword in signature.keywords:
            defaults += keyword.defaults or [np.zeros(vector.shape) for vector in keyword.vectors]
        module = caller()
        try:
            return module.Caller(
                shapes=np.array(shapes, dtype=np.intp).tobytes(),
                positional=len(signature.arguments),
                inputs=len(signature.inputs),
                outputs=len(signature.results),
                keywords=tuple((sys.intern(x.name), len(x.vectors), x.alone) for x in signature.keywords),
                defaults=tuple(defaults),
                stages=tuple(stages),
                result_type=signature.result_type,
                finite_results=self._finite_results,
                direct=len(stages) == 1 and [*taken] == [*range(len(taken))] and [*written] == results,
                general=general,
            )
        except OverflowError:
            return None


def compiled_program(program: Program, backend: str) -> CompiledFunction:
    """Function of the vectors of a traced program, for a backend in :data:`.KERNELS`."""
    arguments = tuple(Vector(name, (size,), shared=True) for name, size in program.inputs.items())
    results = tuple(Vector(name, (size,)) for name, size in program.outputs.items())
    return CompiledFunction(Signature(arguments, results), kernel_of(program, backend))


def declared_signature(recipe: Recipe, known: Mapping[str, Vector], wrench_shape: tuple[int, ...]) -> Signature:
    """Signature of a recipe: its inputs in ``known``, the wrenches that it reads, and its outputs."""
    results = tuple(known[name] for name in recipe.outputs)
    return Signature(
        tuple(known[name] for name in recipe.inputs if name in known),
        results,
        wrench_keyword(wrench_shape, len({*recipe.inputs} & {*WRENCH_NAMES})),
        tuple if len(results) > 1 else None,
    )


def vectors(shape: tuple[int, ...], **about: str) -> dict[str, Vector]:
    """Vectors of one shape by name, with their meanings and units."""
    return {name: Vector(name, shape, text) for name, text in about.items()}


def derivatives(
    names: Sequence[str], count: int, shape: tuple[int, ...], about: str, required: int | None = None
) -> tuple[Vector, ...]:
    """A quantity and its time derivatives.

    Args:
        names: names of the first vectors.
        count: number of vectors.
        shape, about: shape and meaning of the quantity.
        required: index of the first optional vector; by default all are required.
    """
    texts = [about if k == 0 else f"time derivative {k} of {names[0]}" for k in range(count)]
    least = count if required is None else required
    return tuple(Vector(name_of(names, k), shape, text, optional=k >= least) for k, text in enumerate(texts))


def motion_vectors(n: int, count: int, required: int | None = None) -> tuple[Vector, ...]:
    """Joint variables and their time derivatives; arguments as of :func:`derivatives`."""
    return derivatives(STATE_NAMES, count, (n,), "joint variables, rad or m", required)


def wrench_keyword(shape: tuple[int, ...], used: int) -> tuple[Keyword, ...]:
    """Keyword ``wrench``, if any wrench is used: the wrench at the tools and at least two time derivatives.

    Args:
        used: number of vectors that kernels read.
    """
    about = "wrench that the robot exerts at its tools, moment first, N m and N"
    vectors = derivatives(WRENCH_NAMES, max(used, len(WRENCH_NAMES)), shape, about)
    arrays = tuple(replace(vector, unused=k >= used) for k, vector in enumerate(vectors))
    return (Keyword("wrench", arrays, of=WRENCH_SEQUENCE),) if used else ()


def payload_keyword(robot: Robot, used: int) -> Keyword:
    """Keyword ``payload``: payloads, or their parameters at all tools with at least two time derivatives."""
    shape = payload_shape(robot)
    about = "inertial parameters of the payload at each tool: mass, first moment, inertia; kg, kg m, kg m²"
    vectors = derivatives(PAYLOAD_NAMES, max(used, len(PAYLOAD_NAMES)), shape, about)

    def checked(value: Any, samples: tuple[int, ...]) -> list[Array]:
        rows = [value] if isinstance(value, Payload) else sequence(value, "payload", _PAYLOADS, most=len(vectors))
        if all(isinstance(x, Payload) for x in rows):
            return [payload_parameters(robot, rows)]
        return [
            shared_array(x, f"payload {vector.name}", shape, samples) for x, vector in zip(rows, vectors, strict=False)
        ]

    return Keyword("payload", tuple(replace(x, unused=k >= used) for k, x in enumerate(vectors)), check=checked)


def shared_array(
    value: ArrayLike, name: str, shape: tuple[int, ...], samples: tuple[int, ...], finite: bool = True
) -> Array:
    """Array of one state shared by all states, or with the leading axes of the batch.

    Raises:
        StateError: the array has another shape, or is not finite although ``finite`` is set.
    """
    leading = samples if len(shape_of(value, name)) > len(shape) else ()
    return real_array(value, name, leading + shape, finite=finite)


def selected_array(
    value: ArrayLike, name: str, used: NDArray[np.bool_], samples: tuple[int, ...], where: str, other: float = 0.0
) -> Array:
    """Array of :func:`shared_array` with the ``used`` entries; all other entries are ``other``.

    Raises:
        StateError: the array has another shape, or a used entry is not finite; ``where`` describes these entries.
    """
    array = shared_array(value, name, used.shape, samples, finite=False)
    if not all_finite(array[..., used]):
        raise StateError(f"{name} must be finite at {where}")
    return np.where(used, array, other)
