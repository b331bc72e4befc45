// SPDX-License-Identifier: Apache-2.0
// The control loop of a robot behind the interface of any robot.
#ifndef EOM_LOOP_OF_HPP
#define EOM_LOOP_OF_HPP

#include <type_traits>

#include "any_loop.hpp"
#include "control_loop.hpp"
#include "linearization.hpp"

namespace eom {

template <class Robot>
class LoopOf final : public AnyLoop {
  public:
    static_assert(std::is_same<typename Robot::Scalar, double>::value, "loops of any robot have double precision");

    explicit LoopOf(const char *fingerprint) noexcept
    {
        robot = {Robot::name,        fingerprint,  Robot::joint_names,        Robot::motor_names, Robot::tool_names,
                 Robot::motor_joint, Robot::rigid, Robot::commanded_stiffness};
        measured = {measurement_.q, measurement_.qd, measurement_.motor_position, measurement_.motor_velocity};
        const LoopOutput<Robot> &y = loop_.output();
        output.setpoint = view<const double>(y.setpoint);
        output.tau = y.command.tau;
        output.taud = y.command.taud;
        output.taudd = y.command.taudd;
        output.deflection = y.deflection;
        output.sent_motor_position = y.sent_motor_position();
        output.sent_motor_velocity = y.sent_motor_velocity();
        output.sent_motor_effort = y.sent_motor_effort();
        output.sent_joint_effort = y.sent_joint_effort();
        reference = view<const double>(loop_.reference());
    }

    bool missing(std::size_t number) const noexcept override { return references_.missing()[number]; }

    double command_lead(double period) const noexcept override { return Robot::command_lead(period); }

    const char *configure(const LoopSettings &settings, const Gains &gains, MissingDerivatives missing,
                          double reference_lead, bool measures_links, bool measures_motors) noexcept override
    {
        LoopParameters<Robot> parameters;
        static_cast<LoopSettings &>(parameters) = settings;
        if (!(spread(gains.motor_kp, parameters.motor_kp) && spread(gains.motor_kd, parameters.motor_kd) &&
              spread(gains.link_kp, parameters.link_kp) && spread(gains.link_kd, parameters.link_kd) &&
              spread(gains.stiffness_gains, parameters.stiffness_gains)))
            return "gains must have one entry, or one for each motor or joint";
        if (settings.linearize && !(measures_links && measures_motors))
            return "linearize needs the measurements links and motors";
        measurement_.links = measures_links;
        measurement_.motors = measures_motors;
        references_.missing_derivatives = missing;
        references_.lead = reference_lead;
        keeps_efforts_ = settings.effort_on_deactivate == EffortOnDeactivate::keep;
        return loop_.configure(parameters);
    }

    const char *restart(std::int64_t now) noexcept override
    {
        references_.restart();
        read_drives(measurement_);
        const bool known = (!measurement_.links || finite(measurement_.q)) &&
                           (measurement_.links || !measurement_.motors || finite(measurement_.motor_position));
        const char *reason = loop_.restart(known ? measurement_ : Measurement<Robot>{}, now);
        report();
        return reason;
    }

    OutputView release() noexcept override
    {
        read_drives(measurement_);
        const DriveCommand<Robot> &sent = loop_.release(measurement_);
        OutputView released;
        released.sent_motor_velocity = sent.velocity;
        if (!keeps_efforts_) {
            released.sent_motor_effort = sent.effort;
            released.sent_joint_effort = sent.joint_effort;
        }
        return released;
    }

    bool read_references(double *numbers, std::int64_t now) noexcept override
    {
        read_ = references_.read(numbers, now);
        if (read_)
            loop_.refer(references_.setpoint(), now, true);
        return read_;
    }

    void refer_to_mailbox() noexcept override { loop_.refer_to_mailbox(); }

    void update(std::int64_t now, double period) noexcept override
    {
        read_drives(measurement_);
        const std::uint64_t refused = loop_.counts().refused;
        loop_.update(now, period, measurement_);
        if (read_ && loop_.counts().refused == refused)
            references_.keep();
        read_ = false;
        report();
    }

    SetpointView<double> draft() noexcept override
    {
        Setpoint<Robot> &x = loop_.setpoints.draft().setpoint;
        x = {};
        return view<double>(x);
    }

    void send(std::int64_t stamp) noexcept override
    {
        loop_.setpoints.draft().stamp = stamp;
        loop_.setpoints.send();
    }

    const char *send_spline(std::int64_t stamp, Span<const double> knots, std::size_t degree,
                            Span<const double> coefficients, Span<const std::size_t> places) override
    {
        auto &draft = loop_.trajectories.draft();
        draft.stamp = stamp;
        draft.stop = knots.size() == 0;
        std::array<std::size_t, Robot::joints> joints;
        std::copy(places.begin(), places.end(), joints.begin());
        const char *reason = draft.stop ? nullptr : draft.spline.assign(knots, degree, coefficients, joints);
        if (!reason)
            loop_.trajectories.send();
        return reason;
    }

    const char *send_payload(std::size_t tool, const Body &body, double blend_time) noexcept override
    {
        if (const char *reason = objection(body))
            return reason;
        payload_.at_tool[tool] = body;
        payload_.blend_time = blend_time;
        loop_.payloads.draft() = payload_;
        loop_.payloads.send();
        return nullptr;
    }

  private:
    /// One number for all entries, or one for each; returns whether the size is right.
    template <std::size_t size>
    static bool spread(Span<const double> numbers, std::array<double, size> &entries) noexcept
    {
        if (numbers.size() != 1 && numbers.size() != size)
            return false;
        for (std::size_t i = 0; i < size; ++i)
            entries[i] = numbers[numbers.size() == 1 ? 0 : i];
        return true;
    }

    template <class Number, class Vectors>
    static SetpointView<Number> view(Vectors &x) noexcept
    {
        return {x.q, x.qd, x.qdd, x.qddd, x.qdddd, x.W, x.Wd, x.Wdd, x.k, x.kd, x.kdd, x.deflection, x.friction_state};
    }

    void report() noexcept
    {
        const LoopOutput<Robot> &y = loop_.output();
        state = {y.status, y.valid, loop_.playing(), loop_.counts(), loop_.refusal(), loop_.payload_refusal()};
    }

    ControlLoop<Robot> loop_;
    References<Robot> references_;
    // Whether they were read in this cycle.
    bool read_ = false;
    bool keeps_efforts_ = false;
    Measurement<Robot> measurement_;
    // What the tools carry after all messages, in the thread of the node.
    Payload<Robot> payload_;
};

} // namespace eom

#endif
