// SPDX-License-Identifier: Apache-2.0
// Stand-in for rclcpp: a log is a line of the standard output.
#pragma once

#include <cstdio>

#define RCLCPP_ERROR(logger, ...) ((void)(logger), std::printf("error: "), std::printf(__VA_ARGS__), (void)std::printf("\n"))
