// SPDX-License-Identifier: Apache-2.0
// References from a topic or a chained controller: arrival, stream checks, and extrapolation of the last setpoint.
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

/// Reference of a cycle, and the motion of the accepted references.
template <class Robot>
class Stream {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    /// Source of references: external, or a chained controller that writes setpoints or targets. With a chained controller,
    /// trajectories are refused.
    enum class Sender { other, controller, controller_with_targets };

    explicit Stream(Commander<Robot> &commander) noexcept : checks(commander.robot), commander_(commander)
    {
        reference_.setpoint = commander.robot.rest();
    }

    PlausibilityChecks<Robot> checks;
    /// Finding of the last failed stream check.
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

    /// Set the reference of the next cycle.
    void refer(const Setpoint<Robot> &reference, std::int64_t stamp, Sender sender) noexcept
    {
        reference_.setpoint = reference;
        reference_.stamp = stamp;
        arrival_ = Arrival::fresh;
        sender_ = sender;
    }
    /// End a cycle; a deferred reference is processed in the next cycle.
    void end_cycle() noexcept { arrival_ = arrival_ == Arrival::waits ? Arrival::early : Arrival::none; }
    /// Consume the reference as a target.
    void take() noexcept { arrival_ = Arrival::none; }

    const Setpoint<Robot> &reference() const noexcept { return reference_.setpoint; }
    /// Stamp of reference(), ns.
    std::int64_t stamp() const noexcept { return reference_.stamp; }
    /// Returns true if this cycle has a reference.
    bool received() const noexcept { return arrival_ != Arrival::none; }
    bool led() const noexcept { return received() && sender_ != Sender::other; } ///< from a chained controller
    bool pursues() const noexcept { return received() && sender_ == Sender::controller_with_targets; } ///< as a target
    /// Returns true if an early reference is deferred to the next cycle.
    bool early() const noexcept { return arrival_ == Arrival::early; }

    /// Refuse the reference because another source is active. A deferred reference is dropped silently.
    void decline(const Reason &why) noexcept
    {
        if (arrival_ == Arrival::fresh)
            commander_.refuse(why);
    }

    /// Returns true if stamp_check defers the reference to the next cycle, because its stamp is ahead of its arrival. `now` is the
    /// loop time and `clock` the clock time, ns.
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

    /// Returns the refusal by validity or stream checks, or `none`.
    Refusal judged(std::int64_t now) noexcept
    {
        commander_.resuming = 0;
        if (const Refusal why = commander_.objection(reference()); why != Refusal::none)
            return why;
        const bool is_near = commander_.state_machine.resumes_near() || commander_.state_machine.is(Phase::aiming); // checked then
        if (is_near)
            commander_.resuming = commander_.parameters.start_tolerance;
        // If the stamp goes back, the interval of arrivals counts, including setpoints refused when the clock was set back.
        const std::int64_t since = now - followed_ + std::max<std::int64_t>(interval_, 0);
        return checks.judge(stamp(), since, reference(), is_near, commander_.counts, finding);
    }

    /// Commit the reference as accepted at `now`, ns.
    void follow(std::int64_t now) noexcept
    {
        checks.answered(stamp(), reference());
        interval_ = now - followed_;
        followed_ = now;
    }

    /// Joint of the reference furthest from the held position. No joint if it is near but a stop was requested.
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

    /// Returns true if there was no accepted reference for LONGEST_GAP.
    bool ended() const noexcept { return std::abs(commander_.latest - followed_) > LONGEST_GAP; }

    /// Last command, at rest if references have ended or a motion of the loop was left.
    Setpoint<Robot> last() const noexcept
    {
        if (commander_.leader() != Leader::setpoints && !commander_.stands())
            return commander_.output.setpoint;
        return moved_on(ended() ? commander_.latest : followed_);
    }

    /// Extrapolated setpoint at `now`, ns, up to the expected next reference; at rest if references have ended.
    Setpoint<Robot> moved_on(std::int64_t now) const noexcept
    {
        Setpoint<Robot> x = commander_.output.setpoint;
        State<n> state = state_of(x);
        quiet(state, commander_.parameters.stop_duration);
        eom::take(state, x);
        const std::int64_t gap = now - followed_;
        if (std::abs(gap) > LONGEST_GAP || commander_.leader() != Leader::setpoints) { // or after leaving a motion of the loop
            x.qd = x.qdd = x.qddd = x.qdddd = x.kd = x.kdd = {};
            x.Wd = x.Wdd = {};
            x.base.wd = x.base.wdd = x.base.wddd = x.base.fd = x.base.fdd = {};
        } else {
            advance(x, static_cast<Scalar>(seconds(std::max<std::int64_t>(std::min(gap, interval_), 0))));
        }
        return x;
    }

  private:
    /// Arrival of the reference: none, received in this cycle, early, or deferred to the next cycle.
    enum class Arrival { none, fresh, early, waits };

    Commander<Robot> &commander_;
    StampedSetpoint<Robot> reference_;
    Sender sender_ = Sender::other;
    Arrival arrival_ = Arrival::none;
    StampLeads leads_;
    static constexpr std::int64_t LONG_AGO = std::numeric_limits<std::int64_t>::min() / 2;
    // Time of the last accepted reference, and its distance to the previous one, ns.
    std::int64_t followed_ = LONG_AGO, interval_ = 0;
};

} // namespace eom

#endif
