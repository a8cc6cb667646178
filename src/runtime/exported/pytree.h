#pragma once
// How the author nests inputs and outputs: tuples, lists, dictionaries, outputs of models by key.

#include <map>
#include <string>
#include <vector>

namespace twinkle::runtime::exported {

struct Tree {
    enum class Kind { leaf, tuple, list, dict, fields };
    Kind kind = Kind::leaf;
    std::string type;               // in Python
    std::vector<std::string> keys;  // of dict and fields, as many as children
    std::vector<Tree> children;

    std::size_t leaves() const;
};

// The text of a spec: `[1, {"type": "builtins.tuple", "context": …, "children_spec": […]}]`.
// Throws InvalidJson. A type that is not known is `fields` where its context names them, or a
// tuple.
Tree read_tree(const std::string& text,
               const std::map<std::string, std::vector<std::string>>& namedtuple_fields);

}  // namespace twinkle::runtime::exported
