// SPDX-License-Identifier: Apache-2.0
// Robot from a table that is set at run time, as a type for the class templates of eom.
#ifndef EOM_LOADED_ROBOT_HPP
#define EOM_LOADED_ROBOT_HPP

#include <algorithm>
#include <limits>

#include "external_effort.hpp"
#include "robot_table.hpp"

namespace eom {

/// Robot with at most N joints, M motors and T tools. Keep its table and numbers in place while it is used.
///
/// Vectors have the maximum size. Unused entries are zero and have no limits.
template <std::size_t N, std::size_t M, std::size_t T>
class LoadedRobot {
  public:
    using Scalar = double;
    static constexpr std::size_t joints = N, motors = M, tools = T;

    static constexpr Scalar settled = SETTLED;
    static constexpr std::array<Scalar, N> nominal_stiffness{};
    static constexpr std::array<Scalar, M> settled_friction = [] {
        std::array<Scalar, M> states{};
        for (Scalar &state : states)
            state = settled;
        return states;
    }();

    struct Ends {
#define EOM_WIDE(size, name) std::array<Scalar, size> name;
        EOM_LIMITED(EOM_WIDE)
    };

    /// Limits of the table, padded to the maximum size.
    struct Numbers {
        explicit Numbers(const RobotTable &table) noexcept
            : lower(ends(table.lower, -infinity)), upper(ends(table.upper, infinity)),
              largest_effort(widened<N>(table.largest_effort, infinity)),
              turn(widened<N>(table.turn, infinity)), jump_rate(widened<N>(table.jump_rate, infinity)),
              voltage_limit(widened<M>(table.voltage_limit, infinity)), motor_speed(widened<M>(table.motor_speed, infinity))
        {
        }

        Ends lower, upper;
        std::array<Scalar, N> largest_effort, turn, jump_rate;
        std::array<Scalar, M> voltage_limit, motor_speed;
    };

    /// Addresses of the vectors of a call. Set all vectors of its kernel before run().
    class Places {
      public:
        Places() noexcept {} // initialization would take a tenth of a cycle
        explicit Places(std::nullptr_t) noexcept : in_{} {}

        const double *in(Vector name) const noexcept { return in_[static_cast<std::size_t>(name)]; }

        /// Set input vectors of kernels, as pairs of name and vector; writes() sets output vectors.
        template <class Numbers, class... More>
        void reads(Vector name, const Numbers &numbers, const More &...more) noexcept
        {
            in_[static_cast<std::size_t>(name)] = numbers.data();
            if constexpr (sizeof...(more) > 0)
                reads(more...);
        }
        template <class Numbers, class... More>
        void writes(Vector name, Numbers &numbers, More &&...more) noexcept
        {
            out_[static_cast<std::size_t>(name)] = numbers.data();
            if constexpr (sizeof...(more) > 0)
                writes(more...);
        }

#define EOM_READS(Type, name, initial) reads(V::name, x.name);
#define EOM_READS_BASE(Type, name, initial) reads(V::name, x.base.name);
        void take(const Setpoint<LoadedRobot> &x) noexcept { EOM_SETPOINT(EOM_READS) EOM_PAYLOAD(EOM_READS) EOM_BASE(EOM_READS_BASE) }
        void take(const Command<LoadedRobot> &x) noexcept { EOM_COMMAND(EOM_READS) }
        void take(const DriveCommand<LoadedRobot> &x) noexcept { EOM_SENT(EOM_READS) }

        /// Set a command or a drive command as output.
#define EOM_WRITES(Type, name, initial) writes(V::name, y.name);
        void give(Command<LoadedRobot> &y) noexcept { EOM_COMMAND(EOM_WRITES) }
        void give(DriveCommand<LoadedRobot> &y) noexcept { EOM_SENT(EOM_WRITES) }

        void take(const Measurement<LoadedRobot> &x) noexcept
        {
            reads(V::q, x.q, V::qd, x.qd, V::motor_position, x.motor_position, V::motor_velocity, x.motor_velocity);
            reads(V::tau, x.tau, V::motor_effort, x.motor_effort);
        }

        void take(const Sensed<LoadedRobot> &x) noexcept
        {
            take(static_cast<const Measurement<LoadedRobot> &>(x));
            reads(V::k, x.k, V::P, x.P);
        }

        void run(const Kernel &kernel) const noexcept { eom::run(kernel, in_, out_); }

      private:
        using V = Vector;

        static constexpr std::size_t COUNT = static_cast<std::size_t>(Vector::count);

        const double *in_[COUNT];
        double *out_[COUNT];
    };

    LoadedRobot(const RobotTable &table, const Numbers &numbers) noexcept
        : lower(numbers.lower), upper(numbers.upper), largest_effort(numbers.largest_effort),
          turn(numbers.turn), jump_rate(numbers.jump_rate), voltage_limit(numbers.voltage_limit),
          motor_speed(numbers.motor_speed), motor_joint(table.facts.motor_joint), joint_sides(table.joint_sides),
          load_weights(table.load_weights), to_springs(table.to_springs), motor_inertia(table.motor_inertia), table_(table), kernels_(table.kernels)
    {
    }

    const Ends &lower, &upper;
    const std::array<Scalar, N> &largest_effort, &turn, &jump_rate;
    const std::array<Scalar, M> &voltage_limit, &motor_speed;
    const Span<const std::size_t> motor_joint;
    const Span<const double> joint_sides, load_weights, to_springs, motor_inertia;

    const RobotTable &table() const noexcept { return table_; }
    std::size_t joint_count() const noexcept { return table_.joints; }
    std::size_t motor_count() const noexcept { return table_.motors; }
    std::size_t tool_count() const noexcept { return table_.tools; }
    double command_lead() const noexcept { return table_.command_lead; }
    bool filters() const noexcept { return kernels_.filtered.call; }
    bool slides() const noexcept { return kernels_.presliding.call; }
    bool has_transmission() const noexcept { return table_.transmission; }
    bool converts() const noexcept { return kernels_.drive_command.call; }
    bool carries() const noexcept { return kernels_.feedforward_with_payload.call; }
    bool base_moves() const noexcept { return kernels_.feedforward_on_base.call; }
    bool finds_tools() const noexcept { return kernels_.tool_kinematics.call; }
    bool observes() const noexcept
    {
        const Kernels &k = kernels_;
        return k.momentum_balance.call && k.momentum_balance_with_payload.call && k.spring_loads.call && k.motor_loads.call &&
               k.deflections.call;
    }

    Setpoint<LoadedRobot> rest() const noexcept
    {
        Setpoint<LoadedRobot> x;
        x.k = widened<N>(table_.nominal_stiffness, 0);
        return x;
    }

    void inverse_dynamics(const Setpoint<LoadedRobot> &x, Command<LoadedRobot> &y) const noexcept
    {
        compute(x, y, links(x));
    }

    void feedforward(const Setpoint<LoadedRobot> &x, Command<LoadedRobot> &y) const noexcept
    {
        const Kernels &k = kernels_;
        const Kernel &at_rest = x.loaded ? k.feedforward_with_payload : k.feedforward;
        compute(x, y, !x.on_base ? at_rest : x.loaded ? k.feedforward_on_base_with_payload : k.feedforward_on_base);
    }

    /// feedforward() with additional efforts on the links.
    void feedforward(const Setpoint<LoadedRobot> &x, const std::array<Scalar, N> &effort,
                     Command<LoadedRobot> &y) const noexcept
    {
        std::array<Scalar, M> spin{};
        const Places at = places(x, y, spin);
        at.run(links(x));
        for (std::size_t i = 0; i < N; ++i)
            y.tau[i] += effort[i];
        at.run(kernels_.motors);
    }

    /// Compute the motors of a command from its efforts.
    void motors_of(const Setpoint<LoadedRobot> &x, Command<LoadedRobot> &y) const noexcept
    {
        compute(x, y, kernels_.motors);
    }

    /// Compute tool poses, row by row, and tool Jacobians in the tool frames.
    void tool_kinematics(const std::array<Scalar, N> &q, std::array<Scalar, 16 * T> &poses,
                         std::array<Scalar, 6 * T * N> &jacobians) const noexcept
    {
        Places at;
        at.reads(V::q, q);
        at.writes(V::tool_poses, poses, V::tool_jacobians, jacobians);
        at.run(kernels_.tool_kinematics);
    }

    template <class Motors, class Shafts>
    void drive(const Motors &x, Shafts &y) const noexcept
    {
        Places at;
        at.reads(V::motor_velocity, x.motor_velocity, V::motor_effort, x.motor_effort);
        at.writes(V::torque, y.torque, V::speed, y.speed, V::current, y.current, V::voltage, y.voltage);
        at.writes(V::clipped_effort, y.clipped_effort);
        at.run(kernels_.drive);
        y.sum = motor_sums(x.motor_effort);
    }

    /// Returns the total motor effort at each joint, through the transmission, as limited by `motor_sum`.
    std::array<Scalar, N> motor_sums(const std::array<Scalar, M> &effort) const noexcept
    {
        std::array<Scalar, N> sums{};
        const std::size_t count = motor_count();
        for (std::size_t i = 0; i < count; ++i) {
            if (!has_transmission())
                sums[motor_joint[i]] += effort[i];
            for (std::size_t j = 0; has_transmission() && j < count; ++j)
                sums[motor_joint[i]] += to_springs[i * count + j] * effort[j];
        }
        return sums;
    }

    /// Add efforts at the joints to the motor efforts. Motors of one joint share them equally.
    void add_at_joints(const std::array<Scalar, N> &added, std::array<Scalar, M> &effort) const noexcept
    {
        std::array<Scalar, N> shares{};
        const std::size_t count = motor_count();
        for (std::size_t i = 0; i < count; ++i)
            shares[motor_joint[i]] += 1;
        for (std::size_t j = 0; j < count; ++j) {
            const Scalar part = added[motor_joint[j]] / shares[motor_joint[j]];
            if (!has_transmission())
                effort[j] += part;
            for (std::size_t i = 0; has_transmission() && i < count; ++i)
                effort[i] += load_weights[i * count + j] * part;
        }
    }

    /// Scale the motor efforts of `joint` by `part`; with a transmission, scale all motor efforts.
    void scale_at_joint(std::size_t joint, Scalar part, std::array<Scalar, M> &effort) const noexcept
    {
        const std::size_t count = motor_count();
        for (std::size_t j = 0; j < count; ++j)
            if (has_transmission() || motor_joint[j] == joint)
                effort[j] *= part;
    }

    /// Add positions at the joint sides of springs to the motor positions.
    void add_sides(const std::array<Scalar, N> &added, std::array<Scalar, M> &position) const noexcept
    {
        const std::size_t count = motor_count();
        for (std::size_t j = 0; j < count; ++j) {
            if (!has_transmission())
                position[j] += added[motor_joint[j]];
            for (std::size_t i = 0; has_transmission() && i < count; ++i)
                position[i] += to_springs[j * count + i] * added[motor_joint[j]];
        }
    }

    void filtered(const std::array<Scalar, N> &deflection, const Command<LoadedRobot> &before,
                  const Command<LoadedRobot> &after, const std::array<Scalar, 1> &step,
                  std::array<Scalar, N> &deflection_now) const noexcept
    {
        Places at;
        at.reads(V::tau_before, before.tau, V::taud_before, before.taud, V::taudd_before, before.taudd);
        at.reads(V::tau, after.tau, V::taud, after.taud, V::taudd, after.taudd);
        at.reads(V::deflection, deflection, V::step, step);
        at.writes(V::deflection_now, deflection_now);
        at.run(kernels_.filtered);
    }

    void presliding(const std::array<Scalar, M> &friction_state, const Command<LoadedRobot> &before,
                    const Command<LoadedRobot> &after, const std::array<Scalar, 1> &step,
                    std::array<Scalar, M> &friction_state_now) const noexcept
    {
        Places at;
        at.reads(V::motor_position_before, before.motor_position, V::motor_position, after.motor_position);
        at.reads(V::motor_velocity, after.motor_velocity, V::friction_state, friction_state, V::step, step);
        at.writes(V::friction_state_now, friction_state_now);
        at.run(kernels_.presliding);
    }

    /// Compute the drive command. Returns true if it is finite.
    bool drive_command(const Setpoint<LoadedRobot> &x, const Command<LoadedRobot> &y,
                       const std::array<Scalar, M> &motor_effort, const std::array<Scalar, N> &joint_effort,
                       const std::array<Scalar, 2> &share, DriveCommand<LoadedRobot> &sent) const noexcept
    {
        Places at;
        at.take(x);
        at.take(y);
        at.reads(V::tau, joint_effort, V::motor_effort, motor_effort, V::share, share);
        at.give(sent);
        at.run(x.loaded && kernels_.drive_command_with_payload.call ? kernels_.drive_command_with_payload
                                                                    : kernels_.drive_command);
        return finite(sent.drive_position, sent.drive_velocity, sent.drive_effort) && finite(sent.sent_effort);
    }

    void drive_state(const std::array<Scalar, N> &q, const std::array<Scalar, N> &qd,
                     const std::array<Scalar, M> &drive_position, const std::array<Scalar, M> &drive_velocity,
                     const std::array<Scalar, M> &drive_effort, const std::array<Scalar, 2> &share,
                     std::array<Scalar, M> &motor_position, std::array<Scalar, M> &motor_velocity,
                     std::array<Scalar, M> &motor_effort) const noexcept
    {
        Places at;
        at.reads(V::q, q, V::qd, qd, V::share, share);
        at.reads(V::drive_position, drive_position, V::drive_velocity, drive_velocity, V::drive_effort, drive_effort);
        at.writes(V::motor_position, motor_position, V::motor_velocity, motor_velocity, V::motor_effort, motor_effort);
        at.run(kernels_.drive_state);
    }

    /// Compute the momentum p = M qd and beta, with the rate of p equal to tau - beta; includes the payload P if x is loaded.
    void momentum_balance(const Sensed<LoadedRobot> &x, std::array<Scalar, N> &p, std::array<Scalar, N> &beta) const noexcept
    {
        Places at;
        at.take(x);
        at.writes(V::p, p, V::beta, beta);
        at.run(x.loaded ? kernels_.momentum_balance_with_payload : kernels_.momentum_balance);
    }

    /// Compute the spring efforts on links and at motors, zero at rigid joints.
    void spring_loads(const Sensed<LoadedRobot> &x, std::array<Scalar, N> &on_links,
                      std::array<Scalar, M> &load) const noexcept
    {
        Places at;
        at.take(x);
        at.writes(V::on_links, on_links, V::load, load);
        at.run(kernels_.spring_loads);
    }

    /// Compute motor efforts without acceleration from spring efforts `load`.
    void motor_loads(const std::array<Scalar, M> &load, const std::array<Scalar, M> &motor_velocity,
                     std::array<Scalar, M> &effort) const noexcept
    {
        Places at;
        at.reads(V::load, load, V::motor_velocity, motor_velocity);
        at.writes(V::effort, effort);
        at.run(kernels_.motor_loads);
    }

    /// Compute steady-state spring deflections and their rates for efforts and effort rates.
    void deflections(const std::array<Scalar, N> &tau, const std::array<Scalar, N> &taud, const std::array<Scalar, N> &k,
                     std::array<Scalar, M> &delta, std::array<Scalar, M> &deltad) const noexcept
    {
        Places at;
        const std::array<Scalar, N> zero{};
        std::array<Scalar, N> steady;
        steady.fill(SETTLED);
        std::array<std::array<Scalar, M>, 2> rest;
        at.reads(V::tau, tau, V::taud, taud, V::taudd, zero, V::k, k, V::kd, zero, V::kdd, zero, V::deflection, steady);
        at.writes(V::delta, delta, V::deltad, deltad, V::deltadd, rest[0], V::load, rest[1]);
        at.run(kernels_.deflections);
    }

  private:
    using V = Vector;

    static constexpr Scalar infinity = std::numeric_limits<Scalar>::infinity();

    /// Returns the kernel of the efforts on the links.
    const Kernel &links(const Setpoint<LoadedRobot> &x) const noexcept
    {
        const Kernels &k = kernels_;
        const Kernel &at_rest = x.loaded ? k.inverse_dynamics_with_payload : k.inverse_dynamics;
        const Kernel &on_base = x.loaded ? k.inverse_dynamics_on_base_with_payload : k.inverse_dynamics_on_base;
        return x.on_base ? on_base : at_rest;
    }

    static void compute(const Setpoint<LoadedRobot> &x, Command<LoadedRobot> &y, const Kernel &kernel) noexcept
    {
        std::array<Scalar, M> spin{};
        places(x, y, spin).run(kernel);
    }

    /// Returns the places of a setpoint, its command, and the efforts `spin` of carried rotors.
    static Places places(const Setpoint<LoadedRobot> &x, Command<LoadedRobot> &y, std::array<Scalar, M> &spin) noexcept
    {
        Places at;
        at.take(x);
        at.take(y); // kernels read the results of earlier kernels
        at.reads(V::spin, spin);
        at.give(y);
        at.writes(V::spin, spin);
        return at;
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
#define EOM_WIDENED(size, name) widened<size>(x.name, rest),
        return {EOM_LIMITED(EOM_WIDENED)};
    }

    const RobotTable &table_;
    const Kernels &kernels_;
};

} // namespace eom

#endif
