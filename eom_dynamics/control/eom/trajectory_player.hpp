// SPDX-License-Identifier: Apache-2.0
// Trajectory player: start of trajectories, and transition from the commanded state.
#ifndef EOM_TRAJECTORY_PLAYER_HPP
#define EOM_TRAJECTORY_PLAYER_HPP

#include <algorithm>
#include <cstdint>
#include <limits>

#include "commander.hpp"
#include "mailbox.hpp"
#include "pace_keeper.hpp"
#include "spline.hpp"

namespace eom {

/// Candidate durations of longer transitions, s.
constexpr double TRANSITIONS[] = {@transitions@};
/// Number of limit checks of a transition after its start.
constexpr std::size_t TRANSITION_SAMPLES = @transition_samples@;
/// Largest joint motion, rad or m, that a late trajectory may have missed and still start as if on time.
constexpr double SMALL_STEP = @small_step@;

/// Largest backward step of the clock that continues a trajectory, ns.
constexpr std::int64_t LARGEST_CORRECTION = @largest_correction@;
/// Latency of measured positions, s: the start tolerance grows by this time multiplied by the joint velocity.
constexpr double START_LATENCY = @start_latency@;

/// Plan of a trajectory. Times, s, are relative to `origin`, ns.
template <std::size_t n>
struct Plan {
    std::int64_t origin = 0;
    /// Clock time of the start, ns.
    std::int64_t begin = 0;
    /// True if setpoints are followed until the start: the transition is then planned at the start.
    bool waits = false;
    /// Transition between two states, start < end; unused while `waits`, and for a start without a command.
    Piece<n> transition;
    double start = 0, end = 0;
    State<n> from{}, to{};
    /// Excess of the transition over limits, relative to half their range, beyond the excess at its start; 0 within limits.
    double excess = 0;
};

/// Path of a spline after a transition to it.
template <std::size_t n>
struct SplinePath {
    const Piece<n> &transition;
    const Spline<n> &spline;

    /// Returns the joint state at a state of the path.
    State<n> operator()(const PathState &at) const noexcept
    {
        State<n> state;
        at[0] < transition.end() ? transition.evaluate(at[0], state) : spline.evaluate(at[0], state);
        along(state, at);
        return state;
    }
};

/// Returns the refusal for the joint with the largest distance of its start from its present state, beyond `tolerance` plus
/// `latency` times its velocity; without a refusal if all joints are near.
template <std::size_t n>
Reason away(Refusal why, const State<n> &first, const State<n> &present, double tolerance, double latency) noexcept
{
    Reason found;
    for (std::size_t i = 0; i < n; ++i) {
        const double step = std::fabs(first[0][i] - present[0][i]), most = tolerance + latency * std::fabs(present[1][i]);
        if (!(step <= most) && !(step - most <= found.value - found.limit))
            found = {why, Quantity::position, i, step, most};
    }
    return found;
}

/// Player of one trajectory, with another one queued.
template <class Robot>
class TrajectoryPlayer {
  public:
    static constexpr std::size_t n = Robot::joints;
    using Trajectories = Mailbox<Spline<n>, 2>;

    TrajectoryPlayer(Trajectories &trajectories, Commander<Robot> &commander) noexcept
        : trajectories_(trajectories), commander_(commander), pace_(commander)
    {
    }

    bool playing() const noexcept { return commander_.state_machine.is(Phase::playing); }
    /// Returns true if a trajectory is queued.
    bool waiting() const noexcept { return waiting_; }

    /// Cancel the queued trajectory.
    void halt() noexcept { waiting_ = false; }

    /// Start the queued trajectory if its start has come and it is fully planned; returns true if it started.
    bool begin_waiting(std::int64_t now) noexcept
    {
        const bool begins = waiting_ && !next_.waits && now >= next_.begin;
        if (begins)
            begin(next_, WAITING);
        return begins;
    }

    /// Select a received trajectory, or the queued one at its start, for planning; returns false if there is none.
    bool take_next(std::int64_t now) noexcept
    {
        const bool arrived = trajectories_.take();
        slot_ = arrived ? ARRIVED : WAITING;
        return arrived || (waiting_ && now >= next_.begin);
    }

    /// Returns true if the selected trajectory is a request to stop.
    bool stops() const noexcept { return slot_ == ARRIVED && trajectories_.taken().empty(); }

    /// Plan the selected trajectory unless `barred`. `commanded(time)` returns the commanded state at `time`, ns, if no trajectory
    /// is active. `ahead` is the lead of stamps, ns. Returns the plan, or null if the trajectory was refused.
    template <class Commanded>
    const Plan<n> *plan(std::int64_t now, std::int64_t ahead, double period, Refusal barred,
                        const Commanded &commanded) noexcept
    {
        const std::int64_t stamp = trajectories_.taken(slot_).origin;
        const std::int64_t origin = slot_ == WAITING ? next_.origin : stamp != 0 ? stamp - ahead : now;
        const Reason why = plan_to_begin(origin, now, period, barred, commanded);
        later_ = plan_.begin > now;
        if (why.refusal == Refusal::none)
            return &plan_;
        drop(why);
        return nullptr;
    }

    /// Returns true if the planned trajectory meets limits at `pace` with the present payloads.
    bool plan_carries(double pace) const noexcept
    {
        const SplinePath<n> path{plan_.transition, trajectories_.taken(slot_)};
        const double from = seconds(plan_.begin - plan_.origin);
        return pace_.carries(path, from, pace, std::max(path.spline.end(), plan_.end), true);
    }

    /// Play the planned trajectory, or queue it until its start, replacing the queued one. Returns true if it starts now.
    bool play() noexcept
    {
        if (later_) {
            trajectories_.exchange(WAITING, slot_);
            next_ = plan_;
            waiting_ = true;
        } else {
            begin(plan_, slot_);
        }
        return !later_;
    }

    /// Refuse the planned trajectory.
    void drop(const Reason &why) noexcept
    {
        commander_.refuse(why);
        if (slot_ == WAITING)
            waiting_ = false;
    }

    /// Delay the queued trajectory by `time` ns.
    void shift(std::int64_t time) noexcept
    {
        if (time == 0)
            return;
        next_.origin += time;
        next_.begin += time;
        next_.waits = true;
    }

    /// Compute the states at `now`, ns, and at the command lead; returns false if no time has passed.
    bool advance(std::int64_t now, State<n> &state, State<n> &ahead) noexcept
    {
        if (now <= played_)
            return false;
        played_ = now;
        state = state_at(now);
        ahead = follow(time_, played_, commander_.robot.command_lead());
        return true;
    }

    /// Record that the states of advance() were commanded.
    void command() noexcept { commanded_ = played_; }
    /// Returns the time of the last command on the path, ns.
    std::int64_t commanded() const noexcept { return commanded_; }
    /// Setpoints took over: the last command is no longer on the path, even if time stands still.
    void leave() noexcept { commanded_ = NEVER; }
    /// Returns true if the last command was on the path, or the active trajectory has the lead.
    bool on_path(bool leads) const noexcept { return commanded_ != NEVER && ((leads && playing()) || commanded_ == commander_.latest); }

    /// Returns the state on the path at `now`, ns, or in a pause.
    State<n> state_at(std::int64_t now) const noexcept { return path()(time_.at(std::max(now, played_))); }

    /// Returns the state on the path `lead` s after `now`, ns, at most at the end.
    State<n> follow(const PathTime &time, std::int64_t now, double lead) const noexcept
    {
        PathState s = time.at(now, lead);
        s[0] = std::min(s[0], std::max(time.at(now)[0], end_));
        return path()(s);
    }

    /// Returns true if the end is reached, except for rounding, and no trajectory is queued.
    bool has_ended() const noexcept { return time_.at(played_)[0] >= end_ - 1e-12 && !waiting_; }

    // --- Pace ---------------------------------------------------------------------------

    /// Returns the path state of the last played command.
    PathState path_state() const noexcept { return played_ == NEVER ? PathState{} : time_.at(played_); }
    bool limited() const noexcept { return pace_.limited(); }
    /// Returns `pace`, or the smaller pace that limits allow so far.
    double allowed(double pace) const noexcept { return playing() && limited() ? std::min(time_.last().pace(), pace) : pace; }
    /// Returns true during a change of pace, or its check, at `now`, ns.
    bool changes(std::int64_t now) const noexcept { return pace_.changes(time_, std::max(now, played_)); }

    /// Returns true if the rest of the active trajectory meets limits at its pace from `now`, ns, with the pending payload. The
    /// queued trajectory is planned again at its start.
    bool carries(std::int64_t now) noexcept
    {
        next_.waits = true;
        return !playing() || pace_.carries(time_, path(), std::max(now, played_));
    }

    /// Update the pace toward `wanted` once per cycle of `period` s: see PaceKeeper. While paused, a trajectory from rest does not
    /// start.
    void keep_pace(double wanted, std::int64_t now, double period) noexcept
    {
        if (wanted == 0 && commanded_ == NEVER && rests(path()({start_, 1, 0, 0, 0})))
            time_.stay(start_, std::max(now, played_));
        if (pace_.keep(time_, path(), wanted, std::max(now, played_), period))
            next_.waits = true;
    }

    /// Start a stop on the path, and write its path time; returns false without a path.
    bool begin_stop(PathTime &time) noexcept
    {
        if (commanded_ == NEVER)
            return false;
        time = time_;
        pace_.begin_stop();
        return true;
    }
    /// Continue the stop in a cycle of `period` s: see PaceKeeper.
    bool advance_stop(PathTime &time, std::int64_t now, double period, std::int64_t &end) noexcept
    {
        return pace_.advance_stop(time, path(), now, period, end);
    }

  private:
    /// Mailbox slots of trajectories.
    static constexpr std::size_t ARRIVED = 0, PLAYED = 1, WAITING = 2;

    /// Plan the trajectory in the slot, with its time 0 at `origin`, ns.
    template <class Commanded>
    Reason plan_to_begin(std::int64_t origin, std::int64_t now, double period, Refusal barred,
                          const Commanded &commanded) noexcept
    {
        Spline<n> &next = trajectories_.taken(slot_);
        const double t = seconds(now - origin);
        plan_ = {};
        plan_.origin = origin;
        plan_.begin = std::max(origin, now);
        // Tolerance for rounding of the time.
        if (next.start() - t > LONGEST_START_DELAY + 1e-9)
            return Refusal::too_far_ahead;
        if (t > next.end())
            return Refusal::ended;
        if (barred != Refusal::none)
            return barred;
        if (const Reason beyond = beyond_range(next); beyond.refusal != Refusal::none)
            return beyond;
        State<n> from, later;
        if (playing()) {
            // The active trajectory continues until then.
            const double at = std::max(t, 0.0);
            from = path()(time_.at(now, at - t));
            later = path()(time_.at(now, at - t + std::max(next.start() - at, 0.0)));
            return plan_transition(next, at, from, later, period);
        }
        if (!commander_.output.valid) {
            if (next.holds())
                return Refusal::from_nothing;
            plan_.begin = std::max<std::int64_t>(now, origin + std::llround(std::max(next.start(), 0.0) * 1e9));
            plan_.waits = plan_.begin > now;
            next.evaluate(t, from);
            next.evaluate(next.start(), later);
            plan_.start = plan_.end = std::max(t, next.start());
            plan_.from = plan_.to = from;
            plan_.transition = Piece<n>(plan_.start - 1, plan_.start, from, from);
            later[1] = {};
            Reason why = plan_.waits ? Refusal::none : away(Refusal::under_way, from, later, commander_.parameters.start_tolerance, 0);
            why.time = plan_.start - next.start();
            return why;
        }
        plan_.waits = origin > now;
        if (plan_.waits)
            return Refusal::none;
        // Up to one period late counts as on time.
        const double at = t < period ? 0 : t;
        from = commanded(at > 0 ? now : origin);
        if (at > 0 && rests(from) && plan_from(next, 0, from, period).refusal == Refusal::none && begun_on_time(next, from, t))
            return Refusal::none;
        return plan_from(next, at, from, period);
    }

    /// Returns the refusal of a trajectory that leaves the range of a joint, if limits are refused. A joint that is commanded
    /// beyond its range may return to it.
    Reason beyond_range(const Spline<n> &next) const noexcept
    {
        if (commander_.parameters.limits != LimitPolicy::refuse)
            return Refusal::none;
        State<n> first;
        next.evaluate(next.start(), first);
        const auto &low = commander_.robot.lower.q, &high = commander_.robot.upper.q;
        for (std::size_t i = 0; i < commander_.robot.joint_count(); ++i) {
            if (next.holds(i)) // keeps its commanded position
                continue;
            const double lowest = next.lowest().position[i], highest = next.highest().position[i];
            const double last = commander_.output.valid ? commander_.output.setpoint.q[i] : low[i];
            const double least = last < low[i] ? std::min(last, first[0][i]) : low[i];
            const double most = last > high[i] ? std::max(last, first[0][i]) : high[i];
            if (highest > most)
                return {Refusal::path_beyond_range, Quantity::position, i, highest, high[i], next.highest().time[i]};
            if (lowest < least)
                return {Refusal::path_beyond_range, Quantity::position, i, lowest, low[i], next.lowest().time[i]};
        }
        return Refusal::none;
    }

    /// Plan a transition from a commanded state; the later position is the same if the spline starts later.
    Reason plan_from(Spline<n> &next, double at, const State<n> &from, double period) noexcept
    {
        State<n> later = from;
        if (next.start() > at)
            later[1] = {};
        return plan_transition(next, at, from, later, period);
    }

    /// Plan the transition from state `from` at time `at` of the spline, s. `later` is the commanded state at the spline's start.
    ///
    /// The transition ends at the next knot. If it exceeds a limit and the spline starts near, longer transitions are tried. The
    /// shortest transition within limits is used, or else the transition with the smallest excess. Continuous joints are shifted to
    /// the nearest turn, held joints to their commanded positions. Returns the refusal if there is no transition.
    Reason plan_transition(Spline<n> &next, double at, const State<n> &from, const State<n> &later,
                            double period) noexcept
    {
        State<n> first;
        next.evaluate(std::max(at, next.start()), first);
        for (std::size_t i = 0; i < n; ++i) {
            const double ahead = later[0][i] - first[0][i];
            const double distance = next.holds(i) ? ahead : Limits<Robot>::turns(commander_.robot, i, first[0][i], later[0][i]);
            if (distance != 0) {
                next.move(i, distance);
                first[0][i] += distance;
            }
        }
        plan_.start = at;
        plan_.from = from;
        const Reason why = away(Refusal::starts_away, first, later, commander_.parameters.start_tolerance, START_LATENCY);
        const bool near = why.refusal == Refusal::none;
        if (!near && at + period >= next.start())
            return why;
        const double knot = next.knot_after(at), shortest = knot > at ? knot : at + period;
        plan_.excess = std::numeric_limits<double>::infinity();
        Piece<n> tried;
        const auto attempt = [&](double end) {
            State<n> to;
            next.evaluate(end, to);
            tried = Piece<n>(at, end, from, to);
            const double excess = commander_.excess_of(
                [&](double share, Setpoint<Robot> &x) {
                    State<n> state;
                    tried.evaluate(at + (end - at) * share, state);
                    commander_.move(state, x);
                },
                TRANSITION_SAMPLES, plan_.excess);
            if (excess < plan_.excess) {
                plan_.excess = excess;
                plan_.end = end;
                plan_.to = to;
                plan_.transition = tried;
            }
        };
        attempt(shortest);
        for (const double duration : TRANSITIONS)
            if (near && plan_.excess > LIMIT_TOLERANCE && duration > shortest - at)
                attempt(at + duration);
        return !std::isfinite(plan_.excess) ? Refusal::not_finite
               : leaves_range()             ? Refusal::no_room
               : exceeds()                  ? transition_beyond_limits()
                                            : Reason(Refusal::none);
    }

    /// Returns true if the transition is refused because it exceeds limits.
    bool exceeds() const noexcept
    {
        return plan_.excess > LIMIT_TOLERANCE && commander_.parameters.limits != LimitPolicy::ignore;
    }
    EOM_SELDOM Reason transition_beyond_limits() noexcept
    {
        const double duration = plan_.end - plan_.start;
        const auto motion = [&](double share, Setpoint<Robot> &x) {
            State<n> state;
            plan_.transition.evaluate(plan_.start + duration * share, state);
            commander_.move(state, x);
        };
        return commander_.worst_of(Refusal::transition, motion, TRANSITION_SAMPLES);
    }

    /// Returns true if the transition from a motion leaves the range of a joint that starts within it, if limits are refused.
    bool leaves_range() const noexcept
    {
        constexpr double ROUNDING = 1e-9;
        if (commander_.parameters.limits != LimitPolicy::refuse || rests(plan_.from))
            return false;
        for (std::size_t k = 0; k <= TRANSITION_SAMPLES; ++k) {
            State<n> state;
            const double part = static_cast<double>(k) / static_cast<double>(TRANSITION_SAMPLES);
            plan_.transition.evaluate(plan_.start + part * (plan_.end - plan_.start), state);
            for (std::size_t i = 0; i < n; ++i) {
                const double low = commander_.robot.lower.q[i], high = commander_.robot.upper.q[i], first = commander_.output.setpoint.q[i];
                if (state[0][i] < std::min(low, first) - ROUNDING || state[0][i] > std::max(high, first) + ROUNDING)
                    return true;
            }
        }
        return false;
    }

    /// Returns true if the arm at rest would have moved by less than SMALL_STEP until t of the spline, had it started on time.
    bool begun_on_time(const Spline<n> &next, const State<n> &from, double t) const noexcept
    {
        constexpr int SAMPLES = 200;
        for (int k = 0; k < SAMPLES; ++k) {
            const double at = t * k / (SAMPLES - 1);
            const State<n> state = SplinePath<n>{plan_.transition, next}({at, 1, 0, 0, 0});
            for (std::size_t i = 0; i < n; ++i)
                if (!(std::fabs(state[0][i] - from[0][i]) <= SMALL_STEP))
                    return false;
        }
        return true;
    }

    static bool rests(const State<n> &state) noexcept
    {
        for (std::size_t k = 1; k < 5; ++k)
            for (const double rate : state[k])
                if (rate != 0)
                    return false;
        return true;
    }

    /// Start to play `plan` with the spline in `slot`.
    void begin(const Plan<n> &plan, std::size_t slot) noexcept
    {
        trajectories_.exchange(PLAYED, slot);
        time_.start(plan.origin);
        transition_ = plan.transition;
        const Spline<n> &spline = trajectories_.taken(PLAYED);
        start_ = plan.start;
        end_ = std::max(spline.end(), plan.end);
        pace_.begin(path(), start_, end_);
        if (!playing())
            played_ = NEVER;
        commanded_ = NEVER;
        waiting_ = false;
        ++commander_.counts.begun;
    }

    /// Returns the path of the active trajectory.
    SplinePath<n> path() const noexcept { return {transition_, trajectories_.taken(PLAYED)}; }

    static constexpr std::int64_t NEVER = std::numeric_limits<std::int64_t>::min();

    Trajectories &trajectories_;
    Commander<Robot> &commander_;
    bool waiting_ = false;
    Piece<n> transition_;
    // Path parameter; times of the last played cycle and of the last command on the path, ns.
    PathTime time_;
    std::int64_t played_ = NEVER, commanded_ = NEVER;
    PaceKeeper<Robot> pace_;
    double start_ = 0, end_ = 0;
    // Last plan, and plan of the queued trajectory; slot of the last planned spline; true if it starts later.
    Plan<n> plan_, next_;
    std::size_t slot_ = 0;
    bool later_ = false;
};

} // namespace eom

#endif
