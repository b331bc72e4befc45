# SPDX-License-Identifier: Apache-2.0
"""Steps of a set-up that run only when what they depend on has changed."""

import hashlib
import itertools
import subprocess
import time
from pathlib import Path

LOG_TAIL_LINES = 30


class StepError(Exception):
    """A command of a step failed; the message says which one and where its output is."""


class Step:
    """One step: commands, and the inputs that make it stale."""

    def __init__(self, name, title, commands, inputs):
        """Name the step's log and stamp `name`. Of an input that is a Path the content counts too."""
        self.name = name
        self.title = title
        self.commands = commands
        self.inputs = inputs


class Setup:
    """Steps in order, with their logs and stamps in one folder."""

    def __init__(self, steps, folder):
        """Stamps hold a digest of the inputs of the step and of the steps before it."""
        self.steps = steps
        self.folder = folder
        self._digests = {}
        digest = hashlib.sha256()
        for step in steps:
            for part in step.inputs:
                content = part.read_bytes() if isinstance(part, Path) else b""
                digest.update(b"\0" + str(part).encode() + b"\0" + content)
            self._digests[step.name] = digest.hexdigest()

    def was_done(self, step):
        """Tell whether the step once came to its end, be it with other inputs."""
        return self._stamp(step).is_file()

    def is_fresh(self, step):
        """Tell whether the step came to its end with the inputs of now."""
        return self.was_done(step) and self._stamp(step).read_text() == self._digests[step.name]

    def forget(self, step):
        """Make the step run next time, even if its inputs are the same."""
        self._stamp(step).unlink(missing_ok=True)

    def run(self, environment):
        """Run the steps from the first that is not fresh, with a progress line each; return how many ran."""
        fresh = list(itertools.takewhile(self.is_fresh, self.steps))
        stale = self.steps[len(fresh) :]
        for number, step in enumerate(stale, start=len(fresh) + 1):
            print(f"[{number}/{len(self.steps)}] {step.title} … ", end="", flush=True)
            start = time.monotonic()
            self._run(step, environment)
            print(f"{time.monotonic() - start:.0f} s", flush=True)
        return len(stale)

    def _run(self, step, environment):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.forget(step)  # an interrupted step counts as not done
        log_path = self.folder / f"{step.name}.log"
        with log_path.open("w") as log:
            for command in step.commands:
                if subprocess.run(command, stdout=log, stderr=log, env=environment).returncode:
                    raise StepError(_failure(command, log_path))
        self._stamp(step).write_text(self._digests[step.name])

    def _stamp(self, step):
        return self.folder / f"{step.name}.stamp"


def _failure(command, log_path):
    tail = log_path.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
    shown = " ".join(map(str, command))
    return "\n".join(["failed", *tail, "", f"This command failed: {shown}", f"All of its output: {log_path}"])
