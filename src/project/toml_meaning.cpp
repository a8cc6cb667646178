#include "project/toml_meaning.h"

#include <algorithm>

namespace twinkle::project {
namespace {

using base::Node;

bool is_nothing(const Node& node) {
    return node.kind == Node::Kind::table &&
           std::all_of(node.members.begin(), node.members.end(),
                       [](const base::Member& member) { return is_nothing(member.value); });
}

}  // namespace

const Node* find_node(const Node& root, const TomlPath& path) {
    const Node* node = &root;
    for (const std::string& key : path) {
        node = node == nullptr ? nullptr : node->find(key);
    }
    return node;
}

bool same_meaning(const Node& a, const Node& b) {
    if (a.kind == Node::Kind::table && b.kind == Node::Kind::table) {
        const auto inside = [](const Node& one, const Node& other, bool compare) {
            return std::all_of(
                one.members.begin(), one.members.end(), [&](const base::Member& member) {
                    const Node* same = other.find(member.key);
                    return same == nullptr ? is_nothing(member.value)
                                           : !compare || same_meaning(member.value, *same);
                });
        };
        return inside(a, b, true) && inside(b, a, false);
    }
    return a.kind == b.kind && a.boolean == b.boolean && a.integer == b.integer &&
           a.number == b.number && a.text == b.text &&
           std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                      [](const Node& x, const Node& y) { return same_meaning(x, y); });
}

Node without(Node root, const TomlPath& path) {
    Node* node = &root;
    for (std::size_t i = 0; i < path.size(); ++i) {
        const auto found =
            std::find_if(node->members.begin(), node->members.end(),
                         [&](const base::Member& member) { return member.key == path[i]; });
        if (found == node->members.end()) {
            break;
        }
        if (i + 1 == path.size()) {
            node->members.erase(found);
            break;
        }
        node = &found->value;
    }
    return root;
}

}  // namespace twinkle::project
