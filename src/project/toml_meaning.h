#pragma once
// What TOML documents say, however they are written: two of them compared.

#include "base/document.h"
#include "project/toml_layout.h"

namespace twinkle::project {

// Null where there is nothing.
const base::Node* find_node(const base::Node& root, const TomlPath& path);

// Tables that hold nothing count as absent, and the order of keys does not matter.
bool same_meaning(const base::Node& a, const base::Node& b);

base::Node without(base::Node root, const TomlPath& path);

}  // namespace twinkle::project
