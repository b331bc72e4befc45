# SPDX-License-Identifier: Apache-2.0
"""One job of many: its outcome includes its errors, and says whether its output existed already or must be made."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from ...exceptions import EomDynamicsError
from ..contents import bag_hash, robot_hash
from ..robot_options import RobotOptions
from .job import Job, Report
from .one import replay_bag
from .sinks import provenance_of


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job.

    Attributes:
        job: the job.
        report: None if it failed.
        error: why it failed, on one line.
        detail: a traceback, if the error is internal.
        wall: duration, s.
        done_before: whether the output existed and was kept.
    """

    job: Job
    report: Report | None = None
    error: str = ""
    detail: str = ""
    wall: float = 0.0
    done_before: bool = False


def loaded_robot_hash(source: str, options: RobotOptions) -> str:
    """Hash of a robot that is loaded."""
    return robot_hash(options.load(source))


def done_before(job: Job, hash_of: Callable[[str, RobotOptions], str] = loaded_robot_hash) -> Outcome:
    """The outcome of a job whose output exists: its report, or as an error what it was made of instead."""
    provenance = provenance_of(job.output, job.format) or {}
    try:
        made, report = provenance["settings"], Report.from_json(provenance["report"])
        other = [name for name, value in job.settings().items() if made.get(name) != value]
        other += [name for name in made if name not in job.settings()]
        if report.bag_hash != bag_hash(job.bag):
            other.append("content of the bag")
        # A robot that the bag describes is part of it.
        if job.robot is not None and report.robot_hash != hash_of(job.robot, job.robot_options):
            other.append("content of the robot")
    except (KeyError, TypeError, AttributeError):
        other = ["release, or not an output of replay"]
    except OSError as error:
        return Outcome(job, error=f"{error.filename or job.bag}: {error.strerror or error}")
    except EomDynamicsError as error:
        return Outcome(job, error="; ".join(error.errors))
    if other:
        what = f"exists, but was not made of this bag with the same settings (other: {', '.join(other)})"
        return Outcome(job, error=f"{job.output}: {what}; remove it, or overwrite it with --force")
    return Outcome(job, report, done_before=True)


def run_job(job: Job, progress: Callable[[float], None] | None = None) -> Outcome:
    """Do one job; errors are in the outcome."""
    began = time.perf_counter()
    report, error, detail = None, "", ""
    try:
        report = replay_bag(job, progress)
    except EomDynamicsError as failure:
        # A cluster that took this process for lost may have had the job done by another one.
        if os.path.lexists(job.output) and (done := done_before(job)).report is not None:
            return done
        error = "; ".join(failure.errors)
    except OSError as failure:
        error = f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure)
    except Exception as failure:
        error, detail = f"internal error: {type(failure).__name__}: {failure}", traceback.format_exc()
    return Outcome(job, report, error, detail, time.perf_counter() - began)
