#include "runtime/exported/pytree.h"

#include "archive/json_reader.h"
#include "base/json.h"

#include <algorithm>
#include <set>

namespace twinkle::runtime::exported {

using namespace archive;
using base::Json;

namespace {

constexpr base::JsonLimits tree_limits{.bytes = 16u << 20, .depth = 100};
constexpr std::size_t longest_key = 2000;

std::string key_text(const Json& key) {
    std::string text = key.is_string() ? key.get<std::string>() : base::json_line(key);
    if (text.size() > longest_key) {
        throw InvalidJson("a key of its inputs or outputs is longer than any sane one");
    }
    return text;
}

// The names of the children, where the context is a list of them, or of such lists.
std::vector<std::string> keys_in(const Json& context, std::size_t children) {
    const Json* list = &context;
    while (list->is_array() && !list->empty() && list->size() != children &&
           list->front().is_array()) {
        list = &list->front();
    }
    if (list->is_array() && list->size() == 2 && list->back().is_array() &&
        list->back().size() == children && children != 2) {
        list = &list->back();  // a defaultdict: its factory, then its keys
    }
    std::vector<std::string> keys;
    if (list->is_array() && list->size() == children) {
        for (const Json& key : *list) {
            keys.push_back(key_text(key));
        }
    }
    return keys;
}

Json context_of(const Json& json) {
    const Json* context = optional_member(json, "context");
    if (context == nullptr || !context->is_string()) {
        return context == nullptr ? Json() : *context;
    }
    try {
        return base::parse_json(context->get<std::string>(), "context", tree_limits);
    } catch (const std::exception&) {
        return *context;  // some types write what is no JSON
    }
}

Tree read(const Json& json,
          const std::map<std::string, std::vector<std::string>>& namedtuple_fields) {
    Tree tree;
    const Json* type = optional_member(json, "type");
    if (type == nullptr) {
        return tree;
    }
    tree.type = text_of(*type);
    for (const Json& child : list_at(json, "children_spec")) {
        tree.children.push_back(read(child, namedtuple_fields));
    }
    const Json context = context_of(json);
    if (tree.type == "builtins.list") {
        tree.kind = Tree::Kind::list;
        return tree;
    }
    tree.kind = Tree::Kind::tuple;
    if (tree.type == "builtins.tuple") {
        return tree;
    }
    const auto fields = context.is_string() ? namedtuple_fields.find(context.get<std::string>())
                                            : namedtuple_fields.find(tree.type);
    tree.keys =
        fields != namedtuple_fields.end() ? fields->second : keys_in(context, tree.children.size());
    const std::set<std::string> different(tree.keys.begin(), tree.keys.end());
    if (tree.keys.size() != tree.children.size() || different.size() != tree.keys.size()) {
        tree.keys.clear();
        return tree;
    }
    const bool is_dict = tree.type == "builtins.dict" || tree.type == "collections.OrderedDict" ||
                         tree.type == "collections.defaultdict" ||
                         tree.type.starts_with("transformers.");
    tree.kind = is_dict ? Tree::Kind::dict : Tree::Kind::fields;
    return tree;
}

}  // namespace

std::size_t Tree::leaves() const {
    if (kind == Kind::leaf) {
        return 1;
    }
    std::size_t count = 0;
    for (const Tree& child : children) {
        count += child.leaves();
    }
    return count;
}

Tree read_tree(const std::string& text,
               const std::map<std::string, std::vector<std::string>>& namedtuple_fields) {
    try {
        const Json json = base::parse_json(text, "tree", tree_limits);
        if (!json.is_array() || json.size() != 2) {
            throw InvalidJson("the nesting of its inputs or outputs is not as PyTorch writes it");
        }
        return read(json[1], namedtuple_fields);
    } catch (const InvalidJson&) {
        throw;
    } catch (const std::exception&) {
        throw InvalidJson("the nesting of its inputs or outputs is no JSON");
    }
}

}  // namespace twinkle::runtime::exported
