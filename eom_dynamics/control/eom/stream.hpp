// SPDX-License-Identifier: Apache-2.0
// Setpoints of a sender or of a controller in front: what has arrived, what checks say, and where the last ones lead.
#ifndef EOM_STREAM_HPP
#define EOM_STREAM_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "commander.hpp"
#include "plausibility.hpp"

namespace eom {

/// The reference of a cycle, and the motion of those that were followed.
template <class Robot>
class Stream {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    /// Who writes references: a sender; or a controller in front, setpoints or targets, while trajectories are refused.
    enum class Sender { other, controller, controller_with_targets };

    explicit Stream(Commander<Robot> &commander) noexcept : checks(commander.robot), commander_(commander)
    {
        reference_.setpoint = commander.robot.rest();
    }

    PlausibilityChecks<Robot> checks;
    /// What a plausibility check has found last.
    Finding finding;

    void restart() noexcept
    {
        finding = {};
        checks.restart();
        leads_ = {};
        arrival_ = Arrival::none;
        followed_ = LONG_AGO;
        interval_ = 0;
    }

    /// Takes the reference of the next cycle.
    void refer(const Setpoint<Robot> &reference, std::int64_t stamp, Sender sender) noexcept
    {
        reference_.setpoint = reference;
        reference_.stamp = stamp;
        arrival_ = Arrival::fresh;
        sender_ = sender;
    }
    /// Ends a cycle: a reference that is early waits for the next one.
    void end_cycle() noexcept { arrival_ = arrival_ == Arrival::waits ? Arrival::early : Arrival::none; }
    /// The reference has been taken as a target.
    void take() noexcept { arrival_ = Arrival::none; }

    /// The reference taken last, and its stamp, ns.
    const Setpoint<Robot> &reference() const noexcept { return reference_.setpoint; }
    std::int64_t stamp() const noexcept { return reference_.stamp; }
    /// Whether there is one in this cycle, of a controller in front, and whether that is a target.
    bool received() const noexcept { return arrival_ != Arrival::none; }
    bool led() const noexcept { return received() && sender_ != Sender::other; }
    bool pursues() const noexcept { return received() && sender_ == Sender::controller_with_targets; }
    /// Whether one that is early waits for the next cycle.
    bool early() const noexcept { return arrival_ == Arrival::early; }

    /// Refuses the reference while another source leads; one that has waited is forgotten, as it is not of this cycle.
    void decline(const Reason &why) noexcept
    {
        if (arrival_ == Arrival::fresh)
            commander_.refuse(why);
    }

    /// Whether the stamp of the reference runs ahead of its arrival at a time of the loop and of the clock, ns, so that it waits for
    /// the next cycle, by stamp_check.
    bool is_early(std::int64_t now, std::int64_t clock) noexcept
    {
        const CheckPolicy policy = commander_.parameters.stamp_check;
        const bool fresh = arrival_ == Arrival::fresh;
        if (policy == CheckPolicy::ignore || stamp() == 0 || !leads_.is_early(stamp() - clock, now, fresh))
            return false;
        commander_.counts.early += fresh;
        arrival_ = policy == CheckPolicy::refuse ? Arrival::waits : Arrival::early;
        return policy == CheckPolicy::refuse;
    }

    /// Why the reference is refused before anything is computed, or by the plausibility checks, if it is.
    Refusal judged(std::int64_t now) noexcept
    {
        commander_.resuming = 0;
        if (const Refusal why = commander_.objection(reference()); why != Refusal::none)
            return why;
        const bool is_near = commander_.state_machine.resumes_near() || commander_.state_machine.is(Phase::aiming); // it was checked before
        if (is_near)
            commander_.resuming = commander_.parameters.start_tolerance;
        // By its own time, where its stamp goes back: what was refused as the clock was set back counts as well.
        const std::int64_t since = now - followed_ + std::max<std::int64_t>(interval_, 0);
        return checks.judge(stamp(), since, reference(), is_near, commander_.counts, finding);
    }

    /// Notes that the reference is followed at a time, ns.
    void follow(std::int64_t now) noexcept
    {
        checks.answered(stamp(), reference());
        interval_ = now - followed_;
        followed_ = now;
    }

    /// The joint of the reference that is furthest from where the arm is held; none where it is near, in a stop that was asked for.
    EOM_SELDOM Reason far_from_hold() const noexcept
    {
        Reason why(Refusal::far_from_hold);
        for (std::size_t i = 0; i < n; ++i) {
            const double away = std::fabs(reference().q[i] - commander_.output.setpoint.q[i]);
            if (!(away <= std::max(commander_.parameters.start_tolerance, why.value)))
                why = {Refusal::far_from_hold, Quantity::position, i, away, commander_.parameters.start_tolerance};
        }
        return why;
    }

    /// Whether setpoints have ended.
    bool ended() const noexcept { return std::abs(commander_.latest - followed_) > LONGEST_GAP; }

    /// The last command; at rest where setpoints have ended, or a motion of the loop was left.
    Setpoint<Robot> last() const noexcept
    {
        if (commander_.leader() != Leader::setpoints && !commander_.stands())
            return commander_.output.setpoint;
        return moved_on(ended() ? commander_.latest : followed_);
    }

    /// The setpoint of references at a time, ns: until the next one it moves on as the last one; where they have ended, it
    /// is held at rest.
    Setpoint<Robot> moved_on(std::int64_t now) const noexcept
    {
        Setpoint<Robot> x = commander_.output.setpoint;
        State<n> state = state_of(x);
        quiet(state, commander_.parameters.stop_duration);
        eom::take(state, x);
        const std::int64_t gap = now - followed_;
        if (std::abs(gap) > LONGEST_GAP || commander_.leader() != Leader::setpoints) { // or a motion of the loop was left
            x.qd = x.qdd = x.qddd = x.qdddd = x.kd = x.kdd = {};
            x.Wd = x.Wdd = {};
            x.base.wd = x.base.wdd = x.base.wddd = x.base.fd = x.base.fdd = {};
        } else {
            advance(x, static_cast<Scalar>(seconds(std::max<std::int64_t>(std::min(gap, interval_), 0))));
        }
        return x;
    }

  private:
    /// Of the reference of a cycle: none, one of this cycle, one that is early, and one that waits for the next cycle.
    enum class Arrival { none, fresh, early, waits };

    Commander<Robot> &commander_;
    StampedSetpoint<Robot> reference_;
    Sender sender_ = Sender::other;
    Arrival arrival_ = Arrival::none;
    StampLeads leads_;
    static constexpr std::int64_t LONG_AGO = std::numeric_limits<std::int64_t>::min() / 2;
    // Time of the last reference that was followed, and since the one before, ns.
    std::int64_t followed_ = LONG_AGO, interval_ = 0;
};

} // namespace eom

#endif
