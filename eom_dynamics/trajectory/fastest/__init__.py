# SPDX-License-Identifier: Apache-2.0
"""Fastest motions along paths, within the limits of joints and motors, and the constants of their search."""

from __future__ import annotations

from typing import NamedTuple


class SearchSettings(NamedTuple):
    """Parameters of the search: accuracy, time and success. σ is the path parameter from 0 to 1.

    Attributes:
        path_steps: minimum number of steps in the examination of a path.
        path_steps_of_piece: minimum number of steps in a piece of a spline.
        path_at_rest: maximum derivatives at an end at rest, relative to the length of the path.
        path_smooth: maximum difference from the integral of the derivative between steps, over the largest derivative.
        path_near_end: steps of an end at rest, as 1/``path_near_end`` of all steps, with a motion below rounding.
        sections, section_parts: divisions of an interval in the search for a parameter, and parts of each.
        intervals: minimum number of intervals between knots of the squared speed.
        intervals_of_piece: minimum number of intervals in a piece of a spline.
        end_pieces, intervals_of_end_piece: number of pieces next to either end with more intervals, and their number.
        most_intervals: maximum number of intervals per unit of σ.
        end_interval: length of the first and the last interval, relative to 1/``intervals``.
        nodes, end_nodes: number of nodes with limits in an interval, and in the first and the last interval.
        end_time: minimum duration of the first and the last interval, s: two cycles of a drive at 1 kHz.
        layer: distance from an end with constant weight of the squared speed.
        largest_speed: squared speed of a node without velocity limits, because the path hardly moves there.
        shortest_motion: minimum duration of a path, s: about the shortest piece for each interval.
        slow: fraction of the largest squared speed in a slow motion.
        unlimited: change of utilization from the slow motion to the largest speed below which nothing limits the speed.
        fine, fine_of_friction: number of checked nodes per node with limits; with friction or nonlinear springs, by
            which efforts change within a millisecond.
        start_span, start_halvings: search for the first squared speed: range of logarithms below the velocity limit,
            and number of halvings.
        cold, inside: fraction of the largest squared speed at the first start, and at a restart.
        attempts, late: maximum number of refinements; number of final refinements that always check motions.
        first_gap, last_gap: relative distances from the shortest duration at the start and the end of an attempt, for
            the first attempt and later attempts.
        between, between_motors: relative violation of limits between nodes above which motions are not checked; for
            polynomial motor limits, whose checks take less time than attempts.
        peak, patient: ratio of a value to its limit that makes a peak between nodes a node in the first ``patient``
            attempts, because limits at the nodes around do not reduce a narrow peak. Later, violations above
            ``between`` are sufficient.
        scaled, slowest: maximum time scaling minus 1 of the result, and of a fallback motion.
        nearly: ratio of the duration to the shortest duration found, up to which a motion with friction or motors is
            accepted as the fastest. Above, limits were tightened by peaks that have moved.
        most_slowed: ratio to the duration before tightened limits that shows nodes too far apart for the path.
        margin: relative margin of durations for peaks between samples.
        residual: residual of the interior point's equations at convergence, relative to the gap.
        nearest, left: fraction of the way to the nearest limit in a step, and fraction of a distance that remains.
        central: factor of their mean that bounds products of multipliers and distances.
        aimed: factor of its aim that bounds the change of products in a step.
        least, pace: minimum fraction of the mean product that a step aims at, and of the residual for all distances.
        patience: number of steps within which the duration must decrease.
        most_steps, most_halvings: maximum numbers per attempt, and per step.
        step_down: minimum decrement in the search for the largest squared speed.
        motion_pieces, motion_end_pieces: number of pieces of the motion between knots of the speed, and in the first
            and the last interval, in which accelerations rise and fall.
        shortest_piece: minimum piece of the motion, s: players accept pieces from 0.1 ms on.
        check_rate: rate of checks of motions with friction or motors, Hz.
        most_samples: maximum number of samples of a motion, some hundred for each of its pieces.
        near_limit: utilization of a limit above which peaks between samples are computed.
        missable: violation that parabolas between samples may miss.
        missed: error of parabolas for each third difference, twice the error of cubics.
        closer, finest: refinement factor of samples if parabolas miss more, per step and in total.
        passes: number of Newton steps to the time of a waypoint.
        active, active_rate: utilization of an active limit, and sampling rate to determine it, Hz.
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
