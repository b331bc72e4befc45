// SPDX-License-Identifier: Apache-2.0
#pragma once
#define PLUGINLIB_EXPORT_CLASS(type, base)                                                                             \
    std::unique_ptr<base> loaded() { return std::make_unique<type>(); }
