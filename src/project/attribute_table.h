#pragma once
// Tables of module attributes, as manifests and mappings have them.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/document.h"
#include "twinkle/mapping.h"

namespace twinkle::project {

// { name = truth value, number or string }; empty where the key is absent.
std::map<std::string, AttributeValue> read_attributes(base::TableReader& reader,
                                                      std::string_view key);

// { name = [string, …] }; empty where the key is absent.
std::map<std::string, std::vector<std::string>> read_string_lists(base::TableReader& reader,
                                                                  std::string_view key);

}  // namespace twinkle::project
