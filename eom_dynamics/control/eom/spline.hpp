// SPDX-License-Identifier: Apache-2.0
// Splines of degree nine with given states at their knots, as in eom_dynamics.trajectory.
#ifndef EOM_SPLINE_HPP
#define EOM_SPLINE_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace eom {

/// q, qd, qdd, qddd, qdddd of n joints.
template <std::size_t n>
using State = std::array<std::array<double, n>, 5>;

namespace detail {

constexpr std::size_t ORDERS = 5, POWERS = 10;

/// Coefficients of a polynomial of degree nine on 0 <= u <= 1 from its five scaled derivatives, p^(k)/k!, at both ends.
inline std::array<double, POWERS> from_ends(const std::array<double, ORDERS> &left,
                                            const std::array<double, ORDERS> &right) noexcept
{
    // Binomial coefficients of the derivatives at u = 1, and the inverse matrix for the powers 5 to 9.
    constexpr double taylor[ORDERS][ORDERS] = {
        {1, 1, 1, 1, 1}, {0, 1, 2, 3, 4}, {0, 0, 1, 3, 6}, {0, 0, 0, 1, 4}, {0, 0, 0, 0, 1}};
    constexpr double closing[ORDERS][ORDERS] = {{126, -56, 21, -6, 1},
                                                {-420, 196, -77, 23, -4},
                                                {540, -260, 106, -33, 6},
                                                {-315, 155, -65, 21, -4},
                                                {70, -35, 15, -5, 1}};
    std::array<double, POWERS> c{};
    std::array<double, ORDERS> gap = right;
    // The difference of positions first, so that short pieces do not lose digits.
    gap[0] -= left[0];
    for (std::size_t k = 0; k < ORDERS; ++k) {
        double sum = 0;
        for (std::size_t j = 1; j < ORDERS; ++j)
            sum += taylor[k][j] * left[j];
        gap[k] -= sum;
        c[k] = left[k];
    }
    for (std::size_t i = 0; i < ORDERS; ++i)
        for (std::size_t k = 0; k < ORDERS; ++k)
            c[ORDERS + i] += closing[i][k] * gap[k];
    return c;
}

/// Factors h^k / k! from time to u, and their inverses.
struct Scales {
    std::array<double, ORDERS> to_u{}, to_time{};

    explicit Scales(double h) noexcept
    {
        double power = 1, factorial = 1;
        for (std::size_t k = 0; k < ORDERS; ++k) {
            to_u[k] = power / factorial;
            to_time[k] = factorial / power;
            power *= h;
            factorial *= static_cast<double>(k + 1);
        }
    }
};

} // namespace detail

/// Bernstein coefficients of a polynomial; their hull contains its values.
using Hull = std::array<double, detail::POWERS>;

/// Spline piece between the states at two times; at rest outside.
template <std::size_t n>
class Piece {
  public:
    /// Constant state.
    Piece() noexcept = default;

    /// Piece between two states at times start < end, s.
    Piece(double start, double end, const State<n> &from, const State<n> &to) noexcept
        : start_(start), end_(end), step_(end - start)
    {
        const detail::Scales scales(step_);
        for (std::size_t i = 0; i < n; ++i) {
            std::array<double, 5> left, right, mirrored_left, mirrored_right;
            for (std::size_t k = 0; k < 5; ++k) {
                const double sign = k % 2 ? -1 : 1;
                left[k] = from[k][i] * scales.to_u[k];
                right[k] = to[k][i] * scales.to_u[k];
                mirrored_left[k] = sign * left[k];
                mirrored_right[k] = sign * right[k];
            }
            forward_[i] = detail::from_ends(left, right);
            backward_[i] = detail::from_ends(mirrored_right, mirrored_left);
            for (std::size_t k = 1; k < detail::POWERS; k += 2)
                backward_[i][k] = -backward_[i][k];
        }
    }

    double end() const noexcept { return end_; }

    /// Shift joint i by `distance`.
    void move(std::size_t i, double distance) noexcept
    {
        forward_[i][0] += distance;
        backward_[i][0] += distance;
    }

    /// Compute the state at time t, s. Powers count from the nearer end, so that both ends are exact.
    void evaluate(double t, State<n> &state) const noexcept
    {
        const double before = t - start_, after = t - end_;
        const bool outside = before < 0 || after > 0, near_end = -after < before;
        const double u = outside ? 0 : std::clamp((near_end ? after : before) / step_, -1.0, 1.0);
        const detail::Scales scales(step_);
        for (std::size_t i = 0; i < n; ++i) {
            const std::array<double, detail::POWERS> &c = near_end ? backward_[i] : forward_[i];
            // Horner's scheme for all orders in scalars, which stay in registers: an array takes ten times as long with -O2.
            double p0 = 0, p1 = 0, p2 = 0, p3 = 0, p4 = 0;
            for (std::size_t j = detail::POWERS; j-- > 0;) {
                p4 = p4 * u + p3;
                p3 = p3 * u + p2;
                p2 = p2 * u + p1;
                p1 = p1 * u + p0;
                p0 = p0 * u + c[j];
            }
            const double value[] = {p0, p1, p2, p3, p4};
            for (std::size_t k = 0; k < 5; ++k)
                state[k][i] = outside && k > 0 ? 0 : value[k] * scales.to_time[k];
        }
    }

    /// Compute accelerations and snaps at fraction `share` of the piece, 0 to 1; faster than the whole state.
    void bends(double share, std::array<std::array<double, n>, 2> &rates) const noexcept
    {
        constexpr double second[] = {1, 3, 6, 10, 15, 21, 28, 36}, fourth[] = {1, 5, 15, 35, 70, 126};
        const double u = share > 0.5 ? share - 1 : share;
        const detail::Scales scales(step_);
        for (std::size_t i = 0; i < n; ++i) {
            const std::array<double, detail::POWERS> &c = share > 0.5 ? backward_[i] : forward_[i];
            double p2 = 0, p4 = 0;
            for (std::size_t j = std::size(second); j-- > 0;)
                p2 = p2 * u + second[j] * c[2 + j];
            for (std::size_t j = std::size(fourth); j-- > 0;)
                p4 = p4 * u + fourth[j] * c[4 + j];
            rates[0][i] = p2 * scales.to_time[2];
            rates[1][i] = p4 * scales.to_time[4];
        }
    }

    /// Returns the Bernstein coefficients of the position of joint i.
    Hull hull(std::size_t i) const noexcept
    {
        // Coefficient j of power k: binomial(j, k) / binomial(9, k).
        constexpr double ratio[detail::ORDERS][detail::ORDERS] = {{1},
                                                                  {1, 1.0 / 9},
                                                                  {1, 2.0 / 9, 1.0 / 36},
                                                                  {1, 3.0 / 9, 3.0 / 36, 1.0 / 84},
                                                                  {1, 4.0 / 9, 6.0 / 36, 4.0 / 84, 1.0 / 126}};
        Hull b{};
        for (std::size_t j = 0; j < detail::ORDERS; ++j)
            for (std::size_t k = 0; k <= j; ++k) {
                b[j] += ratio[j][k] * forward_[i][k];
                b[detail::POWERS - 1 - j] += (k % 2 ? -1 : 1) * ratio[j][k] * backward_[i][k];
            }
        return b;
    }

    /// Returns the position of joint i at the end.
    double last(std::size_t i) const noexcept { return backward_[i][0]; }

  private:
    double start_ = 0, end_ = 1, step_ = 1;
    std::array<std::array<double, detail::POWERS>, n> forward_{}, backward_{};
};

/// C4 piecewise polynomial through states at knots; at rest before the first and after the last knot.
template <std::size_t n>
class Spline {
  public:
    /// Minimum length of a piece, s; on shorter pieces, rounding of positions would cause large jerks.
    static constexpr double SHORTEST_PIECE = 1e-4;
    /// Maximum distance of a knot from time 0, s.
    static constexpr double LARGEST_KNOT = 1e9;

    /// Clock time of t = 0, ns (an integer, because a float cannot resolve the time of day); 0: on arrival.
    std::int64_t origin = 0;

    /// Set states at knots; returns an error, or null. Joints with NaN positions keep their commanded positions. Allocates: do not
    /// call it from the loop.
    const char *assign(const std::vector<double> &times, std::vector<State<n>> states)
    {
        if (times.size() != states.size())
            return "must have a state for each knot";
        if (const char *reason = objection(times))
            return reason;
        held_.fill(false);
        for (std::size_t i = 0; i < n && !states.empty(); ++i) {
            const auto is_held = [i](const State<n> &state) { return std::isnan(state[0][i]); };
            held_[i] = std::all_of(states.begin(), states.end(), is_held);
            for (State<n> &state : states)
                for (auto &row : state)
                    row[i] = held_[i] ? 0 : row[i];
        }
        for (const State<n> &state : states)
            for (const auto &row : state)
                for (const double value : row)
                    if (!std::isfinite(value))
                        return "states must be finite";
        build(times, states);
        return nullptr;
    }

    /// Returns true if joint i is held.
    bool holds(std::size_t i) const noexcept { return held_[i]; }
    /// Returns true if any joint is held.
    bool holds() const noexcept { return std::find(held_.begin(), held_.end(), true) != held_.end(); }
    /// Returns true if there are no knots: a request to stop.
    bool empty() const noexcept { return times_.empty(); }
    double start() const noexcept { return times_.empty() ? 0 : times_.front(); }
    double end() const noexcept { return times_.empty() ? 0 : times_.back(); }
    /// Shift joint i by `distance` in the whole motion.
    void move(std::size_t i, double distance) noexcept
    {
        single_[0][i] += distance;
        lowest_.position[i] += distance;
        highest_.position[i] += distance;
        for (Piece<n> &piece : pieces_)
            piece.move(i, distance);
    }
    /// Extreme positions of the joints, with their times, s.
    struct Extremes {
        std::array<double, n> position{}, time{};
    };
    const Extremes &lowest() const noexcept { return lowest_; }
    const Extremes &highest() const noexcept { return highest_; }

    /// Returns times of acceleration and snap peaks: the highest peak of each joint and sign, then others by height.
    const std::vector<double> &peaks() const noexcept { return peaks_; }

    /// Returns the first knot after time t, or the last knot.
    double knot_after(double t) const noexcept
    {
        const auto found = std::upper_bound(times_.begin(), times_.end(), t);
        return found == times_.end() ? end() : *found;
    }

    /// Compute the state at time t, s.
    void evaluate(double t, State<n> &state) const noexcept
    {
        if (pieces_.empty()) {
            state = single_;
            if (t < start() || t > end())
                for (std::size_t k = 1; k < 5; ++k)
                    state[k] = {};
            return;
        }
        const auto found = std::upper_bound(times_.begin(), times_.end(), t) - times_.begin();
        const std::size_t index = found > 0 ? static_cast<std::size_t>(found) - 1 : 0;
        pieces_[std::min(index, pieces_.size() - 1)].evaluate(t, state);
    }

  private:
    // Maximum number of recorded peaks; instants per piece in the search; relative size below which a joint has rounding only.
    static constexpr std::size_t MOST_PEAKS = 100, PEAK_PARTS = 8;
    static constexpr double ROUNDING = 1e-4;
    // Accuracy of extreme positions, relative to the larger of 1 and their size.
    static constexpr double EXTREME = 1e-12;

    /// Returns the error of knots, or null.
    static const char *objection(const std::vector<double> &knots) noexcept
    {
        for (std::size_t k = 0; k < knots.size(); ++k) {
            if (!(std::fabs(knots[k]) <= LARGEST_KNOT))
                return "knots must be finite, and at most 1e9 s from 0";
            if (k > 0 && !(knots[k] - knots[k - 1] > 0.999 * SHORTEST_PIECE))
                return "knots must increase by at least 0.0001 s";
        }
        return nullptr;
    }

    void build(const std::vector<double> &times, const std::vector<State<n>> &states)
    {
        times_ = times;
        pieces_.clear();
        pieces_.reserve(times.size());
        for (std::size_t k = 0; k + 1 < times.size(); ++k)
            pieces_.emplace_back(times[k], times[k + 1], states[k], states[k + 1]);
        if (times.size() == 1)
            single_ = states[0];
        find_peaks();
        for (std::size_t i = 0; i < n; ++i)
            find_extremes(i);
    }

    /// Find extreme positions of joint i to EXTREME, by bisection of pieces with a hull beyond the extremes found so far.
    void find_extremes(std::size_t i)
    {
        double low = single_[0][i], low_time = start(), high = low, high_time = low_time;
        if (!pieces_.empty())
            low = high = pieces_[0].hull(i).front();
        const auto take = [&](double position, double time) {
            if (position < low)
                low = position, low_time = time;
            if (position > high)
                high = position, high_time = time;
        };
        const auto beyond = [&](const Hull &hull) {
            const auto [least, most] = std::minmax_element(hull.begin(), hull.end());
            return *most > high + EXTREME * (1 + std::fabs(high)) || *least < low - EXTREME * (1 + std::fabs(low));
        };
        for (std::size_t k = 0; k < pieces_.size(); ++k)
            take(pieces_[k].last(i), times_[k + 1]);
        struct Part {
            Hull hull;
            double begin, width;
        };
        std::vector<Part> parts;
        for (std::size_t k = 0; k < pieces_.size(); ++k) {
            const Hull hull = pieces_[k].hull(i);
            const double step = times_[k + 1] - times_[k];
            if (beyond(hull))
                parts.push_back({hull, times_[k], step});
            while (!parts.empty()) {
                Part left = parts.back(), right = left;
                parts.pop_back();
                if (!beyond(left.hull) || left.width < EXTREME * step)
                    continue;
                // De Casteljau's algorithm at the middle.
                left.width = right.width = left.width / 2;
                right.begin += left.width;
                for (std::size_t row = 1; row < detail::POWERS; ++row) {
                    for (std::size_t j = detail::POWERS; j-- > row;)
                        left.hull[j] = (left.hull[j] + left.hull[j - 1]) / 2;
                    right.hull[detail::POWERS - 1 - row] = left.hull.back();
                }
                take(right.hull.front(), right.begin);
                parts.push_back(left);
                parts.push_back(right);
            }
        }
        lowest_.position[i] = low, lowest_.time[i] = low_time;
        highest_.position[i] = high, highest_.time[i] = high_time;
    }

    void find_peaks()
    {
        using Rates = std::array<std::array<double, n>, 2>; // accelerations and snaps
        struct Found {
            std::size_t which, instant;
            double size, time;
        };
        std::vector<Found> all;
        std::array<double, 4 * n> most{}; // by order, sign and joint
        std::array<std::size_t, 4 * n> highest{};
        Rates left{}, here{}, right{}; // zero before and after the motion
        double earlier = start(), now = start();
        for (std::size_t k = 0, last = PEAK_PARTS * pieces_.size(); k <= last + 1 && !pieces_.empty(); ++k) {
            const std::size_t piece = std::min(k / PEAK_PARTS, pieces_.size() - 1);
            const double share = static_cast<double>(k - PEAK_PARTS * piece) / PEAK_PARTS;
            const double next = k < last ? times_[piece] + (times_[piece + 1] - times_[piece]) * share : end();
            k <= last ? pieces_[piece].bends(share, right) : right.fill({});
            const double before = now - earlier, after = next - now;
            for (std::size_t order = 0; order < 2 && k > 0; ++order)
                for (std::size_t i = 0; i < n; ++i) {
                    const double y = here[order][i], sign = y < 0 ? -1 : 1;
                    const double rise = sign * (y - left[order][i]), fall = sign * (y - right[order][i]);
                    if (!(rise >= 0 && fall > 0 && y != 0))
                        continue;
                    const double later = after * after * rise - before * before * fall; // peak of a parabola
                    const std::size_t which = (2 * order + (y < 0)) * n + i;
                    if (sign * y >= most[which])
                        std::tie(most[which], highest[which]) = std::pair(sign * y, all.size());
                    all.push_back({which, k, sign * y, now + 0.5 * later / (after * rise + before * fall)});
                }
            left = std::exchange(here, right);
            earlier = std::exchange(now, next);
        }
        std::vector<std::pair<double, double>> best; // share of the highest peak, and time
        for (std::size_t k = 0, instant = 0; k < all.size(); ++k) {
            const auto &[which, at, size, time] = all[k];
            const double *of = &most[which / n * n];
            if (!(most[which] > ROUNDING * *std::max_element(of, of + n)))
                continue;
            const std::pair found(size / most[which] + (k == highest[which] ? 1 : 0), time);
            if (std::exchange(instant, at) == at)
                best.back() = std::max(best.back(), found);
            else
                best.push_back(found);
        }
        const auto kept = static_cast<std::ptrdiff_t>(std::min(best.size(), MOST_PEAKS));
        std::partial_sort(best.begin(), best.begin() + kept, best.end(), std::greater<>());
        peaks_.clear();
        for (std::ptrdiff_t k = 0; k < kept; ++k)
            peaks_.push_back(best[static_cast<std::size_t>(k)].second);
    }

    std::vector<double> times_, peaks_;
    std::vector<Piece<n>> pieces_;
    State<n> single_{};
    Extremes lowest_, highest_;
    std::array<bool, n> held_{};
};

} // namespace eom

#endif
