# SPDX-License-Identifier: Apache-2.0
"""Pages of ``docs/reference/``: Python API, interfaces, parameters, command line, robot file, and examples.

The code generates them at each build of the documentation (``docs/conf.py``), so they are not edited by hand.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import eom_dynamics as eom
from eom_dynamics.actuators.parameters import declared_entries

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "eom_dynamics"
ADDITIONAL = ("robot.solids", "tools.replay", "constraints", "loops")
"""Modules with their own page, in addition to subpackages with names in ``__all__``."""

_SIGNATURES = """\
# Arguments and results of compiled methods

`signature(method)` of an object returns the table for its robot. Shapes are for one state, with n joints, m motors and
B bodies; a batch has a leading axis N. Names with a colon are entries of a keyword argument; omitted last entries are
zero. Names after an arrow are results. Methods with any number of rates are shown with one.
"""

_STATES = """\
# States of the control loop

The loop has one of six states, in addition to its control mode: position, impedance, or gravity compensation (hand
guiding). A pause is a trajectory at a pace of 0, and a retraction is a motion
to a target. `phase` and `cause` of the loop's record are row numbers below, from 0.

| event | ROS 2 interface of the node |
|---|---|
| setpoint | topic `setpoint` |
| target | topics `target`, `target_trajectory` |
| trajectory, empty | topics `joint_trajectory` and `spline_trajectory`, action `~/follow_joint_trajectory` |
| pause, resume | service `~/pause` |
| stop | no topic: deactivation, shutdown |
| hands, mode | parameter `mode` |
"""

INTERFACES = {"msg": "Messages", "srv": "Services"}

PROJECT = {
    "changelog.rst": "CHANGELOG.rst",
    "contributing.md": "CONTRIBUTING.md",
    "quality.md": "QUALITY_DECLARATION.md",
}
"""Files of the repository that are also pages."""


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
    found["python.md"] = _python_index(modules)
    for kind, title in INTERFACES.items():
        found[f"{kind}.md"] = interface_page(kind, title)
    found["signatures.md"] = signature_page()
    found["command_line.md"] = command_page()
    found["parameters.md"] = parameter_page()
    found["robot_file.md"] = robot_file_page()
    found["states.md"] = state_page()
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
    """Docstring of a module, and entries of its names; names that a subpackage shares with the package are links."""
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
        parts.append("Names of its subpackages\n------------------------\n\n.. list-table::\n   :widths: 40 60\n")
        for each, home, value in elsewhere:
            parts.append(f"   * - :obj:`{each} <{home}.{each}>`\n     - {_summary(value)}")
        parts.append("")
    for title, entries in sections.items():
        if entries:
            parts.append(f"{title}\n{'-' * len(title)}\n")
            parts += entries
    return "\n".join(parts)


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
    entries = "\n".join(f"python/{name}" for name in modules)
    return (
        "# Python API\n\nAll public names (`__all__`), from their docstrings. "
        "[Arguments and results](signatures.md) has a table for each compiled method.\n\n"
        "| module | |\n|---|---|\n" + "\n".join(rows) + f"\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    )


# Numbers of rates of the methods that take any number of them.
_RATES = {
    **{"pose": 0, "motion": 1, "jacobian": 0, "jacobian_derivatives": 1, "center_of_mass": 0},
    **{"center_of_mass_derivatives": 1, "center_of_mass_jacobian": 0, "center_of_mass_jacobian_derivatives": 1},
}


def signature_page() -> str:
    """Arguments and results of the compiled methods, from their declarations."""
    # All sizes differ, so that each size stands for one name.
    robot = eom.load_robot("iiwa")
    joint = replace(robot.joints[0], spring=eom.load_robot("vsa_planar_2r").joints[0].spring)
    arm = eom.ElasticArm(replace(robot, joints=(joint, *robot.joints[1:])))
    sizes = {robot.n: "n", len(arm.motor_names): "m", robot.n + 6: "6 + n", 10 * len(robot.joints): "10 B"}
    parts = [_SIGNATURES]
    for subject in (eom.Dynamics(robot), arm, eom.Kinematics(robot), eom.FloatingBase(robot)):
        parts.append(f"## {type(subject).__name__}\n")
        compiled = [name for name, method in vars(type(subject)).items() if type(method).__name__ == "_StateMethod"]
        for method in (*compiled, *(name for name in _RATES if name in vars(type(subject)))):
            rates = (_RATES[method],) if method in _RATES else ()
            parts.append(f"### {method}\n\n| | shape | |\n|---|---|---|")
            for name, shape, about in subject.signature(method, *rates).table():
                named = re.sub(r"\d+", lambda size: sizes.get(int(size.group()), size.group()), shape)
                parts.append(f"| {name} | {named} | {about} |")
            parts.append("")
    return "\n".join(parts)


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


# --- Control loop ------------------------------------------------------------------------


def state_page() -> str:
    """States of the control loop, by the table that its code reads: ``control/eom/state_machine.hpp``."""
    from eom_dynamics.control.headers import source, table_rows

    text = source("state_machine.hpp")
    phases, causes, events, cells, bars = (
        [[field.strip('"') for field in row] for row in table_rows(text, f"EOM_{name}")]
        for name in ("PHASES", "CAUSES", "EVENTS", "CELLS", "BARS")
    )
    words, about = {row[0]: row[-1] for row in cells}, dict(events)
    head = "|---|" + "---|" * len(phases)
    parts = [
        _STATES,
        "| state | meaning |\n|---|---|",
        *(f"| {name} | {_escaped(text)} |" for name, text in phases),
        "\n| cause | setpoints are followed again | meaning |\n|---|---|---|",
        *(f"| {name} | {start.replace('_', ' ')} | {_escaped(text)} |" for name, start, text in causes),
        "\n*near*: within `start_tolerance` of the command; *near at rest*: the same, after the end of the stop.",
        "\n## Events\n\nEach row has the next state for an event, by the present state. A dash: the event cannot "
        "occur in this state.\n",
        "| event | " + " | ".join(name for name, _ in phases) + f" |\n{head}",
        *(
            f"| {event.replace('_', ' ')} | " + " | ".join(words[cell] for cell in row) + " |"
            for event, *row in table_rows(text, "EOM_TABLE")
        ),
        "\n| event | meaning |\n|---|---|",
        *(f"| {name.replace('_', ' ')} | {_escaped(text)} |" for name, text in about.items()),
        "\n## Refusals in any state\n\nBefore the table applies, the loop refuses an event by its first row here whose "
        "fact holds: a pause was asked for (*paused*); contact has stopped the arm (*touched*); an upstream controller "
        "is active (*led*); the arm is hand-guided (*by hand*); the arm is away from its command (*strays*).\n",
        "| event | fact | refusal |\n|---|---|---|",
        *(f"| {event} | {fact.replace('_', ' ')} | `{refusal}` |" for event, fact, refusal in bars),
        "",
    ]
    return "\n".join(parts)


# --- Command line and files --------------------------------------------------------------


def command_page() -> str:
    """Help of each command."""
    from eom_dynamics.tools.cli.main import _parser

    (commands,) = (each for each in _parser()._actions if isinstance(each, argparse._SubParsersAction))
    parts = ["# Commands and options\n\nSee [Command line](../command_line.md) for common rules and examples.\n"]
    for name, parser in commands.choices.items():
        parts.append(f"## {name}\n\n```text\n{parser.full_help()}```\n")
    return "\n".join(parts)


NODES = {"dynamics_node": "DYNAMICS", "planning_node": "PLANNING", "simulated_robot_node": "SIMULATED_ROBOT"}
"""Tables of parameters by the node that has them."""


def parameter_page() -> str:
    """Tables of topics, services and parameters of each node."""
    tables = importlib.import_module("eom_dynamics.ros.parameter_tables")
    parts = [
        "# Topics, services and parameters of the nodes\n\n`--help` of a node prints the same. Names are relative to "
        "the node's namespace; `~/` is the node name. *When* a parameter can change: at startup only, while the node "
        "is inactive, or always. For parameters of robots, see [robot file](robot_file.md).\n"
    ]
    for node, table in NODES.items():
        rows = ["| parameter | default | values | meaning | when |", "|---|---|---|---|---|"]
        for name, one in getattr(tables, table).items():
            default = one.default if isinstance(one.default, (bool, int, float, str)) else ""
            values = f"{one.limits[0]:g} to {one.limits[1]:g}" if one.limits else ", ".join(one.choices)
            shown = str(default).lower() if isinstance(default, bool) else str(default)
            rows.append(f"| `{name}` | {shown} | {_escaped(values)} | {_escaped(one.about)} | {one.when} |")
        topics = ["| name | | type | content |", "|---|---|---|---|", *_topics(node)]
        parts.append(f"## {node}\n\n" + "\n".join(topics) + "\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _topics(node: str) -> list[str]:
    """Rows of the topics, services and actions in the help of a node."""
    tree = ast.parse((PACKAGE / "ros" / f"{node}.py").read_text(encoding="utf-8"))  # an import would need ROS
    texts = [each.value for each in ast.walk(tree) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    text = next(filter(None, (each.partition("\ntopics")[2] for each in texts)))
    rows = []
    for name, way, kind, about in re.findall(r"^  (\S+) +(\S+) +([\w/]+)[,:]? ?(.*)$", text, re.MULTILINE):
        package, group, message = kind.split("/")
        link = f"[{message}]({group}.md#{message.lower()})" if package == "eom_dynamics" else f"`{package}/{message}`"
        rows.append(f"| `{name}` | {way} | {link} | {_escaped(about)} |")
    return rows


def robot_file_page() -> str:
    """The commented file of ``eom_dynamics inspect --template``, and a table of the entries that classes declare."""
    from eom_dynamics.robot.description import (
        BodyEntries,
        Description,
        JointDescription,
        OriginEntries,
        PayloadEntries,
        ToolEntries,
    )
    from eom_dynamics.tools.cli.inspect import TEMPLATE

    parts = {"": BodyEntries, "payloads.NAME": PayloadEntries, "tools.NAME": ToolEntries, "origin": OriginEntries}
    others = [row for name, kind in parts.items() for row in _entry_rows(kind, name)]
    head = "| entry | unit or values | default | meaning |\n|---|---|---|---|"
    return (
        "# Robot file\n\nAll entries of a robot file, as `eom_dynamics inspect --template` prints them."
        " Commented entries are optional. [Describe your robot](../robots.md) explains them,"
        " [Actuators](../actuators.md) the entries of springs and motors.\n\n"
        f"```yaml\n{TEMPLATE.rstrip()}\n```\n\n"
        f"## Joints\n\n{head}\n" + "\n".join(_entry_rows(JointDescription, "")) + "\n\n"
        f"## Bodies, payloads, tools and poses\n\n{head}\n" + "\n".join(others) + "\n\n"
        f"## Robot\n\n{head}\n" + "\n".join(_entry_rows(Description, "")) + "\n"
    )


def _entry_rows(kind: type, before: str) -> Iterator[str]:
    """Rows of the entries that a class and its parts declare."""
    for each in declared_entries(kind):
        name = ".".join(x for x in (before, each.entry.section, each.name) if x)
        if declared_entries(each.kind):
            yield from [] if each.entry.is_inline else [f"| `{name}` | | | {_escaped(each.entry.meaning)} |"]
            yield from _entry_rows(each.kind, before if each.entry.is_inline else name)
        elif not each.entry.is_inline:
            default = each.default
            known = isinstance(default, (str, float)) and str(default) not in ("nan", "inf", "-inf")
            values = " or ".join(f"`{x}`" for x in each.entry.options) or each.entry.unit
            yield f"| `{name}` | {values} | {default if known else ''} | {_escaped(each.entry.meaning)} |"


def example_page() -> str:
    """The Python files of ``examples/`` and ``examples/drivers/``."""
    about = "The files of the folder `examples` run without changes; `drivers/mit_mode.py` needs a CAN interface."
    parts = [f"# Examples\n\n{about}\n"]
    for path in [*sorted((ROOT / "examples").glob("*.py")), *sorted((ROOT / "examples" / "drivers").glob("*.py"))]:
        parts.append(f"## {path.name}\n\n```python\n{path.read_text(encoding='utf-8').strip()}\n```\n")
    return "\n".join(parts)


def _escaped(text: str) -> str:
    """Text of a docstring or comment as Markdown."""
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    parts = re.split(r"(`[^`]*`)", text)
    plain = [re.sub(r"([*_<|\[\]])", r"\\\1", part) for part in parts[::2]]
    parts[::2] = plain
    return "".join(part.replace("|", r"\|") if number % 2 else part for number, part in enumerate(parts))
