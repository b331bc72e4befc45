# SPDX-License-Identifier: Apache-2.0
"""Pages of ``docs/reference/``: Python API, interfaces, parameters, command line, robot file, and examples.

They are written from the code at each build of the documentation (``docs/conf.py``), so that none is kept by hand.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import itertools
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "eom_dynamics"
ADDITIONAL = ("robot.solids", "tools.replay")
"""Modules with a page beside the subpackages that list their names in ``__all__``."""

TYPES = (
    *("actuators.springs.base.Spring", "actuators.springs.coupled.CoupledSpring"),
    *("actuators.parallel_springs.spring.ParallelSpring", "actuators.drive_units.DriveUnits"),
    *("elastic.bounds.Bounds", "elastic.motor_side.MotorSide", "equations.system.SystemMatrices"),
    *("identification.choice.Trial", "identification.estimators.Estimate"),
    *("identification.excitation_information.Information", "identification.filtering.Filter"),
    *("identification.filtering.FilteredSamples", "identification.motor.GearFit"),
    *("identification.resonance.FrequencyResponse", "identification.springs.CoupledSpringFit"),
    *("jet.Jet", "kinematics.tracking.ToolTracker"),
    *("recursion.links.Moments", "recursion.passive_efforts.PassiveJoint", "robot.model.RotorMount"),
    *("simulation.arms.End", "simulation.elastic_plant.State"),
    *("simulation.simulated_robot.Readings", "simulation.simulated_robot.SensorNoise"),
    *("tools.replay.batch.Refusals", "tools.replay.conventions.Conventions", "tools.robot_options.RobotOptions"),
    *("trajectory.quantities.Load", "trajectory.trajectory.Interval"),
)
"""Types of arguments, results and attributes of public names that are not public names themselves."""

_SUBPACKAGES = """\
Names of its subpackages
------------------------

The package has these, too: ``eom.load_robot``. Each is described with its subpackage.
"""

INTERFACES = {"msg": "Messages", "srv": "Services", "action": "Actions"}

PROJECT = {
    "changelog.rst": "CHANGELOG.rst",
    "contributing.md": "CONTRIBUTING.md",
    "quality.md": "QUALITY_DECLARATION.md",
}
"""Files of the repository that are pages, too."""

NODES = {
    "dynamics": ("eom_dynamics", "dynamics_node"),
    "planning": ("eom_dynamics_planning", "planning_node"),
    "simulated_robot": ("simulated_robot", "simulated_robot_node"),
}
"""Name and executable of each node, by the folder of its table of parameters."""


def write(folder: Path) -> None:
    """Write all pages into a folder; leave those alone that have not changed, which Sphinx then does not read again."""
    wanted = pages()
    for path in [each for each in folder.rglob("*") if each.is_file() and str(each.relative_to(folder)) not in wanted]:
        path.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Text of each page by its name in the folder."""
    modules = public_modules()
    found = {f"python/{name}.rst": module_page(name) for name in modules}
    found["python/types.rst"] = type_page()
    found["python.md"] = _python_index(modules)
    for kind, title in INTERFACES.items():
        found[f"{kind}.md"] = interface_page(kind, title)
    found["parameters.md"] = parameter_page()
    found["command_line.md"] = command_page()
    found["robot_file.md"] = robot_file_page()
    found["examples.md"] = example_page()
    for name, path in PROJECT.items():
        found[name] = (ROOT / path).read_text(encoding="utf-8")
    return found


# --- Python ------------------------------------------------------------------------------


def public_modules() -> list[str]:
    """The package, and its modules that people import from."""
    rooms = [path.parent.name for path in sorted(PACKAGE.glob("*/__init__.py")) if "__all__" in path.read_text("utf-8")]
    return ["eom_dynamics", *(f"eom_dynamics.{name}" for name in sorted({*rooms, *ADDITIONAL}))]


def public_names(module: ModuleType) -> list[str]:
    """Names of ``__all__``; of a module without it, its own classes and functions."""
    if names := getattr(module, "__all__", None):
        return list(names)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return sorted(name for name in own if not name.startswith("_"))


def module_page(name: str) -> str:
    """Docstring of a module, and the entries of its names; those of the package that a subpackage has are links."""
    module = importlib.import_module(name)
    subpackages = [] if name != "eom_dynamics" else [importlib.import_module(each) for each in public_modules()[1:]]
    sections: dict[str, list[str]] = {"Classes": [], "Functions": [], "Exceptions and warnings": [], "Constants": []}
    elsewhere = []
    for each in public_names(module):
        value = getattr(module, each)
        if inspect.ismodule(value):
            continue
        homes = [other.__name__ for other in subpackages if getattr(other, "__all__", ()) and each in other.__all__]
        homes = [home for home in homes if getattr(importlib.import_module(home), each) is value]
        if homes:
            elsewhere.append((each, homes[0], value))
        elif inspect.isclass(value) and issubclass(value, BaseException):
            sections["Exceptions and warnings"].append(f".. autoexception:: {name}.{each}\n   :show-inheritance:\n")
        elif inspect.isclass(value):
            sections["Classes"].append(f".. autoclass:: {name}.{each}\n   :members:\n{_inherited(value)}")
        elif inspect.isroutine(value) or hasattr(value, "cache_info"):
            sections["Functions"].append(f".. autofunction:: {name}.{each}\n")
        else:
            about = constant_docstring(module, each).replace("\n", "\n   ")
            sections["Constants"].append(f".. py:data:: {each}\n   :module: {name}\n\n   {about}\n")
    title = name
    parts = [f"{title}\n{'=' * len(title)}\n\n.. automodule:: {name}\n"]
    if elsewhere:
        parts.append(_SUBPACKAGES)
        parts.append(".. list-table::\n   :widths: 40 60\n")
        for each, home, value in elsewhere:
            parts.append(f"   * - :obj:`{each} <{home}.{each}>`\n     - {_summary(value)}")
        parts.append("")
    for title, entries in sections.items():
        if entries:
            parts.append(f"{title}\n{'-' * len(title)}\n")
            parts += entries
    return "\n".join(parts)


def type_page() -> str:
    """Types that public names refer to."""
    title = "Types of arguments and results"
    entries = []
    for each in TYPES:
        module, _, name = f"eom_dynamics.{each}".rpartition(".")
        kind = getattr(importlib.import_module(module), name)
        if inspect.isclass(kind):
            entries.append(f".. autoclass:: {module}.{name}\n   :members:\n")
        else:
            entries.append(f".. autodata:: {module}.{name}\n   :no-value:\n")
    about = "You meet these as attributes, arguments and results of the public names; where they are may change.\n"
    return "\n".join([f"{title}\n{'=' * len(title)}\n\n{about}", *entries])


def constant_docstring(module: ModuleType, name: str) -> str:
    """The string after the assignment of a name, in the module that it is imported from."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and name in [alias.asname or alias.name for alias in node.names]:
            (alias,) = (alias for alias in node.names if name == (alias.asname or alias.name))
            origin = importlib.import_module("." * node.level + (node.module or ""), module.__name__)
            return constant_docstring(origin, alias.name)
    for node, after in itertools.pairwise(tree.body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = {each.id for target in targets if target for each in ast.walk(target) if isinstance(each, ast.Name)}
        if name in names and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return inspect.cleandoc(str(after.value.value))
    raise LookupError(f"{module.__name__}.{name} has no docstring")


def _inherited(kind: type) -> str:
    """The option for methods of base classes that have no entry of their own."""
    own = [base for base in kind.__mro__[1:] if base.__module__.startswith("eom_dynamics")]
    return "   :inherited-members: tuple, Protocol, Generic\n" if own else ""


def _summary(value: object) -> str:
    text = inspect.getdoc(value) or ""
    line = " ".join(text.partition("\n\n")[0].split())
    return re.sub(r":\w+:`[~.]*([^`<]*?)`", r"``\1``", line)


def _python_index(modules: list[str]) -> str:
    rows = []
    for name in modules:
        summary = _summary(importlib.import_module(name))
        summary = re.sub(r"``(.*?)``", r"`\1`", summary)
        rows.append(f"| [`{name}`](python/{name}.rst) | {summary} |")
    rows.append("| [types](python/types.rst) | Types of their arguments and results |")
    entries = "\n".join(f"python/{name}" for name in [*modules, "types"])
    return (
        "# Python API\n\nWritten from the docstrings of all public names: those of `__all__`. "
        "[Arguments and results](../signatures.md) of the compiled methods have tables of their own.\n\n"
        "| module | |\n|---|---|\n" + "\n".join(rows) + f"\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    )


# --- ROS 2 -------------------------------------------------------------------------------


def interface_page(kind: str, title: str) -> str:
    """All interfaces of a kind, as their files have them."""
    parts = [f"# {title}\n"]
    for path in sorted((ROOT / kind).glob(f"*.{kind}")):
        lines = path.read_text(encoding="utf-8").splitlines()[1:]  # without the line of the license
        start = next(number for number, line in enumerate(lines) if not line.startswith("#"))
        about = "\n".join(line.removeprefix("#").strip() for line in lines[:start])
        text = "\n".join(lines[start:]).strip()
        parts.append(
            f"## {path.stem}\n\n`eom_dynamics/{kind}/{path.stem}`\n\n{_escaped(about)}\n\n```text\n{text}\n```\n"
        )
    return "\n".join(parts)


def parameter_page() -> str:
    """Parameters of the nodes, from the tables by which they declare them."""
    parts = [
        "# Parameters of the nodes\n\nWritten from the tables by which the nodes declare and check them. Those of a"
        " robot, `robot.*` and `urdf.*`, are the entries of the [robot file](robot_file.md).\n"
    ]
    for folder, (node, program) in NODES.items():
        table = importlib.import_module(f"eom_dynamics.ros.{folder}.{folder}_parameters").TABLE
        parts.append(f"## Node {node}\n\nExecutable `{program}`.\n")
        parts.append("| parameter | |\n|---|---|")
        for name, each in sorted(table.items()):
            notes = [f"Default: {_default(each.default)}"]
            if each.choices:
                notes.append("one of " + ", ".join(f"`{choice}`" for choice in each.choices))
            if each.limits:
                notes.append(f"from {each.limits[0]:g} to {each.limits[1]:g}")
            if each.read_only:
                notes.append("set at startup only")
            parts.append(f"| `{name}` | {_escaped(each.description)}.<br>{'; '.join(notes)}. |")
        parts.append("")
    return "\n".join(parts)


def _default(value: object) -> str:
    if value == "":
        return "empty"
    if isinstance(value, (bool, int, float, str)):
        return f"`{str(value).lower() if isinstance(value, bool) else value}`"
    return f"none ({getattr(value, 'name', str(value)).lower().replace('_', ' ')})"


# --- Command line and files --------------------------------------------------------------


def command_page() -> str:
    """Commands and their options, from the parsers."""
    from eom_dynamics.tools.cli.main import _parser

    (commands,) = (each for each in _parser()._actions if isinstance(each, argparse._SubParsersAction))
    parts = [
        "# Commands and options\n\nWritten from the parsers of the command line; `eom_dynamics COMMAND --help` prints"
        " the same. [Command line](../command_line.md) has the common rules, and examples.\n"
    ]
    for name, parser in commands.choices.items():
        parts.append(f"## {name}\n\n{_escaped(parser.description or '')}\n")
        for group in parser._action_groups:
            shown = [each for each in group._group_actions if each.dest != "help" and each.help != argparse.SUPPRESS]
            if shown:
                parts.append(f"| {group.title} | |\n|---|---|")
                parts += [f"| {_option(each)} | {_escaped(_help(parser, each))} |" for each in shown]
                parts.append("")
    return "\n".join(parts)


def _option(action: argparse.Action) -> str:
    metavar = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    value = "" if action.nargs == 0 else " ".join(metavar) if isinstance(metavar, tuple) else str(metavar)
    names = [f"{name} {value}".strip() for name in action.option_strings] or [value]
    return "<br>".join(f"`{name}`".replace("|", r"\|") for name in names)


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""


def robot_file_page() -> str:
    """The commented file of ``eom_dynamics inspect --template``."""
    from eom_dynamics.tools.inspect.template import TEMPLATE

    return (
        "# Robot file\n\nAll entries of a parameter file of a robot, as `eom_dynamics inspect --template` prints them;"
        " entries that are commented out are optional. [Load your robot](../robots.md) explains them,"
        " [Actuators](../actuators.md) those of springs and motors.\n\n"
        f"```yaml\n{TEMPLATE.rstrip()}\n```\n"
    )


def example_page() -> str:
    """The Python files of ``examples/``."""
    parts = ["# Examples\n\nThe files of the folder `examples`; each of them runs as it is, and in the tests.\n"]
    for path in sorted((ROOT / "examples").glob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        code = "\n".join(line for line in lines if not line.startswith(("# SPDX", "#!"))).strip()
        parts.append(f"## {path.name}\n\n```python\n{code}\n```\n")
    return "\n".join(parts)


def _escaped(text: str) -> str:
    """Text of a docstring or comment as Markdown."""
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    parts = re.split(r"(`[^`]*`)", text)
    plain = [re.sub(r"([*_<|\[\]])", r"\\\1", part) for part in parts[::2]]
    parts[::2] = plain
    return "".join(part.replace("|", r"\|") if number % 2 else part for number, part in enumerate(parts))
