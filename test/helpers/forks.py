# SPDX-License-Identifier: Apache-2.0
"""Nodes as forks of a process that has imported their module, which takes most of the time of a start."""

import atexit
import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading

_LONGEST_REQUEST = 2**17


class Fork:
    """Forked process, with attributes and methods as :class:`subprocess.Popen`."""

    def __init__(self, report):
        self._report = open(report, "rb", buffering=0)  # noqa: SIM115 (closed with the process)
        self.returncode = None
        self.pid = int(self._report.readline())

    def poll(self):
        return self._ended(0)

    def wait(self, timeout=None):
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return self.returncode

    def send_signal(self, number):
        # It may have ended, and its exit code be on its way.
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout):
        if self.returncode is None and select.select([self._report], [], [], timeout)[0]:
            self.returncode = int(self._report.readline())
            self._report.close()
        return self.returncode


class ForkServer:
    """The process that forks for main functions of modules, which it imports once, each with the first fork for it."""

    def __init__(self):
        self._socket, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            paths = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._process = subprocess.Popen([sys.executable, __file__], stdin=theirs, env=paths)
        atexit.register(self._end)

    def start(self, module, arguments, folder, log, errors=None, patch="", environment=None):
        """Run the function of a module with arguments in an environment, after the code of a patch.

        ``log`` receives its stdout, and its stderr unless ``errors`` is given.
        """
        arguments, environment = list(map(str, arguments)), environment or dict(os.environ)
        request = json.dumps([module, arguments, str(folder), environment, patch]).encode()
        assert len(request) < _LONGEST_REQUEST, "too long a command line"
        receive, send = os.pipe()
        socket.send_fds(self._socket, [request], [log.fileno(), (errors or log).fileno(), send])
        os.close(send)
        return Fork(receive)

    def _end(self):
        self._socket.close()
        self._process.wait()


# Late imports of modules.
_LATER = {"eom_dynamics.ros.dynamics_node": "eom_dynamics.ros.dynamics.node"}


def _serve(requests):
    """Answer requests, each with a line with the process id and a line with the exit code; return only in forks."""
    while True:
        request, (*descriptors,), *_ = socket.recv_fds(requests, _LONGEST_REQUEST, 3)
        if not request:
            sys.exit()
        with contextlib.suppress(Exception):  # which the fork raises again
            module = json.loads(request)[0]
            importlib.import_module(module)
            importlib.import_module(_LATER.get(module, module))
        if os.fork():
            for descriptor in descriptors:
                os.close(descriptor)
            while _reaped():
                pass
            continue
        log, errors, report = descriptors
        if pid := os.fork():
            os.write(report, b"%d\n" % pid)
            _, status = os.waitpid(pid, 0)
            os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
            os._exit(0)
        os.close(report)
        for standard, stream in ((1, log), (2, errors)):
            os.dup2(stream, standard)
            os.close(stream)
        return json.loads(request)


def _reaped():
    try:
        return os.waitpid(-1, os.WNOHANG)[0]
    except ChildProcessError:
        return 0


def _main():
    with socket.socket(fileno=0) as requests:
        module, arguments, folder, environment, patch = _serve(requests)
    os.open(os.devnull, os.O_RDONLY)  # as standard input
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv[1:] = arguments
    exec(patch, {})
    try:
        sys.exit(importlib.import_module(module).main())
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        _end(end.code if isinstance(end.code, int) else end.code is not None)


def _end(code):
    """End as Python does, but without the destructors of libraries.

    The destructor of lttng-ust, which rclpy loads, cancels its threads. A fork does not have them, and after it has
    freed their stacks, this is a segmentation fault.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _main()
