#pragma once
// The modules of a model as a tree with the sites of a report in it. Siblings that are alike, such
// as the layers of a decoder, are one node.

#include <cstddef>
#include <string>
#include <vector>

#include "base/json.h"

namespace twinkle::cli {

struct ModuleNode {
    std::string name;       // one component; "0 … 31" for several that are alike; the root's is ""
    std::string of;         // its class, if the report knows the modules
    std::size_t alike = 1;  // how many modules it stands for
    struct Sites {
        std::string label;                     // "forward:add_rms_norm"; empty: the module itself
        std::vector<const base::Json*> sites;  // one of each module
    };
    std::vector<Sites> sites;
    std::vector<ModuleNode> children;

    bool has_sites() const;  // itself or below
};

// `report`: its "sites", and its "modules" ({"path", "class"}) if it has any. It must outlive the
// tree.
ModuleNode module_tree(const base::Json& report);

}  // namespace twinkle::cli
