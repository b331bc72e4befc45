# SPDX-License-Identifier: Apache-2.0
"""Fastest motions along paths, within the limits of joints and motors, and the constants of their search."""

from __future__ import annotations

from typing import NamedTuple


class SearchSettings(NamedTuple):
    """Numbers on which accuracy, time and success of the search depend; σ is the parameter of the path from 0 to 1.

    Attributes:
        path_steps: least number of steps in which a path is examined.
        path_steps_of_piece: least number of these in a piece of a spline.
        path_at_rest: derivatives at an end, relative to the length of the path, below which it is at rest there.
        path_smooth: largest difference from the integral of the derivative between steps, over the fastest one.
        path_near_end: one of so many steps next to an end of a path at rest there, where its motion is below rounding.
        sections, section_parts: divisions of an interval in the search for a parameter, and parts in each.
        intervals: least number of intervals between knots of the squared speed.
        intervals_of_piece: those in a piece of a spline.
        end_pieces, intervals_of_end_piece: pieces next to either end that have more, and how many.
        most_intervals: most intervals per unit of σ.
        end_interval: length of the first and the last interval, in those of the least number.
        nodes, end_nodes: nodes at which limits hold in an interval, and in the first and the last one.
        end_time: least duration of the first and the last interval, s: two cycles of a drive at 1 kHz.
        layer: distance from an end within which the weight of the squared speed is constant.
        largest_speed: squared speed above which a path is not limited in its velocity at a node: it hardly moves there.
        shortest_motion: shortest duration of a path, s: about the shortest piece for each interval.
        slow: share of the largest squared speed of a slow motion.
        unlimited: change of shares of limits from there to the largest speed below which there is no limit.
        fine, fine_of_friction: nodes at which limits are checked for each one at which they hold: usually, and with
            friction or springs that are not linear, by which efforts change within a millisecond.
        start_span, start_halvings: range of logarithms of squared speeds below that of the velocity in which the first
            one is, and halvings of it.
        cold, inside: share of the largest squared speed with which to begin, and to go on.
        attempts, late: most refinements, and how many of the last ones check motions in any case.
        first_gap, last_gap: relative distances from the shortest duration at the start and the end of an attempt, of
            the first one and of later ones.
        between, between_motors: relative violation of limits between nodes from which on motions are not checked; with
            limits of motors that are polynomials, checks take less time than attempts.
        peak, patient: value over its limit at which a place between nodes becomes a node in so many first attempts: a
            narrow peak, which limits at nodes around do not reduce. Later, any violation above ``between`` shows that
            these do not suffice.
        scaled, slowest: largest time scaling less 1 of the result, and of a motion to fall back to.
        nearly: duration over the shortest one found up to which a motion within the limits is the fastest one, with
            friction or motors. Otherwise limits were tightened by peaks that are elsewhere by now.
        most_slowed: duration over that before limits are tightened at which nodes are too far apart for the path.
        margin: relative margin of durations for peaks between samples.
        residual: residual of the interior point's equations at which to stop, relative to the gap.
        nearest, left: share of the way to the nearest limit that a step may take, and of a distance that it must leave.
        central: factor of their mean within which products of multipliers and distances stay.
        aimed: factor of its aim within which a step changes products.
        least, pace: least share of the mean product that a step aims at, and of the residual for all distances.
        patience: steps in which the duration must decrease.
        most_steps, most_halvings: of an attempt, and of a step.
        step_down: least step down in the search for the largest squared speed.
        motion_pieces, motion_end_pieces: pieces of the motion between knots of the speed, and in the first and the last
            interval, in which accelerations rise and fall.
        shortest_piece: shortest piece of the motion, s: players accept pieces from 0.1 ms on.
        check_rate: rate at which motions with friction or motors are checked, Hz.
        most_samples: largest number of samples of a motion, some hundred for each of its pieces.
        near_limit: share of a limit from which on peaks between samples are computed.
        missable: violation that parabolas between samples may miss.
        missed: what they miss for each third difference, twice that of cubics.
        closer, finest: how much closer samples are where parabolas miss more, at a time and in all.
        passes: Newton steps to the time at which a waypoint is passed.
        active, active_rate: share of a limit from which on it is active, and rate at which that is determined, Hz.
    """

    path_steps: int = 400
    path_steps_of_piece: int = 8
    path_at_rest: float = 1e-9
    path_smooth: float = 0.02
    path_near_end: int = 40
    sections: int = 9
    section_parts: int = 64
    intervals: int = 120
    intervals_of_piece: int = 6
    end_pieces: int = 4
    intervals_of_end_piece: int = 12
    most_intervals: int = 100_000
    end_interval: float = 0.03
    nodes: int = 3
    end_nodes: int = 16
    end_time: float = 2e-3
    layer: float = 0.01
    largest_speed: float = 1e30
    shortest_motion: float = 0.006
    slow: float = 1e-30
    unlimited: float = 1e-10
    fine: int = 3
    fine_of_friction: int = 15
    start_span: float = 14.0
    start_halvings: int = 10
    cold: float = 0.7
    inside: float = 0.998
    attempts: int = 12
    late: int = 6
    first_gap: tuple[float, float] = (1.0, 1e-2)
    last_gap: tuple[float, float] = (3e-3, 2e-4)
    between: float = 8e-4
    between_motors: float = 0.03
    peak: float = 1.05
    patient: int = 3
    scaled: float = 5e-4
    slowest: float = 0.5
    nearly: float = 1.005
    most_slowed: float = 1.2
    margin: float = 1e-5
    residual: float = 10.0
    nearest: float = 0.95
    left: float = 1e-3
    central: float = 100.0
    aimed: float = 10.0
    least: float = 0.01
    pace: float = 0.3
    patience: int = 10
    most_steps: int = 80
    most_halvings: int = 40
    step_down: float = 1e-3
    motion_pieces: int = 3
    motion_end_pieces: int = 12
    shortest_piece: float = 1.1e-4
    check_rate: float = 10_000.0
    most_samples: int = 200_000
    near_limit: float = 0.9
    missable: float = 1e-7
    missed: float = 0.128
    closer: int = 4
    finest: int = 16
    passes: int = 4
    active: float = 0.995
    active_rate: float = 1000.0


SETTINGS = SearchSettings()
