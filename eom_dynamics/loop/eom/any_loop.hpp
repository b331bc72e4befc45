// SPDX-License-Identifier: Apache-2.0
// Interface of the control loop of any robot, whose sizes are known when it is made.
#ifndef EOM_ANY_LOOP_HPP
#define EOM_ANY_LOOP_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "loop_parameters.hpp"
#include "payload.hpp"
#include "references.hpp"
#include "robot_table.hpp"

namespace eom {

/// Vectors of a setpoint: those of Setpoint and of its BaseMotion, with the flag that this is there.
template <class Number, class Flag = std::conditional_t<std::is_const<Number>::value, const bool, bool>>
struct SetpointView {
    Span<Number> q, qd, qdd, qddd, qdddd, W, Wd, Wdd, k, kd, kdd, deflection, friction_state;
    Span<Number> w, wd, wdd, wddd, f, fd, fdd;
    Flag *on_base = nullptr;
};

/// Vectors of a measurement: those of Measurement, of motors in the units of their drives.
struct MeasurementView {
    Span<double> q, qd, motor_position, motor_velocity;
};

/// Vectors of an output: those of LoopOutput and of its Command, and what is sent.
struct OutputView {
    SetpointView<const double> setpoint;
    Span<const double> tau, taud, taudd, deflection;
    Span<const double> sent_motor_position, sent_motor_velocity, sent_motor_effort, sent_joint_effort;
};

/// Gains of LoopParameters, each one number for all entries or one for each.
struct Gains {
    Span<const double> motor_kp, motor_kd, link_kp, link_kd, stiffness_gains;
};

/// What happened until a cycle.
struct LoopState {
    Status status = Status::waiting;
    bool valid = false, playing = false, waiting = false;
    LoopCounts counts;
    Refusal refusal = Refusal::none;
    const char *payload_refusal = nullptr;
    Finding finding;
};

/// ControlLoop with References, as an object of any robot. LoopOf implements it.
class AnyLoop {
  public:
    AnyLoop() = default;
    AnyLoop(const AnyLoop &) = delete;
    AnyLoop &operator=(const AnyLoop &) = delete;
    virtual ~AnyLoop() = default;

    RobotFacts robot;
    /// To be written before restart() and update().
    MeasurementView measured;
    /// Results of the last cycle.
    OutputView output;
    LoopState state;
    /// The reference taken last, and which of the numbers of read_references() were missing.
    SetpointView<const double> reference;
    virtual bool missing(std::size_t number) const noexcept = 0;

    // --- Not while the loop runs --------------------------------------------------------

    /// Lead of commands of a period, s: eom::robots.
    virtual double command_lead(double period) const noexcept = 0;
    /// Takes parameters and what is measured; returns what is wrong with them, or null.
    virtual const char *configure(const LoopSettings &settings, const Gains &gains, MissingDerivatives missing,
                                  double reference_lead, bool measures_links, bool measures_motors) noexcept = 0;
    /// ControlLoop::restart at a time, ns, with the measured motion if its position is finite.
    virtual const char *restart(std::int64_t now) noexcept = 0;
    /// ControlLoop::release with what is measured: what is sent that changes, so no positions.
    virtual OutputView release() noexcept = 0;

    // --- In the cycle: neither allocates nor locks nor throws ---------------------------

    /// Reads and clears references as References; returns whether those are there that are required.
    virtual bool read_references(double *numbers, std::int64_t now) noexcept = 0;
    virtual void refer_to_mailbox() noexcept = 0;
    /// ControlLoop::update.
    virtual void update(std::int64_t now, double period) noexcept = 0;

    // --- Messages, from one other thread ------------------------------------------------

    /// A setpoint at rest to be written, then sent with its stamp, ns.
    virtual SetpointView<double> draft() noexcept = 0;
    virtual void send(std::int64_t stamp) noexcept = 0;
    /// Spline::assign, of polynomials with an origin, ns; without knots it stops. Returns what is wrong, or null.
    virtual const char *send_spline(std::int64_t stamp, Span<const double> knots, std::size_t degree,
                                    Span<const double> coefficients, Span<const std::size_t> places) = 0;
    /// What a tool carries; returns what is wrong with it, or null.
    virtual const char *send_payload(std::size_t tool, const Body &body, double blend_time) noexcept = 0;
};

} // namespace eom

#endif
