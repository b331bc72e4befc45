# SPDX-License-Identifier: Apache-2.0
"""Process of a node: command line, executor, signals, exit code; its scheduling and memory, transport of large answers.

Under the normal policy, a thread that becomes ready may wait for the scheduler's next tick, up to 4 ms at 250 Hz, while
a thread of lower priority computes. Under SCHED_FIFO it runs immediately.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import os
import re
import resource
import sys
import textwrap
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import rclpy
import yaml
from rclpy.exceptions import ParameterException
from rclpy.executors import Executor, ExternalShutdownException
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.qos_overriding_options import InvalidQosOverridesError
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.utilities import remove_ros_args, try_shutdown

from ..spelling import listed
from ..terminal import prepare_streams, printable
from .executors import StopSignals, end_workers, make_executor, steady_timer

if TYPE_CHECKING:
    from .parameter_tables import Table
    from .robot_node import RobotNode


_WIDTH = 100

# Errors of a node that cannot start; RuntimeError: from rclpy; ImportError: its interfaces are not built.
_CANNOT_START = (RuntimeError, ImportError, ParameterException, InvalidQosOverridesError)


class Executable(NamedTuple):
    """Names of an executable and its node, and the help text."""

    name: str
    node: str
    description: str  # one sentence
    examples: str  # and topics, services and actions
    parameters: Callable[[], Table]


def read_arguments(program: Executable, arguments: Sequence[str]) -> None:
    """Print ``--help`` or reject non-ROS arguments of a process; both end it, with exit code 0 or 2."""
    heading = "parameters (robot.* and urdf.* describe the robot: docs/robots.md, docs/node.md):"
    if not remove_ros_args(list(arguments))[1:] and arguments[1:2] in ([], ["--ros-args"]):
        return
    parameters = program.parameters()
    parser = argparse.ArgumentParser(
        prog=program.name,
        usage=f"{program.name} [--ros-args [--params-file FILE] [-p NAME:=VALUE] [-r FROM:=TO] …]",
        description=f"{program.description} All arguments follow --ros-args.",
        epilog="\n".join([program.examples, heading, *_lines(parameters)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _, unknown = parser.parse_known_args(remove_ros_args(list(arguments))[1:])
    # Before --ros-args, rcl takes a parameter for a remapping.
    first = takewhile(lambda x: x != "--ros-args", arguments[1:])
    unknown += (lost := [x for x in first if x.partition(":=")[0] in parameters])
    if unknown:
        words = [x for x in arguments[1:] if x not in ("--ros-args", "-p" if lost else "")]
        suggestion = " ".join(f"-p {x}" if x in lost else x for x in words)
        if ":=" not in suggestion and "--params-file" not in words:
            suggestion = "-p NAME:=VALUE"
        remedy = f"parameters and remappings follow --ros-args: write {program.name} --ros-args {suggestion}"
        parser.error(f"unknown arguments: {' '.join(unknown)}; {remedy}")


def _lines(table: Table) -> list[str]:
    lines = []
    for name, definition in table.items():
        default = definition.default
        shown = "" if default == "" else f" (default: {str(default).lower()})"
        first, *rest = textwrap.wrap(definition.description + shown, _WIDTH - 22)
        lines += [f"  {name:<19} {first}", *(f"{'':22}{line}" for line in rest)]
    return lines


# Longest time from a signal to the end of spinning, s: Python handles signals in callbacks and between calls of the
# executor.
_CHECK_PERIOD = 0.1

# Time that the end of a process waits for the present jobs of worker threads, s.
_LONGEST_JOB = 2.0

# Longest time that another Python thread delays the stream. At Python's default of 5 ms, one setpoint in ten of a 1 kHz
# stream is answered 10 to 30 ms late while a large robot is loaded.
_SWITCH_INTERVAL = 1e-4


def _reason(error: Exception) -> str:
    """Reason that a node cannot start, in one line; without places in the code of rcl."""
    text = " ".join(str(error).split())
    if isinstance(error, _rclpy.UnknownROSArgsError):
        return f"unknown arguments: {text.strip('[]')}; write -p before a parameter, -r before a remapping"
    if missing := re.search(r"'--params-file ([^']*)'. Error: Error opening", text):
        return f"--params-file {missing[1]}: no such file in {os.getcwd()}: give the path of a parameter file"
    return text


def _files_without_effect(words: Sequence[str], node: str) -> Iterator[str]:
    """Warnings about parameter files that have sections of other nodes alone, which rcl ignores."""
    for option, file in pairwise(words):
        if option != "--params-file":
            continue
        names = list(_sections(yaml.safe_load(Path(file).read_text(encoding="utf-8"))))
        patterns = [re.escape(x).replace(r"/\*\*", r"(/[^/]+)*").replace(r"\*", "[^/]+") for x in names]
        if names and not any(re.fullmatch(pattern, node) for pattern in patterns):
            yield f"--params-file {file}: without effect: it is for {listed(names)}, not for {node}; name it /**"


def _sections(document: object, name: str = "") -> Iterator[str]:
    """Names of the nodes that have parameters in a parameter file."""
    for key, value in document.items() if isinstance(document, dict) else ():
        if key == "ros__parameters":
            yield name
        else:
            yield from _sections(value, f"{name}/{str(key).strip('/')}")


def _log_warning(name: str, message: Warning | str, *_: object, **__: object) -> None:
    """Log a warning of Python, such as of a worker thread that finds no compiler, without its place in the code."""
    get_logger(name).warning(printable(str(message)))


def run(program: Executable, make: Callable[[StopSignals], RobotNode], args: list[str] | None) -> int:
    """Run a node until SIGINT, SIGTERM or shutdown of its context, and end the process; return 1 if it cannot start."""
    prepare_streams()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    # Not rclpy's signal handlers: they shut the context down from a thread of their own, at any line of startup code or
    # of the events executor, which aborts the process, or never ends it, if that takes up new entities at the time.
    # Python's default handler would raise KeyboardInterrupt at any line.
    stop = StopSignals()
    gc.disable()  # during imports, which take an eighth longer with collections
    warnings.showwarning = partial(_log_warning, program.node)
    try:
        read_arguments(program, sys.argv if args is None else args)
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        node = make(stop)
    except _CANNOT_START as error:
        print(f"{program.node}: {printable(_reason(error))}", file=sys.stderr)
        return 1
    finally:
        gc.enable()
    for text in _files_without_effect(sys.argv if args is None else args, node.get_fully_qualified_name()):
        node.get_logger().warning(printable(text))
    executor = make_executor()
    executor.add_node(node)
    node.start_up()
    _spin(executor, node, lambda: stop.came)
    off = threading.Event()
    node.switch_off("the process ends", off.set)
    _spin(executor, node, lambda: stop.insists or off.is_set())
    end_workers(node, _LONGEST_JOB)
    # Before the context ends, so that other nodes notice the end.
    executor.remove_node(node)
    node.destroy_node()
    executor.shutdown()
    try_shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads them
            stream.flush()
    # Not by returning: while a request or a thread still uses the node, the destructors of rclpy and of the middleware
    # could abort, crash or wait forever.
    os._exit(0)


@contextmanager
def discovering() -> Iterator[float]:
    """Start discovery of other processes before the node exists; yields the time.monotonic(), s."""
    # The middleware does so while there is a node. Names with an underscore belong to hidden nodes.
    hidden = Node("_discovery", use_global_arguments=False, enable_rosout=False, start_parameter_services=False)
    try:
        yield time.monotonic()
    finally:
        hidden.destroy_node()


def _spin(executor: Executor, node: RobotNode, until: Callable[[], bool]) -> None:
    """Spin until a condition holds or the context ends; log exceptions of callbacks and continue."""

    def check() -> None:
        if until() or not node.context.ok():
            end.set_result(None)

    # Not by the timeout alone, which the events executor checks only when no callback is waiting: never if a timer is
    # always due.
    timer = steady_timer(node, _CHECK_PERIOD, check)
    while node.context.ok() and not until():
        end: Future = Future()
        try:
            # Not spin(): in rclpy built for an old C library, as in the wheels on PyPI, the events executor's wait
            # without a deadline overflows and busy-waits.
            executor.spin_until_future_complete(end, timeout_sec=_CHECK_PERIOD)
        except ExternalShutdownException:
            return
        except Exception as error:
            if node.context.ok():
                place = traceback.extract_tb(error.__traceback__)[-1]
                node.get_logger().error(
                    f"a callback failed, in {place.name} at {place.filename}:{place.lineno}: "
                    f"{type(error).__name__}: {printable(str(error))}",
                    throttle_duration_sec=1.0,
                )
    timer.cancel()


# Flags of mlockall: present and future pages.
_MCL_CURRENT, _MCL_FUTURE = 1, 2

# Bit of the capability to lock memory without limit, in /proc/self/status.
_CAP_IPC_LOCK = 14


def schedule(priority: int) -> list[str]:
    """Apply a priority of at least 1, and lock the memory, as far as permitted; return the reasons for failures."""
    if sys.platform != "linux":
        return ["realtime_priority is available on Linux only"]
    return [reason for reason in (stream_in_real_time(priority), lock_memory()) if reason]


def stream_in_real_time(priority: int) -> str:
    """Run the calling thread and the middleware's threads under SCHED_FIFO; return why not, or an empty text.

    Other Python threads keep normal scheduling, such as threads that load robots, and so do later threads and
    processes.
    """
    policy, parameter = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority)
    try:
        for thread in _threads():
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.sched_setscheduler(thread, policy, parameter)
    except OSError as error:
        return (
            f"realtime_priority {priority} is not permitted ({error.strerror}), scheduling stays normal: raise the "
            f"limit rtprio to {priority} (limits.conf; LimitRTPRIO= of systemd; docker --ulimit rtprio={priority} "
            "--cap-add SYS_NICE)"
        )
    return ""


def lock_memory() -> str:
    """Lock all present and future memory of the process, against page faults; return why not, or an empty text.

    With a finite limit of locked memory, it is refused, since a later allocation beyond it would fail.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    reason = ""
    if limit != resource.RLIM_INFINITY and not _may_lock_memory():
        reason = f"limit {limit // 1024} kB"
    elif ctypes.CDLL(None, use_errno=True).mlockall(_MCL_CURRENT | _MCL_FUTURE):
        reason = os.strerror(ctypes.get_errno())
    return reason and (
        f"locked memory is not permitted ({reason}), memory stays pageable: raise the limit memlock to unlimited "
        "(limits.conf; LimitMEMLOCK=infinity of systemd; docker --ulimit memlock=-1)"
    )


def _threads() -> list[int]:
    """The calling thread and the middleware's threads, by number: all but other Python threads."""
    others = {thread.native_id for thread in threading.enumerate()} - {threading.get_native_id()}
    return [thread for thread in map(int, os.listdir("/proc/self/task")) if thread not in others]


def _may_lock_memory() -> bool:
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> _CAP_IPC_LOCK & 1)
    return False


# Options of mallopt in glibc.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

# The largest that glibc accepts.
_LARGEST_MMAP_THRESHOLD = 32 * 2**20


NICENESS, RESERVED_CORES = 10, 1
"""Nice value of a process that gives way, and CPU cores that it leaves to others, if there are more."""


def give_way(threads: Iterable[int] | None = None) -> None:
    """Lower the priority of threads, by default all, and leave a core to other processes; Linux only.

    Threads that linear algebra libraries have started are included, since Linux sets both per thread.
    """
    if sys.platform != "linux":
        return
    cores = sorted(os.sched_getaffinity(0))
    used = cores[min(RESERVED_CORES, len(cores) - 1) :]
    for thread in map(int, os.listdir("/proc/self/task")) if threads is None else threads:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            if os.getpriority(os.PRIO_PROCESS, thread) < NICENESS:
                os.setpriority(os.PRIO_PROCESS, thread, NICENESS)
            os.sched_setaffinity(thread, used)


# Freed memory that stays in the process, for the next answer.
_KEPT_MEMORY = 256 * 2**20


def keep_memory() -> None:
    """Keep freed memory in the process, which saves mapping and clearing pages again."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc
    if mallopt:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_MEMORY)


def freeze_objects() -> None:
    """Exclude the present objects, 40 000 of imported modules, from garbage collections, to shorten them."""
    gc.collect()
    gc.freeze()


_PROFILE = Path(__file__).with_name("fast_dds.xml")

# Fast DDS 2 and 3 read a file named by the first two, or in the working directory.
_VARIABLES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
_FILES = ("DEFAULT_FASTRTPS_PROFILES.xml", "DEFAULT_FASTDDS_PROFILES.xml")


def share_memory() -> None:
    """Set 32 MiB of shared memory for Fast DDS, unless the user has chosen a profile or a transport.

    Its default of 512 KiB holds a fraction of an answer. The rest waits for a heartbeat, up to 3 s, as soon as several
    planners call, and now and then an answer is lost. It must be called before the first context is initialised; other
    middleware ignores it. With less shared memory, Fast DDS logs this and uses UDP.
    """
    chosen = any(os.environ.get(name) for name in (*_VARIABLES, "FASTDDS_BUILTIN_TRANSPORTS"))
    if not chosen and not any(Path(name).exists() for name in _FILES):
        os.environ.update(dict.fromkeys(_VARIABLES, str(_PROFILE)))
