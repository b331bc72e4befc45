# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration: the same site for ``make docs``, Read the Docs, GitHub Pages and rosdoc2.

It builds offline. Without latex2mathml or furo, as on machines that have rosdoc2 only, MathJax and the theme that is
there take their places.
"""

import configparser
import importlib.util
import posixpath
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.ext.autodoc.mock import mock
from sphinx.util import logging
from sphinx.util.inspect import TypeAliasForwardRef

# rosdoc2 builds a copy of this folder, and has the package on the path.
_HERE = Path(__file__).resolve().parent
if (_HERE.parent / "package.xml").exists():
    sys.path.insert(0, str(_HERE.parent))

import eom_dynamics

_ROOT = Path(eom_dynamics.__file__).resolve().parents[1]
sys.path.insert(0, str(_ROOT / "scripts"))

import reference_pages

_setup = configparser.ConfigParser()
_setup.read(_ROOT / "setup.cfg", encoding="utf-8")
# Of a release alone: elsewhere, names of files have no links.
_sources = _setup["metadata"].get("url", "")


def _installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in modules)


project = "eom_dynamics"
author = _setup["metadata"]["author"]
copyright = f"{author}. Apache-2.0"
version = release = eom_dynamics.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
if _installed("sphinx_codeautolink"):  # names in blocks of Python lead to their entries
    extensions.append("sphinx_codeautolink")
    codeautolink_concat_default = True  # blocks of a page share the imports of earlier blocks
html_math_renderer = "mathml" if _installed("latex2mathml") else "mathjax"
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
exclude_patterns = ["_build", "Thumbs.db"]
nitpicky = True
# Without inventories of other projects, which are on the web, and for names of types alone.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!eom_dynamics\.|\.).*"),
    # Types of arguments and results that are no public names.
    (r"py:class", r"eom_dynamics\..*"),
]

autoclass_content = "both"
autodoc_member_order = "bysource"
# The tables of parameters are in modules of nodes.
_ros = ("action_msgs", "builtin_interfaces", "diagnostic_msgs", "geometry_msgs", "lifecycle_msgs", "rcl_interfaces")
_ros += ("rclpy", "rosgraph_msgs", "sensor_msgs", "std_msgs", "trajectory_msgs")
_ros += ("eom_dynamics.msg", "eom_dynamics.srv")
autodoc_mock_imports = [name for name in _ros if not _installed(name)]
autodoc_typehints = "signature"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Array": "Array"}
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # inside other types, such as tuple[Array, ...]
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# As lists, because Sphinx would read the first of several names in one field as the type of the last.
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_param = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

html_title = f"eom_dynamics {release}"
html_theme = next((name for name in ("furo", "sphinx_rtd_theme") if _installed(name)), "alabaster")
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(_HERE / "_static" / "search_scores.js")
html_show_sourcelink = False
html_copy_source = False
if html_theme == "furo":
    html_theme_options = {"navigation_with_keys": True}
    pygments_dark_style = "monokai"

rosdoc2_settings = {"override_theme": False, "enable_breathe": False, "enable_exhale": False}

# A file of the repository that a page links to, and the place of the site that has its text.
_LINK = re.compile(r"\[([^]]*)\]\((\.\./[^)#\s]+)\)")
_INTERFACE = re.compile(r"(msg|srv)/(\w+)\.\1")
_EXAMPLE = re.compile(r"examples/(?:drivers/)?(\w+)\.py")
_FIGURES = re.compile(r"bench/results/(\w+)\.md")
# Sources of generated pages: pages link to these, which exist before the site is built.
_GENERATED = {
    "eom_dynamics/__init__.py": "python.md",
    "eom_dynamics/control/eom/state_machine.hpp": "states.md",
    "eom_dynamics/dynamics.py": "signatures.md",
    "eom_dynamics/floating_base.py": "python/eom_dynamics.rst",
    "eom_dynamics/robot/model.py": "robot_file.md",
    "eom_dynamics/robot/readers/loading.py": "python/eom_dynamics.rst",
    "eom_dynamics/ros/parameter_tables.py": "parameters.md",
    **{f"eom_dynamics/ros/{node}.py": f"parameters.md#{node}" for node in reference_pages.NODES},
    "eom_dynamics/tools/cli": "command_line.md",
    **{kind: f"{kind}.md" for kind in ("msg", "srv", "examples")},
}


def _link_to_sources(app, name, source):
    """Send links to files outside of this folder to the pages that have their text, else to the repository."""
    folder, up = posixpath.join("docs", posixpath.dirname(name)), "../" * name.count("/")

    def target(match):
        path = posixpath.normpath(posixpath.join(folder, match[2]))
        if path.startswith("docs/"):
            return match[0]
        if not (_ROOT / path).exists():
            logging.getLogger(__name__).warning("%s links to %s, which does not exist", name, path)
        if path in _GENERATED:
            return f"[{match[1]}]({up}reference/{_GENERATED[path]})"
        if interface := _INTERFACE.fullmatch(path):
            return f"[{match[1]}]({up}reference/{interface[1]}.md#{interface[2].lower()})"
        if example := _EXAMPLE.fullmatch(path):
            return f"[{match[1]}]({up}reference/examples.md#{example[1]}py)"
        if figures := _FIGURES.fullmatch(path):
            return f"[{match[1]}]({up}reference/figures/{figures[1]}.md)"
        return f"[{match[1]}]({_sources}/blob/main/{path})" if _sources else match[1]

    if app.env.doc2path(name).suffix == ".md" and not name.startswith("reference/"):
        source[0] = _LINK.sub(target, source[0])


# Equations of the paper in docstrings: "equation (27)", "equations (35)-(60)"; not equations of other sources.
_EQUATIONS = re.compile(
    r"(?<!`)\b([Ee]quations? \((\d+)\)(?:(?:-|–|, | and | to )\(\d+\))*)(?! of (?!A\. Müller|Müller))"
)


def _link_equations(app, what, name, thing, options, lines):
    """Send each number of an equation to its place on the page of equations."""
    text = "\n".join(lines)
    lines[:] = _EQUATIONS.sub(r":ref:`\1 <equation-\2>`", text).split("\n")


def _prepare(app, what, name, thing, options, lines):
    """Keep napoleon from reading a property's words before the first colon as its type; drop empty entries."""
    if what in ("attribute", "data", "property"):
        lines.insert(0, "\\")  # with the end of the line, nothing
    lines[:] = [line for line in lines if not line.startswith("Create new instance of ")]


def _skip_fields(app, what, name, thing, skip, options):
    """Omit the fields of named tuples, which the attributes of the docstring describe."""
    return True if (getattr(thing, "__doc__", None) or "").startswith("Alias for field number") else None


# A name in prose: eom.Dynamics, `Kinematics.pose`, `load_robot(…)`.
_NAME = re.compile(r"(?:eom\.|eom_dynamics\.)?([A-Za-z]\w*(?:\.\w+)*)(?:\(.*\))?")
_CALLED = ("class", "exception", "function", "method")


def _link_names(app, doctree, page):
    """Link names of functions, classes and methods in prose to their entries, if they have one."""
    if page.startswith("reference/"):
        return
    entries = app.env.get_domain("py").objects
    for literal in list(doctree.findall(nodes.literal)):
        name = _NAME.fullmatch(literal.astext())
        if not name or isinstance(literal.parent, (nodes.reference, nodes.title)):
            continue
        # A word in small letters may be an argument, or a field of a message, and so may the name of a method.
        kinds = _CALLED if re.search(r"[A-Z.(]", name[0]) else ("function",) if "_" in name[0] else ()
        places = {
            (entry.docname, entry.node_id)
            for path, entry in entries.items()
            if path.endswith(f".{name[1]}") and entry.objtype in kinds and not entry.aliased
        }
        if len(places) == 1:
            ((there, place),) = places
            link = nodes.reference(refuri=f"{app.builder.get_relative_uri(page, there)}#{place}", internal=True)
            literal.replace_self(link)
            link += literal


def _write_pages(app):
    with mock(app.config.autodoc_mock_imports):
        reference_pages.write(Path(app.srcdir) / "reference")
    figures = Path(app.srcdir) / "reference" / "figures"
    figures.mkdir(exist_ok=True)
    for page in (_ROOT / "bench" / "results").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        (figures / page.name).write_text(f"---\norphan: true\n---\n\n{text}", encoding="utf-8")


def _inline_mathematics(translator, node):
    _mathematics(translator, node, "inline")


def _block_mathematics(translator, node):
    _mathematics(translator, node, "block")


def _mathematics(translator, node, display):
    from docutils.nodes import SkipNode
    from latex2mathml.converter import convert

    markup = convert(node.astext(), display=display)
    translator.body.append(markup if display == "inline" else f'<div class="math">{markup}</div>\n')
    raise SkipNode


def setup(app):
    """Write the generated pages, and typeset mathematics as MathML, which needs no script and no network."""
    app.connect("builder-inited", _write_pages)
    app.connect("source-read", _link_to_sources)
    app.connect("autodoc-process-docstring", _prepare, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", _link_equations)
    app.connect("autodoc-skip-member", _skip_fields)
    app.connect("doctree-resolved", _link_names)
    if app.config.html_math_renderer == "mathml":
        app.add_html_math_renderer("mathml", (_inline_mathematics, None), (_block_mathematics, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
