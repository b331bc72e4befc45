# SPDX-License-Identifier: Apache-2.0
"""Steps of a setup; each runs only after a change of its inputs."""

import hashlib
import itertools
import subprocess
import time
from pathlib import Path

LOG_TAIL_LINES = 30

# Messages of pip without access to an index: while it retries, and at the end, when it has found no version.
UNREACHABLE = ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "ProxyError", "ReadTimeoutError")
NOT_FOUND = ("No matching distribution found", "Max retries exceeded", "Could not install packages")


class StepError(Exception):
    """A failed command; the message names it and the file with its output."""


class Step:
    """Commands, with the inputs that trigger them."""

    def __init__(self, name, title, commands, inputs):
        """Name log and stamp `name`, and show `title` as progress. The content of an input Path counts."""
        self.name = name
        self.title = title
        self.commands = commands
        self.inputs = inputs


class Setup:
    """Steps in order, with their logs and stamps in one folder."""

    def __init__(self, steps, folder):
        """Compute a digest for each step from the inputs of this step and all earlier steps; stamps store it."""
        self.steps = steps
        self.folder = folder
        self._digests = {}
        digest = hashlib.sha256()
        for step in steps:
            for part in step.inputs:
                content = part.read_bytes() if isinstance(part, Path) else b""
                digest.update(b"\0" + str(part).encode() + b"\0" + content)
            self._digests[step.name] = digest.hexdigest()

    def is_fresh(self, step):
        """Return whether the step has completed with its present inputs."""
        stamp = self._stamp(step)
        return stamp.is_file() and stamp.read_text() == self._digests[step.name]

    def run(self, environment):
        """Run the steps from the first that is not fresh, each with a line of progress; return how many ran."""
        fresh = list(itertools.takewhile(self.is_fresh, self.steps))
        stale = self.steps[len(fresh) :]
        for number, step in enumerate(stale, start=len(fresh) + 1):
            print(f"[{number}/{len(self.steps)}] {step.title} … ", end="", flush=True)
            start = time.monotonic()
            self._run(step, environment)
            print(f"{time.monotonic() - start:.0f} s", flush=True)
        return len(stale)

    def remove(self, environment, reason):
        """Remove the environment of these steps, which contains their folder; StepError for any other environment."""
        if environment.is_symlink() or (any(environment.iterdir()) and not self.folder.is_dir()):
            raise StepError(f"{environment}: was not made by make; move it elsewhere, or remove it, and run make again")
        print(f"Removing {environment.name}: {reason}", flush=True)
        # Stamps first, their folder last: an interrupted removal leaves an incomplete environment that is still known.
        others = [path for path in environment.iterdir() if path != self.folder]
        subprocess.run(["rm", "-rf", *self.folder.glob("*.stamp"), *others, environment], check=True)

    def _run(self, step, environment):
        self.folder.mkdir(parents=True, exist_ok=True)
        self._stamp(step).unlink(missing_ok=True)  # so that an interrupted step runs again
        log_path = self.folder / f"{step.name}.log"
        with log_path.open("w") as log:
            for command in step.commands:
                if subprocess.run(command, stdout=log, stderr=log, env=environment).returncode:
                    raise StepError(_failure(command, log_path))
        self._stamp(step).write_text(self._digests[step.name])

    def _stamp(self, step):
        return self.folder / f"{step.name}.stamp"


def _failure(command, log_path):
    lines = log_path.read_text(errors="replace").splitlines()
    if any(text in line for line in lines for text in UNREACHABLE) and any(text in lines[-1] for text in NOT_FOUND):
        return (
            f"failed: no package index can be reached; connect, or name a mirror in PIP_INDEX_URL. Output: {log_path}"
        )
    tail = lines[-LOG_TAIL_LINES:]
    shown = " ".join(map(str, command))
    return "\n".join(["failed", *tail, "", f"This command failed: {shown}", f"Its whole output: {log_path}"])
