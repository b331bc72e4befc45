// SPDX-License-Identifier: Apache-2.0
// Stand-in for pluginlib: a plugin's class must be constructible.
#pragma once

#define PLUGINLIB_EXPORT_CLASS(derived, base) \
    std::unique_ptr<base> make_plugin() { return std::make_unique<derived>(); }
