// SPDX-License-Identifier: Apache-2.0
// Times of one cycle of the control loop, of the feedforward alone, and of Pinocchio's rnea, interleaved cycle by cycle.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <pinocchio/algorithm/rnea.hpp>

#include <pinocchio/multibody.hpp>

#include <eom/control_loop.hpp>
#include <eom/feedforward.hpp>
#include <eom/loop.h>
#include ROBOT_HEADER

#include "loop_library.hpp"

namespace {

using Robot = ROBOT_TYPE;
using Clock = std::chrono::steady_clock;

constexpr std::size_t n = Robot::joints;

pinocchio::Model model()
{
    pinocchio::Model model;
#include "model.inc"
    return model;
}

eom::Setpoint<Robot> wave(double t)
{
    eom::Setpoint<Robot> x;
    for (std::size_t i = 0; i < n; ++i) {
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

    // Below this share of them; sorts them.
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

// Additions, each of which waits for the one before.
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
    Eigen::VectorXd q(n), v(n), a(n);

    eom::Feedforward<Robot> feedforward;
    eom::ControlLoop<Robot> loop, linearized;
    eom::LoopParameters<Robot> parameters;
    parameters.limits = eom::LimitPolicy::clip;
    parameters.motor_kp.fill(100);
    parameters.motor_kd.fill(1);
    parameters.link_kp.fill(10);
    loop.configure(parameters);
    const auto table = eom::load_table(arguments[2], "");
    eom_loop *const loaded = eom_loop_make(table.get());
    const double kp = 100, kd = 1, link_kp = 10, clip = static_cast<double>(eom::LimitPolicy::clip);
    for (const auto &[name, value] : {std::pair{"motor_kp", &kp}, {"motor_kd", &kd}, {"link_kp", &link_kp}, {"limits", &clip}})
        eom_loop_set(loaded, name, value, 1);
    eom_loop_configure(loaded);
    eom_loop_measure(loaded, true, true);
    parameters.linearize = eom::Linearization<Robot>::available;
    linearized.configure(parameters);
    eom::Measurement<Robot> measured;
    measured.links = measured.motors = true;
    loop.restart(measured);
    eom_loop_restart(loaded, 0);
    linearized.restart(measured);

    const eom::Setpoint<Robot> first = wave(0);
    const long equivalent = additions([&, i = 0L]() mutable {
        loop.refer(first, 0);
        loop.update(1000000 * i++, 1e-3, measured);
    });
    loop.restart(measured);
    volatile double kept = 0;
    Times nothing, summed, alone, cycle, of_loaded, full, rnea;
    for (Times *times : {&nothing, &summed, &alone, &cycle, &of_loaded, &full, &rnea})
        times->prepare(static_cast<std::size_t>(cycles));
    double sum = 0, difference = 0;
    for (long i = 0; i < cycles; ++i) {
        const eom::Setpoint<Robot> x = wave(1e-3 * static_cast<double>(i));
        feedforward.setpoint = x;
        measured.q = x.q;
        measured.qd = x.qd;
        measured.motor_position = feedforward.command.motor_position;
        measured.motor_velocity = feedforward.command.motor_velocity;
        q = eom::map(x.q);
        v = eom::map(x.qd);
        a = eom::map(x.qdd);
        nothing.measure([] {});
        summed.measure([&] { kept = add(kept, equivalent); });
        alone.measure([&] { feedforward.update(); });
        rnea.measure([&] { pinocchio::rnea(pinocchio_model, data, q, v, a); });
        loop.setpoints.draft() = {0, x};
        loop.setpoints.send();
        cycle.measure([&] {
            loop.refer_to_mailbox();
            loop.update(1000000 * i, 1e-3, measured);
        });
        const auto copy = [loaded](const auto &from, const char *whose, const char *name) {
            std::copy(from.begin(), from.end(), eom_loop_vector(loaded, whose, name));
        };
        eom_loop_post_rest(loaded, false);
        copy(x.q, "posted", "q"), copy(x.qd, "posted", "qd"), copy(x.qdd, "posted", "qdd");
        copy(x.qddd, "posted", "qddd"), copy(x.qdddd, "posted", "qdddd");
        copy(measured.q, "measured", "q"), copy(measured.qd, "measured", "qd");
        copy(measured.motor_position, "measured", "motor_position");
        copy(measured.motor_velocity, "measured", "motor_velocity");
        eom_loop_post(loaded, 0);
        of_loaded.measure([&] {
            eom_loop_act(loaded, "take");
            eom_loop_run(loaded, 1000000 * i, 1e-3);
        });
        const double *const sent = eom_loop_vector(loaded, "sent", "drive_effort");
        for (std::size_t j = 0; j < Robot::motors; ++j)
            difference = std::max(difference, std::fabs(sent[j] - loop.output().motor_effort[j]));
        full.measure([&] {
            linearized.refer(x, 0);
            linearized.update(1000000 * i, 1e-3, measured);
        });
        sum += loop.output().motor_effort[0] + linearized.output().motor_effort[0];
        difference = std::max(difference, (data.tau - eom::map(feedforward.command.tau)).cwiseAbs().maxCoeff());
    }
    nothing.print("clock");
    summed.print("additions");
    alone.print("feedforward");
    cycle.print("cycle");
    of_loaded.print("loaded");
    full.print("linearized");
    rnea.print("rnea");
    std::printf("difference %.9g %.9g\n", difference, sum);
}
