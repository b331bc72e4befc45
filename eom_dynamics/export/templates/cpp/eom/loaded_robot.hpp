// SPDX-License-Identifier: Apache-2.0
// A robot of a library that is loaded at run time, as a type for the class templates of eom.
#ifndef EOM_LOADED_ROBOT_HPP
#define EOM_LOADED_ROBOT_HPP

#include <algorithm>
#include <limits>
#include <memory>

#include "loop_of.hpp"

namespace eom {

/// A robot of at most N joints, M motors and T tools, whose table remains where it is.
///
/// Vectors have room for the most. Places without a joint or motor are zero, and within all limits.
template <std::size_t N, std::size_t M, std::size_t T>
class LoadedRobot {
  public:
    using Scalar = double;
    static constexpr std::size_t joints = N, motors = M, tools = T;

    // What such a robot may have; functions say whether it has.
    static constexpr bool commanded_stiffness = true, damped = true, has_presliding = true, has_drives = true;
    static constexpr bool has_linearization = true;
    static constexpr Scalar settled = SETTLED;
    static constexpr std::array<Scalar, N> nominal_stiffness{};
    static constexpr std::array<Scalar, M> settled_friction = [] {
        std::array<Scalar, M> states{};
        for (Scalar &state : states)
            state = settled;
        return states;
    }();

    struct Ends {
        std::array<Scalar, N> q, qd, qdd, qddd, tau, taud;
        std::array<Scalar, M> motor_velocity, motor_effort;
    };

    /// Numbers with room for the most.
    struct Numbers {
        explicit Numbers(const RobotTable &table) noexcept
            : lower(ends(table.lower, -infinity)), upper(ends(table.upper, infinity)),
              largest_effort(widened<N>(table.largest_effort, infinity)), turn(widened<N>(table.turn, infinity)),
              voltage_limit(widened<M>(table.voltage_limit, infinity))
        {
        }

        Ends lower, upper;
        std::array<Scalar, N> largest_effort, turn;
        std::array<Scalar, M> voltage_limit;
    };

    LoadedRobot(const RobotTable &table, const Numbers &numbers) noexcept
        : lower(numbers.lower), upper(numbers.upper), largest_effort(numbers.largest_effort), turn(numbers.turn),
          voltage_limit(numbers.voltage_limit), motor_joint(table.facts.motor_joint), joint_sides(table.joint_sides),
          load_weights(table.load_weights), table_(table), kernels_(table.kernels)
    {
    }

    const Ends &lower, &upper;
    const std::array<Scalar, N> &largest_effort, &turn;
    const std::array<Scalar, M> &voltage_limit;
    const Span<const std::size_t> motor_joint;
    const Span<const double> joint_sides, load_weights;

    std::size_t joint_count() const noexcept { return table_.joints; }
    std::size_t motor_count() const noexcept { return table_.motors; }
    bool commands_stiffness() const noexcept { return table_.facts.commanded_stiffness; }
    bool filters() const noexcept { return kernels_.filtered.call; }
    bool slides() const noexcept { return kernels_.presliding.call; }
    bool couples() const noexcept { return table_.transmission; }
    bool converts() const noexcept { return kernels_.drive_command.call; }
    bool carries() const noexcept { return kernels_.feedforward_with_payload.call; }
    bool base_moves() const noexcept { return kernels_.feedforward_on_base.call; }
    bool linearizes() const noexcept { return kernels_.linearizing_setpoint.call; }

    static Scalar default_lead() noexcept { return 0; }
    Scalar command_lead(Scalar period) const noexcept
    {
        return table_.mean_age * (table_.command_period > 0 ? table_.command_period : period) + table_.drive_delay;
    }

    Setpoint<LoadedRobot> rest() const noexcept
    {
        Setpoint<LoadedRobot> x;
        x.k = widened<N>(table_.nominal_stiffness, 0);
        return x;
    }

    void inverse_dynamics(const Setpoint<LoadedRobot> &x, Command<LoadedRobot> &y) const noexcept
    {
        const Kernels &k = kernels_;
        const Kernel &at_rest = x.loaded ? k.inverse_dynamics_with_payload : k.inverse_dynamics;
        const Kernel &on_base = x.loaded ? k.inverse_dynamics_on_base_with_payload : k.inverse_dynamics_on_base;
        compute(x, y, x.on_base ? on_base : at_rest);
    }

    void feedforward(const Setpoint<LoadedRobot> &x, Command<LoadedRobot> &y) const noexcept
    {
        const Kernels &k = kernels_;
        const Kernel &at_rest = x.loaded ? k.feedforward_with_payload : k.feedforward;
        compute(x, y, !x.on_base ? at_rest : x.loaded ? k.feedforward_on_base_with_payload : k.feedforward_on_base);
    }

    template <class Motors, class Shafts>
    void drive(const Motors &x, Shafts &y) const noexcept
    {
        Places at;
        at.in(Vector::motor_velocity) = x.motor_velocity.data();
        at.in(Vector::motor_effort) = x.motor_effort.data();
        at.out(Vector::torque) = y.torque.data();
        at.out(Vector::speed) = y.speed.data();
        at.out(Vector::current) = y.current.data();
        at.out(Vector::voltage) = y.voltage.data();
        at.out(Vector::clipped_effort) = y.clipped_effort.data();
        at.run(kernels_.drive);
    }

    void filtered(const std::array<Scalar, N> &deflection, const Command<LoadedRobot> &before,
                  const Command<LoadedRobot> &after, const std::array<Scalar, 1> &step,
                  std::array<Scalar, N> &deflection_now) const noexcept
    {
        Places at;
        at.in(Vector::deflection) = deflection.data();
        at.in(Vector::tau_before) = before.tau.data();
        at.in(Vector::taud_before) = before.taud.data();
        at.in(Vector::taudd_before) = before.taudd.data();
        at.in(Vector::tau) = after.tau.data();
        at.in(Vector::taud) = after.taud.data();
        at.in(Vector::taudd) = after.taudd.data();
        at.in(Vector::step) = step.data();
        at.out(Vector::deflection_now) = deflection_now.data();
        at.run(kernels_.filtered);
    }

    void presliding(const std::array<Scalar, M> &friction_state, const Command<LoadedRobot> &before,
                    const Command<LoadedRobot> &after, const std::array<Scalar, 1> &step,
                    std::array<Scalar, M> &friction_state_now) const noexcept
    {
        Places at;
        at.in(Vector::friction_state) = friction_state.data();
        at.in(Vector::motor_position_before) = before.motor_position.data();
        at.in(Vector::motor_position) = after.motor_position.data();
        at.in(Vector::motor_velocity) = after.motor_velocity.data();
        at.in(Vector::step) = step.data();
        at.out(Vector::friction_state_now) = friction_state_now.data();
        at.run(kernels_.presliding);
    }

    void drive_command(const Setpoint<LoadedRobot> &x, const Command<LoadedRobot> &y,
                       const std::array<Scalar, M> &motor_effort, const std::array<Scalar, N> &joint_effort,
                       const std::array<Scalar, 2> &share, DriveCommand<LoadedRobot> &sent) const noexcept
    {
        Places at;
        at.take(x);
        at.in(Vector::tau) = joint_effort.data();
        at.in(Vector::taud) = y.taud.data();
        at.in(Vector::motor_position) = y.motor_position.data();
        at.in(Vector::motor_velocity) = y.motor_velocity.data();
        at.in(Vector::motor_acceleration) = y.motor_acceleration.data();
        at.in(Vector::motor_effort) = motor_effort.data();
        at.in(Vector::share) = share.data();
        at.out(Vector::drive_position) = sent.position.data();
        at.out(Vector::drive_velocity) = sent.velocity.data();
        at.out(Vector::drive_effort) = sent.effort.data();
        at.out(Vector::sent_effort) = sent.joint_effort.data();
        at.out(Vector::sent_effort_rate) = sent.joint_effort_rate.data();
        at.run(x.loaded && kernels_.drive_command_with_payload.call ? kernels_.drive_command_with_payload
                                                                    : kernels_.drive_command);
    }

    void drive_state(const std::array<Scalar, N> &q, const std::array<Scalar, N> &qd,
                     const std::array<Scalar, M> &drive_position, const std::array<Scalar, M> &drive_velocity,
                     const std::array<Scalar, M> &drive_effort, const std::array<Scalar, 2> &share,
                     std::array<Scalar, M> &motor_position, std::array<Scalar, M> &motor_velocity,
                     std::array<Scalar, M> &motor_effort) const noexcept
    {
        Places at;
        at.in(Vector::q) = q.data();
        at.in(Vector::qd) = qd.data();
        at.in(Vector::drive_position) = drive_position.data();
        at.in(Vector::drive_velocity) = drive_velocity.data();
        at.in(Vector::drive_effort) = drive_effort.data();
        at.in(Vector::share) = share.data();
        at.out(Vector::motor_position) = motor_position.data();
        at.out(Vector::motor_velocity) = motor_velocity.data();
        at.out(Vector::motor_effort) = motor_effort.data();
        at.run(kernels_.drive_state);
    }

    template <class Measured>
    void linearizing_setpoint(const Setpoint<LoadedRobot> &x, const Measured &measured,
                              const std::array<Scalar, 4 * N> &gains, const std::array<Scalar, 2> &stiffness_gains,
                              const std::array<Scalar, N> &qdd_held, const std::array<Scalar, N> &qddd_held,
                              Setpoint<LoadedRobot> &y) const noexcept
    {
        Places at;
        at.take(x);
        at.in(Vector::q) = measured.q.data();
        at.in(Vector::qd) = measured.qd.data();
        at.in(Vector::theta) = measured.motor_position.data();
        at.in(Vector::thetad) = measured.motor_velocity.data();
        at.in(Vector::q_reference) = x.q.data();
        at.in(Vector::qd_reference) = x.qd.data();
        at.in(Vector::qdd_reference) = x.qdd.data();
        at.in(Vector::qddd_reference) = x.qddd.data();
        at.in(Vector::qdddd_reference) = x.qdddd.data();
        at.in(Vector::gains) = gains.data();
        at.in(Vector::stiffness_gains) = stiffness_gains.data();
        at.in(Vector::qdd_held) = qdd_held.data();
        at.in(Vector::qddd_held) = qddd_held.data();
        std::array<std::array<Scalar, N>, 4> springs;
        at.out(Vector::spring_effort) = springs[0].data();
        at.out(Vector::spring_effort_rate) = springs[1].data();
        at.out(Vector::stiffness) = springs[2].data();
        at.out(Vector::stiffness_rate) = springs[3].data();
        at.out(Vector::qdd) = y.qdd.data();
        at.out(Vector::qddd) = y.qddd.data();
        at.out(Vector::qdddd) = y.qdddd.data();
        at.out(Vector::k_commanded) = y.k.data();
        at.out(Vector::kd_commanded) = y.kd.data();
        at.out(Vector::kdd_commanded) = y.kdd.data();
        at.run(x.loaded ? kernels_.linearizing_setpoint_with_payload : kernels_.linearizing_setpoint);
    }

  private:
    static constexpr Scalar infinity = std::numeric_limits<Scalar>::infinity();

    /// Where the vectors of a call are; those that its kernel has must be written.
    class Places {
      public:
        const double *&in(Vector name) noexcept { return in_[static_cast<std::size_t>(name)]; }
        double *&out(Vector name) noexcept { return out_[static_cast<std::size_t>(name)]; }

        void take(const Setpoint<LoadedRobot> &x) noexcept
        {
            in(Vector::q) = x.q.data();
            in(Vector::qd) = x.qd.data();
            in(Vector::qdd) = x.qdd.data();
            in(Vector::qddd) = x.qddd.data();
            in(Vector::qdddd) = x.qdddd.data();
            in(Vector::W) = x.W.data();
            in(Vector::Wd) = x.Wd.data();
            in(Vector::Wdd) = x.Wdd.data();
            in(Vector::k) = x.k.data();
            in(Vector::kd) = x.kd.data();
            in(Vector::kdd) = x.kdd.data();
            in(Vector::deflection) = x.deflection.data();
            in(Vector::friction_state) = x.friction_state.data();
            in(Vector::P) = x.P.data();
            in(Vector::Pd) = x.Pd.data();
            in(Vector::Pdd) = x.Pdd.data();
            if (!x.on_base)
                return;
            in(Vector::w) = x.base.w.data();
            in(Vector::wd) = x.base.wd.data();
            in(Vector::wdd) = x.base.wdd.data();
            in(Vector::wddd) = x.base.wddd.data();
            in(Vector::f) = x.base.f.data();
            in(Vector::fd) = x.base.fd.data();
            in(Vector::fdd) = x.base.fdd.data();
        }

        void give(Command<LoadedRobot> &y) noexcept
        {
            out(Vector::tau) = y.tau.data();
            out(Vector::taud) = y.taud.data();
            out(Vector::taudd) = y.taudd.data();
            out(Vector::motor_position) = y.motor_position.data();
            out(Vector::motor_velocity) = y.motor_velocity.data();
            out(Vector::motor_acceleration) = y.motor_acceleration.data();
            out(Vector::motor_effort) = y.motor_effort.data();
        }

        void run(const Kernel &kernel) const noexcept
        {
            const double *inputs[MOST_VECTORS];
            double *outputs[MOST_VECTORS];
            for (std::size_t i = 0; i < kernel.inputs.size(); ++i)
                inputs[i] = in_[static_cast<std::size_t>(kernel.inputs[i])];
            for (std::size_t i = 0; i < kernel.outputs.size(); ++i)
                outputs[i] = out_[static_cast<std::size_t>(kernel.outputs[i])];
            kernel.call(inputs, outputs);
        }

      private:
        static constexpr std::size_t COUNT = static_cast<std::size_t>(Vector::count);

        const double *in_[COUNT];
        double *out_[COUNT];
    };

    static void compute(const Setpoint<LoadedRobot> &x, Command<LoadedRobot> &y, const Kernel &kernel) noexcept
    {
        Places at;
        std::array<Scalar, M> spin; // of carried rotors
        at.take(x);
        at.give(y);
        at.out(Vector::spin) = spin.data();
        at.run(kernel);
    }

    template <std::size_t size>
    static std::array<Scalar, size> widened(const Span<const double> &numbers, Scalar rest) noexcept
    {
        std::array<Scalar, size> wide;
        std::fill(std::copy(numbers.begin(), numbers.end(), wide.begin()), wide.end(), rest);
        return wide;
    }

    static Ends ends(const TableEnds &x, Scalar rest) noexcept
    {
        return {widened<N>(x.q, rest),    widened<N>(x.qd, rest),  widened<N>(x.qdd, rest),
                widened<N>(x.qddd, rest), widened<N>(x.tau, rest), widened<N>(x.taud, rest),
                widened<M>(x.motor_velocity, rest), widened<M>(x.motor_effort, rest)};
    }

    const RobotTable &table_;
    const Kernels &kernels_;
};

namespace detail {

template <std::size_t N, std::size_t M, std::size_t T>
struct LoopOfTable final : LoadedRobot<N, M, T>::Numbers, LoopOf<LoadedRobot<N, M, T>> {
    using Robot = LoadedRobot<N, M, T>;

    explicit LoopOfTable(const RobotTable &table) noexcept
        : Robot::Numbers(table), LoopOf<Robot>(table.facts, Robot(table, *this))
    {
    }

    static std::unique_ptr<AnyLoop> make(const RobotTable &table)
    {
        if (table.joints > N || table.motors > M || table.tools > T)
            return nullptr;
        return std::make_unique<LoopOfTable>(table);
    }
};

} // namespace detail

/// The loop of a robot, whose table remains where it is; null where it has more than MOST_JOINTS and so on.
inline std::unique_ptr<AnyLoop> make_loop(const RobotTable &table)
{
    // The fewer places, the shorter the cycle.
    auto loop = detail::LoopOfTable<8, 8, 1>::make(table);
    if (!loop)
        loop = detail::LoopOfTable<16, 16, 2>::make(table);
    if (!loop)
        loop = detail::LoopOfTable<32, 32, 4>::make(table);
    return loop ? std::move(loop) : detail::LoopOfTable<MOST_JOINTS, MOST_MOTORS, MOST_TOOLS>::make(table);
}

} // namespace eom

#endif
