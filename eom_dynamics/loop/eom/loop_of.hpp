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
class LoopOf : public AnyLoop {
  public:
    static_assert(std::is_same<typename Robot::Scalar, double>::value, "loops of any robot have double precision");

    explicit LoopOf(const RobotFacts &facts, const Robot &of = Robot()) noexcept
        : robot_(of), loop_(of), references_(of)
    {
        robot = facts;
        measured = {joints(measurement_.q), joints(measurement_.qd), motors(measurement_.motor_position),
                    motors(measurement_.motor_velocity)};
        const LoopOutput<Robot> &y = loop_.output();
        output.setpoint = view<const double>(y.setpoint);
        output.tau = joints(y.command.tau);
        output.taud = joints(y.command.taud);
        output.taudd = joints(y.command.taudd);
        output.deflection = motors(y.deflection);
        output.sent_motor_position = motors(y.sent_motor_position());
        output.sent_motor_velocity = motors(y.sent_motor_velocity());
        output.sent_motor_effort = motors(y.sent_motor_effort());
        output.sent_joint_effort = joints(y.sent_joint_effort());
        reference = view<const double>(loop_.reference());
    }

    bool missing(std::size_t number) const noexcept override { return references_.missing()[number]; }

    double command_lead(double period) const noexcept override { return robot_.command_lead(period); }

    const char *configure(const LoopSettings &settings, const Gains &gains, MissingDerivatives missing,
                          double reference_lead, bool measures_links, bool measures_motors) noexcept override
    {
        LoopParameters<Robot> parameters;
        static_cast<LoopSettings &>(parameters) = settings;
        if (!(spread(gains.motor_kp, motors(parameters.motor_kp)) &&
              spread(gains.motor_kd, motors(parameters.motor_kd)) &&
              spread(gains.link_kp, joints(parameters.link_kp)) && spread(gains.link_kd, joints(parameters.link_kd)) &&
              spread(gains.stiffness_gains, parameters.stiffness_gains)))
            return "gains must have one entry, or one for each motor or joint";
        if (settings.linearize && !(measures_links && measures_motors))
            return "linearize needs the measurements links and motors";
        // Other hosts may know of losses themselves.
        if (settings.on_setpoint_loss != LossPolicy::none && !(settings.setpoint_timeout > 0))
            return "on_setpoint_loss needs a setpoint_timeout > 0, unless it is none";
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
        read_drives(measurement_, robot_);
        const bool known = (!measurement_.links || finite(measurement_.q)) &&
                           (measurement_.links || !measurement_.motors || finite(measurement_.motor_position));
        const char *reason = loop_.restart(known ? measurement_ : Measurement<Robot>{}, now);
        report();
        return reason;
    }

    OutputView release() noexcept override
    {
        read_drives(measurement_, robot_);
        const DriveCommand<Robot> &sent = loop_.release(measurement_);
        OutputView released;
        released.sent_motor_velocity = motors(sent.velocity);
        if (!keeps_efforts_) {
            released.sent_motor_effort = motors(sent.effort);
            released.sent_joint_effort = joints(sent.joint_effort);
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
        read_drives(measurement_, robot_);
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
        x = robot_.rest();
        x.base = {};
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
        const char *reason = draft.stop ? nullptr : draft.spline.assign(knots, degree, coefficients, places);
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
    static bool spread(Span<const double> numbers, Span<double> entries) noexcept
    {
        if (numbers.size() != 1 && numbers.size() != entries.size())
            return false;
        for (std::size_t i = 0; i < entries.size(); ++i)
            entries[i] = numbers[numbers.size() == 1 ? 0 : i];
        return true;
    }

    /// The entries of the robot's joints in a vector that may have more places, and of its motors and tools.
    template <class Vector>
    auto joints(Vector &x) const noexcept
    {
        return Span(x.data(), robot_.joint_count());
    }
    template <class Vector>
    auto motors(Vector &x) const noexcept
    {
        return Span(x.data(), robot_.motor_count());
    }
    template <class Vector>
    auto tools(Vector &x) const noexcept
    {
        return Span(x.data(), 6 * robot.tool_names.size());
    }

    template <class Number, class Vectors>
    SetpointView<Number> view(Vectors &x) const noexcept
    {
        auto &base = x.base;
        return {joints(x.q), joints(x.qd), joints(x.qdd), joints(x.qddd), joints(x.qdddd), tools(x.W), tools(x.Wd),
                tools(x.Wdd), joints(x.k), joints(x.kd), joints(x.kdd), joints(x.deflection), motors(x.friction_state),
                base.w, base.wd, base.wdd, base.wddd, base.f, base.fd, base.fdd, &x.on_base};
    }

    void report() noexcept
    {
        const LoopOutput<Robot> &y = loop_.output();
        state = {y.status,       y.valid,          loop_.playing(),         loop_.waiting(),
                 loop_.counts(), loop_.refusal(), loop_.payload_refusal(), loop_.finding()};
    }

    const Robot robot_;
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
