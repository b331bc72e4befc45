# SPDX-License-Identifier: Apache-2.0
"""Parameter names with dots to nested sections and back."""

import pytest
from chains import flat
from hypothesis import given
from hypothesis import strategies as st

from eom_dynamics import RobotDescriptionError

pytest.importorskip("rclpy", reason="rclpy is not installed")
from eom_dynamics.ros.node_parameters import nested

names = st.text(st.characters(exclude_characters=".", exclude_categories=["Cs"]), min_size=1, max_size=4)
trees = st.dictionaries(
    names,
    st.recursive(
        st.integers(), lambda children: st.dictionaries(names, children, min_size=1, max_size=3), max_leaves=8
    ),
    max_size=4,
)


@given(trees, st.randoms())
def test_nested_is_the_inverse_of_flat_in_any_order(tree, random):
    items = list(flat(tree).items())
    random.shuffle(items)
    assert nested(dict(items), "robot", "parameters") == tree


@pytest.mark.parametrize("section", ["joints.a.mass", "joints.a.origin.xyz"])
def test_a_name_that_is_value_and_section_is_refused(section):
    with pytest.raises(
        RobotDescriptionError, match=rf"^/x: urdf\.joints\.a is a value, and has urdf\.{section} below it"
    ):
        nested({section: 1.0, "joints.a": 2.0}, "urdf", "/x")
