# SPDX-License-Identifier: Apache-2.0
"""The map of the five texts, docs/texts.md, and the equations of Müller and Kumar, docs/equations.md.

What the texts have is listed here, by numbers, titles and sections. The map must have each item, with names
that answer. :mod:`test.equations.test_paper_numbers` checks the equations by evaluation.
"""

import inspect
import re
from types import SimpleNamespace

import numpy as np
import pytest
from differences import deviation
from page_links import attribute, public_names
from paths import DOCS, ROOT

import eom_dynamics as eom

MAP = (DOCS / "texts.md").read_text(encoding="utf-8")
EQUATIONS = (DOCS / "equations.md").read_text(encoding="utf-8")

PAPER = range(1, 68)  # numbers of the paper's equations
ZHANG = range(1, 269)

SLIDES_OF_XIANG = """
Robot Dynamics; Forward and Inverse Dynamics; N-link open chain; Newton-Euler Inverse Dynamics Algorithm;
Recursive inverse dynamics algorithm; Forward Dynamics of Open Chains; Mass matrix by link Jacobians;
Simulate the motion of a robot; Summary; Further Reading
"""

SECTIONS_OF_THE_PAPER = "2.1: 2.2: 3: 4: 5: 6: 6.1, 6.1.1 6.1.2 6.2.1 6.2.2 6.2.3 6.2.4 7:"

SECTIONS_OF_ZHANG = """
1.2 2.1.1 2.1.2 2.1.3 2.2.1 2.2.2 2.3.1 2.3.2 2.4.1 2.4.2 2.4.3 2.5 2.5.1 2.5.2 2.6.1 2.6.2
3.1 3.2.1 3.2.2 3.3 3.3.1 3.3.2 3.3.3 3.4.1 3.4.2
4.1 4.2 4.3.1 4.3.2 4.4.1 4.4.2 4.5.1 4.5.2 4.5.3 4.6
5.1 5.2.1 5.2.2 5.2.3 5.3.1 5.3.2 5.3.3 5.4 5.4.1 5.4.2 5.4.3 5.4.4 5.4.5 6
"""

SECTIONS_OF_CARON = """
Definition; Example; Assumptions: rigid bodies; Assumptions: D'Alembert's principle; Figure: whole-body dynamics;
Case of manipulators; Inertia matrix and Coriolis tensor; Gravity torques and external forces; Case of legged robots;
Point contacts and contact forces; Surface contacts and contact wrenches; To go further: Wieber;
To go further: center of mass; To go further: Coulomb friction cones; To go further: wrench friction cones
"""

SLIDES_OF_DE_LUCA = """
Dynamic model; Direct dynamics: experimental solution; Direct dynamics: solution by simulation;
Inverse dynamics: experimental solution; Inverse dynamics: analytic solution; Approaches to dynamic modeling;
Euler-Lagrange method; Dynamics of an actuated pendulum: first slide;
Dynamics of an actuated pendulum (cont): second slide; Dynamics of an actuated pendulum (cont): third slide;
Kinetic energy of a rigid body; Kinetic energy of a rigid body (cont); Homework #1; Homework #2;
Examples of body inertia matrices: parallelepiped; Examples of body inertia matrices: empty cylinder;
Steiner theorem, Homework #3; Kinetic energy of a robot link; Dependence of T from q and q̇; Final expression of T;
Robot potential energy; Applying Euler-Lagrange equations; k-th dynamic equation;
… and interpretation of dynamic terms; Robot dynamic model in vector formats;
Dynamic model of a PR robot: first slide; Dynamic model of a PR robot (cont): second slide;
Dynamic model of a PR robot (cont): third slide, Q1 to Q5; A structural property; Energy conservation; Appendix
"""


def items(text: str) -> str:
    """First column of the rows of a text's table."""
    section = MAP.partition(f"\n## {text}")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    assert len(rows) > 20
    return "\n".join(rows)


def listed(text: str) -> set[int]:
    """Numbers in parentheses, with all that a range like (2)-(4) covers."""
    numbers: set[int] = set()
    for first, last in re.findall(r"\((\d+)\)(?:–\((\d+)\))?", text):
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def test_every_row_of_the_map_leads_to_a_name_that_answers_or_a_page() -> None:
    rows = re.findall(r"^\| .+? \| .+? \| (.+) \|$", MAP, re.MULTILINE)
    assert len(rows) > 150
    assert [row for row in rows if row != "here" and not re.search(r"`eom\.|\]\(", row)] == []
    names = public_names(MAP)
    assert len(names) > 120
    for name in names:
        assert attribute(name) is not None


def test_keywords_robots_and_fields_of_the_map_are_there() -> None:
    """As in: `eom.simulation.simulate` with `method="euler"`."""
    keywords = fields = robots = 0
    for name, what in re.findall(r"`eom\.([\w.]+)` with `([^`]+)`", MAP):
        thing = attribute(name)
        if what.startswith('"'):
            assert what.strip('"') in eom.packaged_robots()
            robots += 1
        elif "=" in what:
            keyword, _, value = what.partition("=")
            assert keyword in inspect.signature(thing).parameters, (name, keyword)
            assert value in ("", *re.findall(r'"\w+"', value))
            keywords += 1
        else:
            assert what in dir(thing) or what in thing.__annotations__, (name, what)
            fields += 1
    assert keywords > 5 and fields > 1 and robots > 3


def test_the_map_is_linked() -> None:
    for page in ("index", "theory", "notation", "equations", "background"):
        assert "](texts.md" in (DOCS / f"{page}.md").read_text(encoding="utf-8"), page
    assert "docs/texts.md" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_equation_of_the_paper_is_in_the_map() -> None:
    found = items("Müller and Kumar")
    assert listed(found) == set(PAPER)
    for section in SECTIONS_OF_THE_PAPER.split():
        assert section in found, section
    for figure in ("Figure 1", "Figures 2, 3 and 4", "Table 1"):
        assert figure in found


def test_every_number_of_zhang_is_in_the_map() -> None:
    found = items("Zhang")
    assert listed(found) == set(ZHANG)
    for section in SECTIONS_OF_ZHANG.split():
        assert re.search(rf"(?:^|, ){re.escape(section)}(?:,|:|$)", found, re.MULTILINE), section
    for i in range(1, 15):
        assert re.search(rf"Definition {i}\b", found), i
    for i in range(1, 17):
        assert re.search(rf"Example {i}\b", found), i
    figures = [int(i) for text in re.findall(r"Figures? ([\d, and]+)", found) for i in re.findall(r"\d+", text)]
    assert set(figures) == {1, 3, *range(5, 19)}  # those that the text mentions


@pytest.mark.parametrize(
    ("text", "titles"),
    [("Xiang", SLIDES_OF_XIANG), ("Caron", SECTIONS_OF_CARON), ("De Luca", SLIDES_OF_DE_LUCA)],
    ids=["Xiang", "Caron", "De Luca"],
)
def test_every_title_is_in_the_map(text: str, titles: str) -> None:
    rows = items(text)
    for title in re.split(r";\s", titles.strip()):
        assert title in rows, title


def paragraphs() -> dict[int, str]:
    """Text of each number: from its targets to those of the next ones."""
    parts = re.split(r"((?:^\(equation-\d+\)=\n)+)", EQUATIONS, flags=re.MULTILINE)
    return {
        int(number): text
        for targets, text in zip(parts[1::2], parts[2::2], strict=True)
        for number in re.findall(r"\d+", targets)
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    pytest.importorskip("sybil", reason="sybil is not installed")
    from pages import run_page

    return SimpleNamespace(**run_page("equations", tmp_path_factory.mktemp("page")))


def test_every_equation_of_the_paper_has_a_formula_and_a_name_that_answers(page: SimpleNamespace) -> None:
    texts = paragraphs()
    assert set(texts) == set(PAPER)
    for number, text in texts.items():
        assert "$$" in text, number
        names = re.findall(r"`([^`]+)`", "".join(re.findall(r"^Names?(?: of both)?: (.*)$", text, re.MULTILINE)))
        if 8 <= number <= 10:
            continue  # of the display below, "Name of both"
        assert names, number
        for name in names:
            if not name.endswith("="):
                assert eval(name, vars(page)) is not None, name


@pytest.mark.parametrize("name", eom.packaged_robots())
def test_what_runs_equals_the_closed_form_to_rounding(name: str) -> None:
    """Of the largest effort, as README, index and theory promise; at random states, for tau, taud and taudd."""
    robot, samples = eom.load_robot(name), 20
    states = np.random.default_rng(0).uniform(-2, 2, (5, samples, robot.n))
    found = eom.Dynamics(robot, backend="numpy").inverse_dynamics(*states)
    expected = eom.equations_of_motion(robot, *states[:4]).efforts(states[4])
    for x, y in zip(found, expected, strict=True):
        assert deviation(x, y) < 1e-15
