# SPDX-License-Identifier: Apache-2.0
"""Several dynamics nodes in one process, which share its executor and memory.

dynamics_nodes --node -r __ns:=/left --params-file left.yaml --node -r __ns:=/right --params-file right.yaml
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import rclpy
from rclpy.exceptions import InvalidNamespaceException
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.signals import SignalHandlerOptions

from .dynamics_node import DynamicsNode
from .executors import StopSignals
from .running import CANNOT_START, run_together

_NAME, _NODE = "dynamics_nodes", "--node"

_HELP = f"""\
usage: {_NAME} {_NODE} [-r FROM:=TO] [--params-file FILE] [-p NAME:=VALUE] … [{_NODE} …] …

Several dynamics nodes in one process. The arguments after each {_NODE} are those that dynamics_node takes after
--ros-args, for one node; its help lists topics and parameters. Nodes need different namespaces or names. The
parameters executor and realtime_priority of the first node hold for the process.

examples:
  {_NAME} {_NODE} -r __ns:=/left --params-file left.yaml {_NODE} -r __ns:=/right --params-file right.yaml
"""


def read_nodes(arguments: Sequence[str]) -> list[list[str]]:
    """Return the arguments of each node."""
    groups: list[list[str]] = []
    for argument in arguments:
        if argument == _NODE:
            groups.append([])
        elif not groups:
            raise ValueError(f"arguments of a node follow {_NODE}, but {argument} comes first; see --help")
        else:
            groups[-1].append(argument)
    if not groups:
        raise ValueError(f"there is no node: {_NODE} begins the arguments of each; see --help")
    return groups


def _make(groups: list[list[str]], stop: StopSignals) -> list[DynamicsNode]:
    """Create the nodes."""
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    nodes: list[DynamicsNode] = []
    for number, group in enumerate(groups, 1):
        which = f"node {number} ({' '.join([_NODE, *group])})"
        try:
            node = DynamicsNode(stop, cli_args=["--ros-args", *group], use_global_arguments=False)
        except _rclpy.UnknownROSArgsError:
            raise RuntimeError(f"{which}: unknown arguments; see --help") from None
        except (InvalidNamespaceException, *CANNOT_START) as error:
            raise RuntimeError(f"{which}: {error}") from None
        name = node.get_fully_qualified_name()
        if any(name == other.get_fully_qualified_name() for other in nodes):
            raise RuntimeError(f"two nodes have the name {name}: give each a namespace, such as -r __ns:=/left")
        nodes.append(node)
    return nodes


def main(args: list[str] | None = None) -> int:
    """Run the nodes until SIGINT, SIGTERM or shutdown; return 1 if one cannot start, 2 for wrong arguments."""
    arguments = (sys.argv if args is None else args)[1:]
    if {"-h", "--help"} & set(arguments):
        print(_HELP, end="")
        return 0
    try:
        groups = read_nodes(arguments)
    except ValueError as error:
        print(f"{_NAME}: {error}", file=sys.stderr)
        return 2
    return run_together(_NAME, lambda stop: _make(groups, stop))


if __name__ == "__main__":
    sys.exit(main())
