# SPDX-License-Identifier: Apache-2.0
"""Launch files run for real, by the ros2 command."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import Any

import processes
from paths import ROOT

FOLDER = ROOT / "launch"
PATIENCE = 30.0


def launch_command(file: str, **arguments: object) -> list[str]:
    return ["ros2", "launch", "eom_dynamics", file, *(f"{name}:={value}" for name, value in arguments.items())]


@contextmanager
def launched(file: str, nodes: int, code: int = 0, **arguments: object) -> Iterator[int]:
    """Run a launch file; yields the process id of ros2 launch. At the end, ``nodes`` must exit cleanly on SIGINT.

    The exit code must be the given one.
    """
    command = launch_command(file, **arguments)
    launch = processes.popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield launch.pid
    finally:
        launch.send_signal(signal.SIGINT)
        output, _ = launch.communicate(timeout=PATIENCE)
    assert output.count("process has finished cleanly") == nodes, output
    assert "Traceback" not in output, output
    assert launch.returncode == code, output


def refusal(file: str, **arguments: object) -> str:
    """Output of a launch file that must fail."""
    code, output, errors = processes.run(launch_command(file, **arguments))
    assert code == 1, output + errors
    return output + errors


def error_line(output: str) -> str:
    """The error of a launch that failed, which must be on one line, the last."""
    *_, last = output.splitlines()
    assert output.count("[ERROR]") == 1, output
    return last.partition("(see debug for traceback): ")[2]


def launch_error(output: str) -> str:
    """Error of a launch whose processes have reported errors."""
    (line,) = (line for line in output.splitlines() if "[launch]: Caught exception in launch" in line)
    return line.partition("(see debug for traceback): ")[2]


def node_process(launch: int, executable: str) -> int:
    """Process id of the node with this executable that a launch runs; waits for it."""
    children = Path(f"/proc/{launch}/task/{launch}/children")
    found: list[int] = []  # once, because a killed node may disappear before a second search

    def look() -> bool:
        pids = map(int, children.read_text(encoding="ascii").split())
        found[:] = [pid for pid in pids if any(word.endswith(f"/{executable}") for word in command_line(pid))]
        return bool(found)

    wait_for(look)
    return found[0]


def command_line(pid: int) -> list[str]:
    """Command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")[:-1]
    except OSError:
        return []


def ask(observer: Any, service_type: Any, name: str, **fields: object) -> Any:
    """Response of a service; waits for the service first."""
    client = observer.create_client(service_type, name)
    assert client.wait_for_service(PATIENCE), name
    future = None
    deadline = time.monotonic() + PATIENCE
    # Again each second, as a request that is sent to a killed node is lost.
    while not (future and future.done()):
        assert time.monotonic() < deadline, f"no answer of {name}"
        future = client.call_async(service_type.Request(**fields))
        spin(observer, 1.0, future)
    observer.destroy_client(client)
    return future.result()


def parameters(observer: Any, node: str, *names: str) -> list[Any]:
    from rcl_interfaces.srv import GetParameters
    from rclpy.parameter import parameter_value_to_python

    response = ask(observer, GetParameters, f"{node}/get_parameters", names=names)
    return [parameter_value_to_python(value) for value in response.values]


def wait_for(condition: Callable[[], bool], node: Any = None) -> None:
    """Wait until the condition holds, while the node receives messages."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold"
        if node:
            spin(node, 0.05)
        else:
            time.sleep(0.05)


def spin(node: Any, seconds: float, future: Any = None) -> None:
    """Let a node receive messages for ``seconds``, or until the future is done."""
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.task import Future

    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    executor.spin_until_future_complete(future or Future(), seconds)
    executor.remove_node(node)


def description_of(file: str) -> Any:
    spec = util.spec_from_file_location(file.partition(".")[0], FOLDER / file)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()
