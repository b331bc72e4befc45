// SPDX-License-Identifier: Apache-2.0
// Online trajectory generation: joint targets or chunks that may change in each cycle.
#ifndef EOM_ONLINE_TRAJECTORY_HPP
#define EOM_ONLINE_TRAJECTORY_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "joint_trajectory.hpp"
#include "target_filter.hpp"
#include "target_path.hpp"

namespace eom {

/// Target of all joints, or a chunk of timed targets.
struct Target {
    /// Time 0 of a chunk, or stamp of a target, ns; 0: time of arrival.
    std::int64_t origin = 0;
    /// Times of the chunk, s; empty for a target.
    std::vector<double> times;
    /// Positions of the target, or of the chunk, knots by joints; NaN keeps the target of a joint. Rates are for targets only.
    std::vector<double> positions, velocities, accelerations;

    /// Resize for `joints` targets. Allocates.
    void resize(std::size_t joints)
    {
        for (std::vector<double> *x : {&positions, &velocities, &accelerations})
            x->assign(joints, 0);
    }

    /// Set all values. `qd` and `qdd` may be null for zero. Returns the error text, or null. Allocates.
    const char *assign(std::int64_t stamp, const double *at, std::size_t knots, const double *q, const double *qd,
                       const double *qdd, std::size_t joints)
    {
        const char *reason = knots > 0 ? TargetPath::objection(at, q, knots, joints) : nullptr;
        for (std::size_t i = 0; i < joints && knots == 0; ++i)
            if (std::isinf(q[i]) || (qd && !std::isfinite(qd[i])) || (qdd && !std::isfinite(qdd[i])))
                reason = "targets must be finite";
        if (reason)
            return reason;
        origin = stamp;
        times.assign(at, at + knots);
        resize(joints);
        positions.assign(q, q + std::max<std::size_t>(knots, 1) * joints);
        if (qd)
            velocities.assign(qd, qd + joints);
        if (qdd)
            accelerations.assign(qdd, qdd + joints);
        return nullptr;
    }

    /// Copy the target of joint i.
    void take(std::size_t i, const Target &x) noexcept
    {
        positions[i] = x.positions[i];
        velocities[i] = x.velocities[i];
        accelerations[i] = x.accelerations[i];
    }

    /// Returns true if the target of joint i moves.
    bool moves_on(std::size_t i) const noexcept { return velocities[i] != 0 || accelerations[i] != 0; }
};

/// Online trajectory of all joints, not synchronized.
class OnlineTrajectory {
  public:
    /// Set the limits of each joint. Returns the error text, or null. Allocates.
    const char *configure(const std::vector<MotionLimits> &limits)
    {
        std::vector<JointTrajectory> joints(limits.size());
        for (std::size_t i = 0; i < limits.size(); ++i)
            if (const char *reason = joints[i].configure(limits[i]))
                return reason;
        joints_ = std::move(joints);
        filters_.assign(limits.size(), {});
        path_.configure(size());
        time_ = 0;
        return nullptr;
    }

    std::size_t size() const noexcept { return joints_.size(); }
    JointTrajectory &joint(std::size_t i) noexcept { return joints_[i]; }
    const JointTrajectory &joint(std::size_t i) const noexcept { return joints_[i]; }

    /// Set targets, clamped to the limits, or append a chunk with its time 0 at `origin` on the clock of time(), s. From its first
    /// time on, a chunk replaces targets and the remainder of earlier chunks; the motion ends at rest at its last position. Returns
    /// true if the target changed.
    bool take(const Target &x, double origin) noexcept
    {
        stops_ = false;
        if (!x.times.empty()) {
            for (TargetFilter &filter : filters_)
                filter.reset();
            // The averages reach back by half of their length.
            const double ramp = longest([](const JointTrajectory &joint) { return joint.ramp(); });
            path_.take(time_ - ramp / 2, origin, x.times.data(), x.positions.data(), x.times.size());
            for (std::size_t i = 0; i < size(); ++i)
                if (std::isnan(x.positions[i]))
                    path_.hold(i, joints_[i].target(), x.times.size());
            return true;
        }
        path_.clear();
        bool changes = false;
        for (std::size_t i = 0; i < size(); ++i) {
            double position = x.positions[i];
            if (std::isnan(position) || x.moves_on(i))
                filters_[i].reset();
            else
                position = filters_[i].take(time_, position);
            const double before = joints_[i].target();
            joints_[i].aim(std::isnan(position) ? before : position, x.velocities[i], x.accelerations[i]);
            changes = changes || joints_[i].target() != before;
        }
        return changes;
    }

    /// Time to the end of all motion, s.
    double left() const noexcept
    {
        return longest([](const JointTrajectory &joint) { return joint.left(); });
    }

    /// Longest length of the averages, s.
    double window() const noexcept
    {
        return longest([](const JointTrajectory &joint) { return 2 * joint.delay(); });
    }
    /// Longest length of the shorter average, s.
    double shorter() const noexcept
    {
        return longest([](const JointTrajectory &joint) { return joint.shorter(); });
    }
    /// Time to the end of `way`, s.
    double length(JointTrajectory::Way way) const noexcept
    {
        return longest([way](const JointTrajectory &joint) { return joint.length(way); });
    }

    /// Time of all cycles, s.
    double time() const noexcept { return time_; }

    /// Returns true if all joints are at rest at their targets.
    bool arrived() const noexcept
    {
        return path_.empty() &&
               std::all_of(joints_.begin(), joints_.end(), [](const JointTrajectory &joint) { return joint.arrived(); }) &&
               std::none_of(filters_.begin(), filters_.end(), [](const TargetFilter &filter) { return filter.filters(); });
    }

    /// Clear the path and the targets before another motion.
    void leave() noexcept
    {
        path_.clear();
        for (TargetFilter &filter : filters_)
            filter.reset();
        anchored_ = 0;
    }

    /// Stop each joint in `duration` s, or longer if limits require it, with up to `haste` times the deceleration.
    void stop(double duration = 0, double haste = 1) noexcept
    {
        leave();
        for (JointTrajectory &joint : joints_)
            joint.stop(duration, haste);
        stops_ = true;
    }
    /// Returns true if the motion stops without a target.
    bool stops() const noexcept { return stops_; }

    /// Returns true if a joint target moves, without a path of chunks.
    bool moves_on() const noexcept
    {
        return path_.empty() &&
               std::any_of(joints_.begin(), joints_.end(), [](const JointTrajectory &joint) { return joint.moves_on(); });
    }

    /// Prepare a cycle with the present targets.
    void prepare() noexcept
    {
        bool ends = !path_.empty();
        for (std::size_t i = 0; i < size() && !path_.empty(); ++i) {
            // Averages delay their input.
            const double t = time_ + joints_[i].delay();
            ends = ends && t - joints_[i].ramp() / 2 >= path_.end();
            if (t < path_.begin())
                continue;
            joints_[i].follow(path_.mean(t, joints_[i].ramp(), i));
        }
        if (ends)
            path_.clear();
        for (std::size_t i = 0; i < size(); ++i)
            if (filters_[i].waits(time_))
                joints_[i].aim(filters_[i].pass(), 0);
        for (JointTrajectory &joint : joints_)
            joint.prepare();
    }

    /// Propose the prepared cycle: see JointTrajectory::propose.
    void propose(double part, double gentle = 1) noexcept
    {
        for (JointTrajectory &joint : joints_)
            joint.propose(part, gentle);
    }
    void brake(double gentle) noexcept
    {
        for (JointTrajectory &joint : joints_)
            joint.brake(gentle);
    }
    void escape(double gentle) noexcept
    {
        for (JointTrajectory &joint : joints_)
            joint.escape(gentle);
    }

    /// Returns true if the brake after the last cycle passes the target of a joint.
    bool stops_late() const noexcept
    {
        return std::any_of(joints_.begin(), joints_.end(), [](const JointTrajectory &joint) { return joint.stops_late(); });
    }
    /// Allow brakes of this cycle to pass the targets of joints that stop late, or of all joints.
    void allow_overshoot(bool all) noexcept
    {
        for (JointTrajectory &joint : joints_)
            if (all || joint.stops_late())
                joint.allow_overshoot();
    }

    /// Returns true if the prepared cycle changes nothing.
    bool rests() const noexcept
    {
        return std::all_of(joints_.begin(), joints_.end(), [](const JointTrajectory &joint) { return joint.rests(); });
    }
    bool follows_path() const noexcept { return !path_.empty(); }
    /// Returns true if targets move or joints follow a path.
    bool follows() const noexcept { return !path_.empty() || moves_on(); }

    /// Run the proposed cycle. Does not allocate.
    void step() noexcept
    {
        time_ += joints_.empty() ? 0 : joints_[0].period();
        const bool rested = rests();
        for (JointTrajectory &joint : joints_)
            joint.step();
        // Restart with each motion, so that earlier pauses make no difference.
        anchored_ = rested || joints_.empty() ? 0 : (anchored_ + 1) % size();
        if (!joints_.empty())
            joints_[anchored_].anchor();
    }

  private:
    /// Maximum over all joints, s.
    template <class F>
    double longest(F &&of) const noexcept
    {
        double time = 0;
        for (const JointTrajectory &joint : joints_)
            time = std::max(time, of(joint));
        return time;
    }

    std::vector<JointTrajectory> joints_;
    std::vector<TargetFilter> filters_;
    bool stops_ = false;
    TargetPath path_;
    double time_ = 0;
    // Last anchored joint.
    std::size_t anchored_ = 0;
};

} // namespace eom

#endif
