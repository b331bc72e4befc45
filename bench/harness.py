# SPDX-License-Identifier: Apache-2.0
"""Harness of the benchmarks: settings, timing in turns, processes, tables and promises, their pages, and the machine.

A section is a function of the module that ``__main__.py`` names. It takes a :class:`Section`, which it fills with
tables, text and promises, and the :class:`Settings` of the run.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable

from eom_dynamics import __version__
from eom_dynamics.arrays import Array
from eom_dynamics.codegen.compiler import FLAGS, find_compiler
from eom_dynamics.exceptions import KernelError
from eom_dynamics.tools.results import cpuinfo, processor

DOCS = Path(__file__).parents[1] / "docs"

RESULTS = Path(__file__).parent / "results"  # full results with promises; pages quote at most one small table
FIGURES = DOCS.parent / "build" / "bench.json"  # all results of the last run

_MOST_ROWS, _MOST_COLUMNS, _MOST_WORDS = 4, 9, 60  # size of a table that a page quotes, and of its text

CONSOLE = Console(width=140, markup=False)  # text is not markup: names of tests have brackets

BATCH = 100_000  # states in a batch


@dataclass
class Settings:
    """Settings of a run."""

    quick: bool  # a short run, which writes no documents
    rounds: int  # samples of fast tasks
    slow_rounds: int  # samples of slow tasks
    most_joints: int  # of the longest chain
    fresh_processes: int  # samples of the first use
    recordings: Path | None = None  # folder with checkouts of public recordings
    models: Path | None = None  # folder with folders of MJCF models
    reports: Sequence[Path] = ()  # JUnit reports of make soak
    robot: str | None = None  # packaged robot or file, replacing the robots of a section


FULL = Settings(False, rounds=60, slow_rounds=15, most_joints=128, fresh_processes=9)
QUICK = Settings(True, rounds=7, slow_rounds=3, most_joints=32, fresh_processes=3)


# --- Tables, promises and text ----------------------------------------------------------


@dataclass
class Table:
    """Rows of text; the first column has their names."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """Add a row, and print it, because further rows may take minutes."""
        self.rows.append(cells)
        CONSOLE.print(" | ".join(cells), style="dim")

    def markdown(self) -> str:
        """The table in Markdown, with its title."""
        head = f"| {' | '.join(self.columns)} |"
        line = f"|---|{'---:|' * (len(self.columns) - 1)}"
        rows = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in self.rows]
        return "\n".join([f"**{self.title}**", "", head, line, *rows])


@dataclass
class Bar:
    """A promise and its measured value."""

    promise: str
    measured: str
    kept: bool


@dataclass
class Section:
    """Results of a benchmark: text, tables and promises."""

    name: str
    title: str
    text: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)

    def table(self, title: str, *columns: str) -> Table:
        """Add an empty table."""
        self.tables.append(Table(title, columns))
        return self.tables[-1]

    def promise(self, promise: str, measured: str, kept: Any) -> None:
        """Add a promise, its measured value, and whether it is kept."""
        self.bars.append(Bar(promise, measured, bool(kept)))

    def show(self) -> None:
        """Print the section."""
        CONSOLE.rule(self.title)
        for table in self.tables:
            view = RichTable(title=table.title, title_justify="left", title_style="bold")
            for k, column in enumerate(table.columns):
                view.add_column(column, justify="right" if k else "left")
            for row in table.rows:
                view.add_row(*row)
            CONSOLE.print(view)
        for sentence in self.text:
            CONSOLE.print(sentence)
        show_bars(self.bars)

    def summary(self) -> str:
        """The first table with its short text in Markdown, if it is small."""
        small = [x for x in self.tables[:1] if len(x.rows) <= _MOST_ROWS and len(x.columns) <= _MOST_COLUMNS]
        text = [x for x in self.text if small and len(x.split()) <= _MOST_WORDS]
        return replace(self, tables=small, text=text, bars=[]).markdown()

    def markdown(self) -> str:
        """The section in Markdown, without its title."""
        parts = [*(table.markdown() for table in self.tables), *self.text]
        return "\n\n".join([*parts, bars_markdown(self.bars)] if self.bars else parts)


def show_bars(bars: Sequence[Bar]) -> None:
    """Print promises."""
    for bar in bars:
        CONSOLE.print(f"{'met   ' if bar.kept else 'MISSED'}  {bar.promise}: {bar.measured}")


def bars_markdown(bars: Sequence[Bar]) -> str:
    """Promises as a Markdown table."""
    rows = [f"| {bar.promise} | {bar.measured} | {'met' if bar.kept else '**missed**'} |" for bar in bars]
    return "\n".join(["| promised | measured | |", "|---|---|---|", *rows])


def facts_markdown(facts: Mapping[str, str]) -> str:
    """Facts of a run, such as its machine, as a Markdown table."""
    return "\n".join(["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in facts.items())])


def write_between_marks(path: Path, name: str, text: str) -> None:
    """Replace the text between the marks of a section in a document; ValueError if it does not have them."""
    begin, end = f"<!-- bench {name}: begin -->", f"<!-- bench {name}: end -->"
    document = path.read_text(encoding="utf-8")
    head, mark, rest = document.partition(begin)
    _, second_mark, tail = rest.partition(end)
    if not mark or not second_mark:
        raise ValueError(f"{path} has no marks {begin} and {end}")
    path.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")


def write_section(document: Path, section: Section, source: str = "", *, results: Path = RESULTS) -> None:
    """Write the summary of a section into a document, and the whole section with its source into a folder."""
    results.mkdir(exist_ok=True)
    whole = "\n\n".join(filter(None, [section.markdown(), source]))
    (results / f"{section.name}.md").write_text(f"# {section.title}\n\n{whole}\n", encoding="utf-8")
    summary = section.summary()
    label = "[All figures]" if summary else f"Results: [{section.title}]"
    text = "\n\n".join(filter(None, [summary, f"{label}(../bench/results/{section.name}.md)."]))
    write_between_marks(document, section.name, text)


def write_json(sections: Sequence[Section], facts: Mapping[str, str], path: Path = FIGURES) -> Path:
    """Write all results of a run, and the facts of its machine, to a JSON file; returns the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    results = {section.name: asdict(section) for section in sections}
    path.write_text(json.dumps({"facts": dict(facts), "sections": results}, indent=1) + "\n", encoding="utf-8")
    return path


@contextmanager
def picture(name: str, width: float, height: float, title: str = "", legend: int = 0) -> Iterator[Any]:
    """A figure, which becomes a picture of the documentation, with a legend of the first axes in some columns."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"font.size": 11, "axes.labelsize": 12, "axes.titlesize": 12, "figure.titlesize": 14}):
        figure = Figure(figsize=(width, height), layout="constrained")
        if title:
            figure.suptitle(title)
        yield figure
        if legend:
            labels = figure.axes[0].get_legend_handles_labels()
            figure.legend(*labels, loc="outside lower center", ncols=legend, frameon=False)
        figure.savefig(DOCS / name, dpi=110)


# --- Numbers ----------------------------------------------------------------------------


def seconds(value: float) -> str:
    """Time with three digits and a suitable unit."""
    for unit, scale in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if value < 999.5 * scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g} s"


def error(value: float) -> str:
    """Error with a single digit."""
    return f"{value:.0e}" if value else "0"


def rms(values: Array) -> float:
    """Root mean square of all entries."""
    return float(np.sqrt(np.mean(np.square(values))))


def largest_difference(found: Any, exact: Any) -> float:
    """Largest difference of entries, relative to the largest exact entry."""
    a, b = np.asarray(found), np.asarray(exact)
    return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))


# --- Times ------------------------------------------------------------------------------


@dataclass(frozen=True)
class TimedTask:
    """A function to time, and the number of its evaluations per call."""

    run: Callable[[], Any]
    count: int = 1


def one_by_one(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> TimedTask:
    """Return the task of calling a function once for each tuple of arguments."""

    def run() -> None:
        for values in arguments:
            function(*values)

    return TimedTask(run, len(arguments))


def on_one_core(task: TimedTask) -> TimedTask:
    """The task on one core."""

    def run() -> None:
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        try:
            task.run()
        finally:
            os.sched_setaffinity(0, cores)

    return TimedTask(run, task.count)


@dataclass(frozen=True)
class Timings:
    """Times per evaluation (rounds,), s, by the key of the task; all tasks of a round ran one right after the other."""

    samples: Mapping[Hashable, Array]

    def median(self, key: Hashable) -> float:
        """The median, s."""
        return float(np.median(self.samples[key]))

    def cell(self, key: Hashable) -> str:
        """The median in words."""
        return seconds(self.median(key))

    def middle_half(self, key: Hashable) -> str:
        """First and third quartile in words."""
        return " – ".join(map(seconds, np.quantile(self.samples[key], [0.25, 0.75])))

    def ratio(self, key: Hashable, reference: Hashable) -> float:
        """Time of a task relative to another: the median over the rounds."""
        return float(np.median(self.samples[key] / self.samples[reference]))


def interleaved(tasks: Mapping[Any, TimedTask], rounds: int, *, at_least: float = 2e-3) -> Timings:
    """Time tasks, interleaved in rotating order, ``rounds`` times; each is repeated to last at least ``at_least`` s."""
    repeats = {key: _repeats(task, at_least) for key, task in tasks.items()}
    samples: dict[Hashable, list[float]] = {key: [] for key in tasks}
    keys = list(tasks)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for k in range(rounds):
            # Rotate the order, so that a task does not always find the caches as the same other task left them.
            for key in keys[k % len(keys) :] + keys[: k % len(keys)]:
                samples[key].append(_seconds(tasks[key], repeats[key]) / repeats[key] / tasks[key].count)
    finally:
        if collecting:
            gc.enable()
    return Timings({key: np.array(values) for key, values in samples.items()})


def beside(pairs: Mapping[str, tuple[TimedTask, TimedTask]], rounds: int) -> dict[str, tuple[str, str, float]]:
    """Medians of both tasks of each pair in words, all interleaved, and the ratio of the first to the second."""
    times = interleaved({(name, k): task for name, pair in pairs.items() for k, task in enumerate(pair)}, rounds)
    return {x: (times.cell((x, 0)), times.cell((x, 1)), times.ratio((x, 0), (x, 1))) for x in pairs}


def _repeats(task: TimedTask, at_least: float) -> int:
    _seconds(task, 1)  # warm-up
    repeats = 1
    while (total := _seconds(task, repeats)) < at_least:
        repeats = max(2 * repeats, int(repeats * at_least / max(total, 1e-7)))
    return repeats


def _seconds(task: TimedTask, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        task.run()
    return time.perf_counter() - start


def timed(task: Callable[[], Any]) -> tuple[Any, float]:
    """Result of a single call, and its time, s."""
    start = time.perf_counter()
    return task(), time.perf_counter() - start


# --- Processes and folders --------------------------------------------------------------


def in_parallel(
    function: Callable[..., Any], cases: Iterable[tuple[Any, ...]], *, optimized: bool = True
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Arguments and results of a function of a module in processes, in order of completion.

    Compilers optimize or not: arms that are evaluated a few times are faster without.
    """
    start = time.perf_counter()
    with ProcessPoolExecutor(initializer=None if optimized else _compile_quickly) as pool:
        tasks = {pool.submit(function, *case): case for case in cases}
        for done, task in enumerate(as_completed(tasks), start=1):
            minutes = (time.perf_counter() - start) / 60
            CONSOLE.print(f"{done} of {len(tasks)}, {minutes:.1f} min", style="dim")
            yield tasks[task], task.result()


def _compile_quickly() -> None:
    os.environ["EOM_DYNAMICS_CFLAGS"] = "-O0"


def in_fresh_process(code: str, *arguments: object, **environment: str) -> Any:
    """JSON that a Python program prints, in a process of its own, with additional environment variables."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=variables)
    return json.loads(done.stdout)


PEAK_MEMORY = """
import re
from pathlib import Path

def peak_memory():
    # Bytes of this process alone: ru_maxrss starts from the peak of the process that started it.
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
"""  # a function for in_fresh_process


@cache
def scratch() -> Path:
    """Temporary folder of this process."""
    folder = tempfile.mkdtemp(prefix="eom_dynamics_bench_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files by their paths in a folder; returns the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


# --- The machine ------------------------------------------------------------------------


def machine(packages: Sequence[str]) -> dict[str, str]:
    """Return processor, system, compiler, and the versions of Python, eom_dynamics and these packages."""
    cpu = cpuinfo()
    details = "AVX-512" if "avx512f" in cpu.get("flags", "").split() else "no AVX-512"
    details = f"family {cpu['cpu family']}, model {cpu['model']}, {details}" if "cpu family" in cpu else details
    facts = {
        "processor": f"{processor()} ({details}), {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "compiler": _compiler(),
        "Python": platform.python_version(),
        "eom_dynamics": __version__,
    }
    for name in packages:
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            facts[name] = "not installed"
    return facts


def _compiler() -> str:
    try:
        command = find_compiler()
    except KernelError as error:
        return str(error)
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout
    return f"{version.splitlines()[0] if version else command[0]}, {' '.join(FLAGS)}"
