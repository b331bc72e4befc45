// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdexcept>

namespace inverse_dynamics_solver {
struct InvalidParameterValueException : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct UninitializedException : std::runtime_error {
    UninitializedException() : std::runtime_error("Solver is not initialized") {}
};
} // namespace inverse_dynamics_solver
