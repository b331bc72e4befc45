// SPDX-License-Identifier: Apache-2.0
// Equilibria of flows.
#ifndef EOM_EQUILIBRIUM_HPP
#define EOM_EQUILIBRIUM_HPP

#include <algorithm>
#include <limits>

#include "setpoint.hpp"

namespace eom {

template <class Scalar, std::size_t n>
using Matrix = std::array<std::array<Scalar, n>, n>;

/// Solve A x = b by elimination without pivoting; b becomes x. Returns true if all pivots are positive, as for a positive definite
/// matrix with scaled rows.
template <class Scalar, std::size_t n>
bool solve(Matrix<Scalar, n> A, std::array<Scalar, n> &b) noexcept
{
    for (std::size_t k = 0; k < n; ++k) {
        if (!(A[k][k] > 0))
            return false;
        for (std::size_t i = k + 1; i < n; ++i) {
            const Scalar factor = A[i][k] / A[k][k];
            for (std::size_t j = k; j < n; ++j)
                A[i][j] -= factor * A[k][j];
            b[i] -= factor * b[k];
        }
    }
    for (std::size_t k = n; k-- > 0;) {
        for (std::size_t j = k + 1; j < n; ++j)
            b[k] -= A[k][j] * b[j];
        b[k] /= A[k][k];
    }
    return true;
}

/// Matrix -dF/dx by finite differences.
template <class Scalar, std::size_t n, class Flow>
Matrix<Scalar, n> slope(const Flow &flow, const std::array<Scalar, n> &x, const std::array<Scalar, n> &F) noexcept
{
    const Scalar h = std::sqrt(std::numeric_limits<Scalar>::epsilon());
    Matrix<Scalar, n> A;
    for (std::size_t j = 0; j < n; ++j) {
        std::array<Scalar, n> at = x;
        at[j] += h;
        const std::array<Scalar, n> G = flow(at);
        for (std::size_t i = 0; i < n; ++i)
            A[i][j] = (F[i] - G[i]) / h;
    }
    return A;
}

/// Find the stable equilibrium of dx/ds = F(x), the descent of an energy, from x. Returns true if it converges in MOST_STEPS.
/// Implicit Euler steps that approach Newton steps as F falls: C. T. Kelley and D. E. Keyes, "Convergence analysis of
/// pseudo-transient continuation", SIAM J. Numer. Anal. 35 (1998). Unlike Newton's method, they descend, and end neither far away
/// nor at a saddle.
template <class Scalar, std::size_t n, class Flow>
bool relax(const Flow &flow, std::array<Scalar, n> &x) noexcept
{
    constexpr int MOST_STEPS = 100;
    constexpr Scalar LONGEST = static_cast<Scalar>(0.5); // step limit, rad or m
    const auto largest = [](const std::array<Scalar, n> &values) {
        Scalar found = 0;
        for (const Scalar value : values)
            found = std::max(found, std::fabs(value));
        return found;
    };
    const Scalar allowed = std::sqrt(std::numeric_limits<Scalar>::epsilon()) / 16 * (1 + largest(x));
    std::array<Scalar, n> F = flow(x);
    Matrix<Scalar, n> A = slope(flow, x, F);
    Scalar duration = 2;
    for (int step = 0; step < MOST_STEPS; ++step) {
        if (!finite(F))
            return false;
        if (largest(F) <= allowed)
            return true;
        Matrix<Scalar, n> implicit = A;
        for (std::size_t i = 0; i < n; ++i)
            implicit[i][i] += 1 / duration;
        std::array<Scalar, n> change = F, next = x;
        const bool descends = solve(implicit, change);
        const Scalar part = std::min<Scalar>(1, LONGEST / largest(change));
        for (std::size_t i = 0; i < n; ++i)
            next[i] += part * change[i];
        const std::array<Scalar, n> G = flow(next);
        if (!descends || !finite(G)) {
            duration /= 4;
            continue;
        }
        duration *= std::clamp<Scalar>(largest(F) / largest(G), static_cast<Scalar>(0.5), 1000);
        x = next;
        F = G;
        A = slope(flow, x, F);
    }
    return false;
}

} // namespace eom

#endif
