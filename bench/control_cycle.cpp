// SPDX-License-Identifier: Apache-2.0
// Times of one cycle of the control loop, of the feedforward alone, and of Pinocchio's rnea, interleaved cycle by cycle.
//
//     control_cycle COUNT ROBOT.so
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <pinocchio/algorithm/rnea.hpp>

#include <pinocchio/multibody.hpp>

#include <eom/loaded_robot.hpp>
#include <eom/loop.h>

#include "loop_library.hpp"

namespace {

using Robot = eom::LoadedRobot<8, 8, 1>; // the places of the loop
using Clock = std::chrono::steady_clock;

pinocchio::Model model()
{
    pinocchio::Model model;
#include "model.inc"
    return model;
}

eom::Setpoint<Robot> wave(const Robot &robot, double t)
{
    eom::Setpoint<Robot> x = robot.rest();
    for (std::size_t i = 0; i < robot.joint_count(); ++i) {
        const double w = 1 + 0.1 * static_cast<double>(i), s = std::sin(w * t), c = std::cos(w * t);
        x.q[i] = 0.3 * s;
        x.qd[i] = 0.3 * w * c;
        x.qdd[i] = -0.3 * w * w * s;
        x.qddd[i] = -0.3 * w * w * w * c;
        x.qdddd[i] = 0.3 * w * w * w * w * s;
    }
    return x;
}

struct Times {
    std::vector<double> values;

    // Touches the memory now, not between two cycles.
    void prepare(std::size_t cycles)
    {
        values.assign(cycles, 0);
        values.clear();
    }

    template <class Function>
    void measure(Function function)
    {
        const auto start = Clock::now();
        function();
        const auto end = Clock::now();
        values.push_back(std::chrono::duration<double>(end - start).count());
    }

    // Quantile of the times, which are sorted.
    double below(double share)
    {
        std::sort(values.begin(), values.end());
        return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
    }

    void print(const char *name)
    {
        std::printf("%s %.9g %.9g %.9g %.9g %.9g\n", name, below(0.5), below(0.99), below(0.999), below(0.9999), below(1));
    }
};

// Dependent additions.
double add(double sum, long count)
{
    for (long k = 0; k < count; ++k)
        sum += 1e-3;
    return sum;
}

// Number of additions that take as long as the function.
template <class Function>
long additions(Function function)
{
    constexpr long count = 1000, runs = 1000;
    volatile double kept = 0;
    Times calls, sums;
    for (long k = 0; k < runs; ++k) {
        calls.measure(function);
        sums.measure([&] { kept = add(kept, count); });
    }
    return static_cast<long>(calls.below(0.5) / sums.below(0.5) * count);
}

} // namespace

int main(int, char **arguments)
{
    const long cycles = std::atol(arguments[1]);
    const pinocchio::Model pinocchio_model = model();
    pinocchio::Data data(pinocchio_model);

    const auto table = eom::load_table(arguments[2], "");
    const Robot::Numbers numbers(*table);
    const Robot robot(*table, numbers);
    const auto n = static_cast<Eigen::Index>(robot.joint_count());
    const auto of_joints = [n](const auto &row) { return Eigen::Map<const Eigen::VectorXd>(row.data(), n); };
    Eigen::VectorXd q(n), v(n), a(n);
    eom_loop *const loop = eom_loop_make(table.get());
    const double kp = 100, kd = 1, link_kp = 10, warn = static_cast<double>(eom::LimitPolicy::warn);
    for (const auto &[name, value] : {std::pair{"motor_kp", &kp}, {"motor_kd", &kd}, {"link_kp", &link_kp}, {"limits", &warn}})
        eom_loop_set(loop, name, value, 1);
    eom_loop_configure(loop);
    eom_loop_measure(loop, true, true);
    eom_loop_restart(loop, 0);

    const auto copy = [loop](const auto &from, const char *whose, const char *name) {
        std::copy(from.begin(), from.end(), eom_loop_vector(loop, whose, name));
    };
    const auto send = [&](const eom::Setpoint<Robot> &x) {
        eom_loop_post_rest(loop, false);
        copy(x.q, "posted", "q"), copy(x.qd, "posted", "qd"), copy(x.qdd, "posted", "qdd");
        copy(x.qddd, "posted", "qddd"), copy(x.qdddd, "posted", "qdddd");
        eom_loop_post(loop, 0);
    };
    const auto run = [loop](long i) {
        eom_loop_act(loop, "take");
        eom_loop_run(loop, 1000000 * i, 1e-3);
    };
    eom::Setpoint<Robot> x = wave(robot, 0);
    const long equivalent = additions([&, i = 0L]() mutable {
        send(x);
        run(i++);
    });
    eom_loop_restart(loop, 0);
    volatile double kept = 0;
    Times nothing, summed, alone, cycle, rnea;
    for (Times *times : {&nothing, &summed, &alone, &cycle, &rnea})
        times->prepare(static_cast<std::size_t>(cycles));
    eom::Command<Robot> y;
    double sum = 0, difference = 0;
    for (long i = 0; i < cycles; ++i) {
        x = wave(robot, 1e-3 * static_cast<double>(i));
        copy(x.q, "measured", "q"), copy(x.qd, "measured", "qd");
        copy(y.motor_position, "measured", "motor_position"), copy(y.motor_velocity, "measured", "motor_velocity");
        q = of_joints(x.q);
        v = of_joints(x.qd);
        a = of_joints(x.qdd);
        nothing.measure([] {});
        summed.measure([&] { kept = add(kept, equivalent); });
        alone.measure([&] { robot.feedforward(x, y); });
        rnea.measure([&] { pinocchio::rnea(pinocchio_model, data, q, v, a); });
        send(x);
        cycle.measure([&] { run(i); });
        sum += eom_loop_vector(loop, "sent", "drive_effort")[0];
        difference = std::max(difference, (data.tau - of_joints(y.tau)).cwiseAbs().maxCoeff());
    }
    nothing.print("clock");
    summed.print("additions");
    alone.print("feedforward");
    cycle.print("cycle");
    rnea.print("rnea");
    std::printf("difference %.9g %.9g\n", difference, sum);
}
