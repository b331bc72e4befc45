# SPDX-License-Identifier: Apache-2.0
"""Replay of bags and folders of bags, with comparison of each output with its golden bag."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...bags import Bag, BagError
from ...bags.bag import ENDINGS
from .compare import MISSING, Difference, Match, Tolerances, check_golden, compare_bags
from .compare_tables import check_golden_table, compare_tables
from .job import Format, Job
from .many import find_bags, replay_bags
from .one import Outcome, replay_bag
from .outputs import output_topics
from .sources import choose_topic

_FILES = (*ENDINGS, ".parquet")

Progress = Callable[[float, int], None]


@dataclass(frozen=True)
class Golden:
    """Golden output, or a folder of golden outputs by name, and how to compare with them.

    Attributes:
        path: of the bag, the Parquet table, or the folder of them.
        tolerances: allowed differences.
        match: which messages belong together.
    """

    path: Path
    tolerances: Tolerances = field(default_factory=Tolerances)
    match: Match = Match.RECORDED


@dataclass(frozen=True)
class BagResult:
    """The result of one bag.

    Attributes:
        outcome: of its replay.
        differences: from its golden bag; None if it was not compared.
    """

    outcome: Outcome
    differences: list[Difference] | None = None

    @property
    def differs(self) -> bool:
        """Whether a field differs from the golden bag by more than its tolerance."""
        return any(difference.beyond for difference in self.differences or ())

    @property
    def missing(self) -> list[str]:
        """A line for each topic that the golden bag lacks, which was not compared."""
        return [f"{row.topic}: {row.text}" for row in self.differences or () if row.field == MISSING]

    def failures(self) -> list[str]:
        """Return a line if the bag was not replayed, or for each field that differs from the golden bag."""
        if self.outcome.report is None:
            return [self.outcome.error]
        return [f"{row.topic}: {row.text}" for row in self.differences or () if row.beyond]


def replay(
    bags: Sequence[Path],
    output: Path,
    settings: Job,
    golden: Golden | None = None,
    *,
    processes: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> list[BagResult]:
    """Replay bags and compare the outputs.

    A single bag is replayed in this process, and its errors are raised. Several, or those in folders, are replayed in
    parallel, each into an output of its name in the folder ``output``, and their errors are part of the results.

    Args:
        bags: bags and folders of bags.
        output: see above.
        settings: of each replay; its ``bag`` and ``output`` are replaced.
        golden: what to compare with.
        processes: number of parallel processes; by default one per core.
        scheduler: address of a Dask scheduler to use instead of processes.
        resume: keep outputs that were made of the same contents with the same settings and release.
        progress: called with the number of bags replayed so far, in fractions of a bag, and their total number.

    Returns:
        A result for each bag.

    Raises:
        BagError: there are no bags, two would have the same output, or none of the golden bags can be compared with.
        EomDynamicsError: a single bag cannot be replayed, or the scheduler cannot be reached.
        OSError: a file cannot be read.
    """
    single = len(bags) == 1 and find_bags(bags[0]) == list(bags)
    if not single and output.suffix in _FILES:
        raise BagError(f"{output}: is the name of a file; several bags are replayed into a folder, name one")
    jobs = [replace(settings, bag=bags[0], output=output)] if single else _jobs(bags, output, settings)
    goldens: dict[Job, Path] = {}
    if golden:
        goldens = {job: golden.path if single else golden.path / job.output.relative_to(output) for job in jobs}
    for job, path in goldens.items():
        if path.resolve() == job.output.resolve():
            raise BagError(f"golden bag {path}: is the output itself; name another golden bag, or another output")
    refused = _refused(goldens)
    if single and not (scheduler or resume):
        began = time.perf_counter()
        report = replay_bag(jobs[0], progress and (lambda share: progress(share, 1)))
        outcomes = [Outcome(jobs[0], report, wall=time.perf_counter() - began)]
    else:
        folder = None if single else output.absolute()
        accepted = {
            job: replace(job, bag=job.bag.absolute(), output=job.output.absolute(), folder=folder)
            for job in jobs
            if job not in refused
        }
        replayed = replay_bags(
            list(accepted.values()),
            processes=processes,
            scheduler=scheduler,
            resume=resume,
            progress=progress and (lambda shares, done: progress(len(done) + sum(shares), len(accepted))),
        )
        found = {job: replace(outcome, job=job) for job, outcome in zip(accepted, replayed, strict=True)}
        outcomes = [found[job] if job in found else Outcome(job, error=refused[job]) for job in jobs]
    compare = compare_tables if settings.format is Format.PARQUET else compare_bags
    return [
        BagResult(outcome, compare(outcome.job.output, goldens[outcome.job], golden.tolerances, golden.match))
        if golden and outcome.report
        else BagResult(outcome)
        for outcome in outcomes
    ]


def _jobs(bags: Sequence[Path], folder: Path, settings: Job) -> list[Job]:
    """Return a job for each bag, with an output of its name in the folder."""
    taken: dict[Path, Path] = {}
    for path in bags:
        for bag in find_bags(path):
            name = bag.relative_to(path) if bag != path else Path(bag.name)
            stem = name.name
            for suffix in (".zstd", *ENDINGS):
                stem = stem.removesuffix(suffix)
            output = folder / name.parent / (f"{stem}.parquet" if settings.format is Format.PARQUET else stem)
            if output in taken:
                raise BagError(f"{bag} and {taken[output]} would have the same output {output}; replay them separately")
            taken[output] = bag
    return [replace(settings, bag=bag, output=output) for output, bag in taken.items()]


def _refused(goldens: dict[Job, Path]) -> dict[Job, str]:
    """Return why golden bags cannot be compared with, by job, before anything is computed or written.

    Bags to replay that cannot be read are left to the replay, which reports them without stopping the others.
    """
    refused: dict[Job, str] = {}
    usable = False
    for job, golden in goldens.items():
        try:
            with Bag(job.bag) as bag:
                namespace = choose_topic(bag, job.topic).name.rpartition("/")[0]
        except (BagError, OSError):
            continue
        try:
            if job.format is Format.PARQUET:
                check_golden_table(golden)
            else:
                check_golden(golden, output_topics(namespace))
        except BagError as error:
            refused[job] = str(error)
        else:
            usable = True
    if refused and not usable:
        raise BagError(next(iter(refused.values())))
    return refused
