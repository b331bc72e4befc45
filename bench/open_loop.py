# SPDX-License-Identifier: Apache-2.0
"""Link errors of the iiwa on the paper's motion without feedback, with springs of every kind.

The simulation of test/helpers/open_loop_cases.py, which is independent of the feedforward, for 5 s.
"""

import time

from harness import Section, Settings
from open_loop_cases import CASES, Feedforward, link_errors

# Largest error of any link up to a time, s and rad, and least error with rigid feedforward.
BARS = ((1.0, 1e-10), (5.0, 1e-6))
RIGID = (1.0, 1e-3)

# Error at which a simulation with rigid feedforward ends, rad.
GONE = 0.1


def open_loop(section: Section, settings: Settings) -> None:
    """Simulate every kind of spring."""
    start = time.perf_counter()
    duration = 0.05 if settings.quick else BARS[-1][0]
    columns = [*(f"flatness, {t:g} s" for t, _ in BARS), f"rigid, {RIGID[0]:g} s"]
    table = section.table("largest error of any link, rad", "springs", *columns)
    worst, least = [0.0] * len(BARS), float("inf")
    for name, make in CASES.items():
        case = make()
        errors = link_errors(Feedforward(case), duration)
        row = [max(error for t, error in errors.items() if t <= until) for until, _ in BARS]
        rigid = max(link_errors(Feedforward(case, rigid=True), min(duration, RIGID[0]), give_up=GONE).values())
        worst, least = [max(x, y) for x, y in zip(worst, row, strict=True)], min(least, rigid)
        table.add(name, *(f"{x:.1e}" for x in row), f"{rigid:.1e}" if rigid < GONE else f"> {GONE:g}")
    for (t, most), x in zip(BARS, worst, strict=True):
        section.promise(f"springs of every kind, flatness, {t:g} s: within {most:.0e} rad", f"{x:.1e}", x < most)
    if not settings.quick:
        promise = f"springs of every kind, rigid, {RIGID[0]:g} s: off by more than {RIGID[1]:.0e} rad"
        section.promise(promise, f"at least {least:.1e}", least > RIGID[1])
    section.text.append(f"{duration:g} s of the paper's motion, in {(time.perf_counter() - start) / 60:.0f} minutes.")
