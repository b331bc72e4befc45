// SPDX-License-Identifier: Apache-2.0
// Plays a scene on the loop of a robot: setpoint_engines.py writes its cycles, and reads a row of numbers for each.
//
//     play_scene LIBRARY CYCLES ROWS LIMITS LOSS CLOCK STAMPS JUMPS CONSISTENCY WINDOW ORDER LEAD TIMEOUT STOP RAMP TOLERANCE
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "loop_library.hpp"

namespace {

template <class Number>
std::vector<Number> read(std::FILE *in, std::size_t count)
{
    std::vector<Number> numbers(count);
    if (std::fread(numbers.data(), sizeof(Number), count, in) != count)
        throw std::runtime_error("the scene is truncated");
    return numbers;
}

void take(eom::AnyLoop &loop, std::FILE *in)
{
    const std::int64_t stamp = read<std::int64_t>(in, 1)[0];
    const auto x = loop.draft();
    for (const auto &row : {x.q, x.qd, x.qdd, x.qddd, x.qdddd, x.W, x.Wd, x.Wdd, x.k, x.kd, x.kdd}) {
        const auto given = read<std::int64_t>(in, 1)[0];
        const auto numbers = read<double>(in, static_cast<std::size_t>(given));
        std::copy(numbers.begin(), numbers.end(), row.begin());
    }
    *x.on_base = read<std::int64_t>(in, 1)[0] != 0;
    if (*x.on_base)
        for (const auto &row : {x.w, x.wd, x.wdd, x.wddd, x.f, x.fd, x.fdd}) {
            const auto numbers = read<double>(in, 3);
            std::copy(numbers.begin(), numbers.end(), row.begin());
        }
    loop.send(stamp);
    loop.refer_to_mailbox();
}

void carry(eom::AnyLoop &loop, std::FILE *in)
{
    const auto x = read<double>(in, 11);
    loop.send_payload(0, {x[0], {x[1], x[2], x[3]}, {x[4], x[5], x[6], x[7], x[8], x[9]}}, x[10]);
}

void follow(eom::AnyLoop &loop, std::FILE *in)
{
    const auto sizes = read<std::int64_t>(in, 3);
    const std::size_t knots = static_cast<std::size_t>(sizes[1]), degree = static_cast<std::size_t>(sizes[2]);
    const std::size_t n = loop.robot.joint_names.size();
    const std::size_t pieces = knots > 0 ? knots - 1 : 0;
    const auto times = read<double>(in, knots), numbers = read<double>(in, pieces * (degree + 1) * n);
    std::vector<std::size_t> places(n);
    for (std::size_t i = 0; i < n; ++i)
        places[i] = i;
    if (const char *reason = loop.send_spline(sizes[0], times, degree, numbers, places))
        throw std::runtime_error(reason);
}

void play(char **arguments)
{
    const auto loop = eom::load_loop(arguments[0], "");
    std::FILE *in = std::fopen(arguments[1], "rb"), *out = std::fopen(arguments[2], "wb");
    eom::LoopSettings settings;
    const auto whole = [arguments](int place) { return std::atoi(arguments[place]); };
    settings.limits = static_cast<eom::LimitPolicy>(whole(3));
    settings.on_setpoint_loss = static_cast<eom::LossPolicy>(whole(4));
    settings.on_clock_jump = static_cast<eom::JumpPolicy>(whole(5));
    settings.stamp_check = static_cast<eom::CheckPolicy>(whole(6));
    settings.jump_check = static_cast<eom::CheckPolicy>(whole(7));
    settings.consistency_check = static_cast<eom::CheckPolicy>(whole(8));
    settings.consistency_window = whole(9);
    settings.consistency_order = whole(10);
    settings.command_lead = std::atof(arguments[11]);
    settings.setpoint_timeout = std::atof(arguments[12]);
    settings.stop_duration = std::atof(arguments[13]);
    settings.ramp_duration = std::atof(arguments[14]);
    settings.consistency_tolerance = std::atof(arguments[15]);
    const std::vector<double> zero(1, 0.0);
    if (const char *reason =
            loop->configure(settings, {zero, zero, zero, zero, zero}, eom::MissingDerivatives::zero, 0, false, false))
        throw std::runtime_error(reason);
    loop->restart(0);
    for (auto count = read<std::int64_t>(in, 1)[0]; count > 0; --count) {
        const auto cycle = read<std::int64_t>(in, 4);
        if (cycle[1])
            carry(*loop, in);
        if (cycle[2])
            follow(*loop, in);
        if (cycle[3])
            take(*loop, in);
        loop->update(cycle[0], 1e-3);
        const auto &y = loop->output;
        const double status = loop->state.valid ? static_cast<double>(loop->state.status) : -1;
        std::fwrite(&status, sizeof status, 1, out);
        for (const auto &row : {y.taud, y.taudd, y.sent_motor_position, y.sent_motor_velocity, y.sent_motor_effort,
                                y.sent_joint_effort})
            std::fwrite(row.data(), sizeof(double), row.size(), out);
        const auto findings = static_cast<double>(loop->state.counts.suspect());
        std::fwrite(&findings, sizeof findings, 1, out);
    }
    std::fclose(in);
    std::fclose(out);
}

} // namespace

int main(int, char **arguments)
{
    try {
        play(arguments + 1);
    } catch (const std::runtime_error &error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
}
