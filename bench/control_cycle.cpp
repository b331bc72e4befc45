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
#include ROBOT_HEADER

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

    template <class Function>
    void measure(Function function)
    {
        const auto start = Clock::now();
        function();
        const auto end = Clock::now();
        values.push_back(std::chrono::duration<double>(end - start).count());
    }

    void print(const char *name)
    {
        std::sort(values.begin(), values.end());
        const auto at = [this](double share) {
            return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
        };
        std::printf("%s %.9g %.9g %.9g %.9g\n", name, at(0.5), at(0.99), at(0.9999), values.back());
    }
};

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
    parameters.linearize = eom::Linearization<Robot>::available;
    linearized.configure(parameters);
    eom::Measurement<Robot> measured;
    measured.links = measured.motors = true;
    loop.restart(measured);
    linearized.restart(measured);

    Times nothing, alone, cycle, full, rnea;
    for (Times *times : {&nothing, &alone, &cycle, &full, &rnea})
        times->values.reserve(static_cast<std::size_t>(cycles));
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
        alone.measure([&] { feedforward.update(); });
        rnea.measure([&] { pinocchio::rnea(pinocchio_model, data, q, v, a); });
        cycle.measure([&] {
            loop.refer(x, 0);
            loop.update(1000000 * i, 1e-3, measured);
        });
        full.measure([&] {
            linearized.refer(x, 0);
            linearized.update(1000000 * i, 1e-3, measured);
        });
        sum += loop.output().motor_effort[0] + linearized.output().motor_effort[0];
        difference = std::max(difference, (data.tau - eom::map(feedforward.command.tau)).cwiseAbs().maxCoeff());
    }
    nothing.print("clock");
    alone.print("feedforward");
    cycle.print("cycle");
    full.print("linearized");
    rnea.print("rnea");
    std::printf("difference %.9g %.9g\n", difference, sum);
}
