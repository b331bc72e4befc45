// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace urdf {
struct Model {
    bool initString(const std::string &urdf) { return (text = urdf).find("<robot") == 0; }
    bool getJoint(const std::string &name) const { return text.find('"' + name + '"') != text.npos; }
    std::string text;
};
} // namespace urdf
