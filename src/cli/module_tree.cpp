#include "cli/module_tree.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/report_parts.h"

namespace twinkle::cli {
namespace {

using base::Json;

constexpr std::size_t deepest = 32;  // what is deeper counts to the last

// The tree as it grows. Children are in the order in which they are named first.
struct Growing {
    ModuleNode node;
    std::vector<Growing> children{};
    std::unordered_map<std::string, std::size_t> places{};

    Growing& child(const std::string& name) {
        const auto [at, added] = places.emplace(name, children.size());
        if (added) {
            children.emplace_back().node.name = name;
        }
        return children[at->second];
    }
    Growing& at(const std::string& path) {
        Growing* here = this;
        std::size_t depth = 0;
        for (std::size_t begin = 0; begin < path.size();) {
            const auto dot = ++depth == deepest ? path.size() : path.find('.', begin);
            const auto end = std::min(dot, path.size());
            here = &here->child(path.substr(begin, end - begin));
            begin = end + 1;
        }
        return *here;
    }
};

// "layers.0.forward:add" is of the module layers.0; other names are those of modules.
void add_site(Growing& root, const Json& site) {
    const auto name = text_of(site, "site");
    const auto colon = name.find(':');
    const auto dot = colon == std::string::npos ? colon : name.rfind('.', colon);
    const auto path = colon == std::string::npos ? name
                      : dot == std::string::npos ? ""
                                                 : name.substr(0, dot);
    const auto label = colon == std::string::npos ? ""
                       : dot == std::string::npos ? name
                                                  : name.substr(dot + 1);
    auto& node = root.at(path).node;
    node.sites.push_back({label, {&site}});
    if (label.empty() && node.of.empty()) {
        node.of = text_of(site, "of");
    }
}

// Numbers for what is alike: its class, what became of its sites, and its children with their
// names.
class Likeness {
public:
    std::size_t of(const ModuleNode& node) {
        std::string text = node.of;
        for (const auto& [label, sites] : node.sites) {
            const Json& site = *sites.front();
            for (const auto& part :
                 {label, text_of(site, "of"), text_of(site, "status"), text_of(site, "kernel")}) {
                text += '\0' + part;
            }
        }
        for (const auto& child : node.children) {
            text += '\1' + child.name + '\0' + std::to_string(of(child));
        }
        return numbers_.emplace(std::move(text), numbers_.size()).first->second;
    }

private:
    std::map<std::string, std::size_t> numbers_;
};

void join(ModuleNode& into, const ModuleNode& other) {
    into.alike += other.alike;
    for (std::size_t i = 0; i < into.sites.size(); ++i) {
        auto& sites = into.sites[i].sites;
        sites.insert(sites.end(), other.sites[i].sites.begin(), other.sites[i].sites.end());
    }
    for (std::size_t i = 0; i < into.children.size(); ++i) {
        join(into.children[i], other.children[i]);
    }
}

bool is_number(const std::string& name) {
    return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

// "forward:pkg.add_rms_norm#2" is called "forward:add_rms_norm", as are the others of its kind.
std::string name_of_kind(const std::string& label) {
    const auto colon = label.find(':');
    return colon == std::string::npos
               ? label
               : label.substr(0, colon + 1) +
                     short_name(label.substr(colon + 1, label.rfind('#') - colon - 1));
}

// Sites of one module that are alike become one.
std::vector<ModuleNode::Sites> joined(const std::vector<ModuleNode::Sites>& all) {
    std::vector<ModuleNode::Sites> result;
    std::map<std::vector<std::string>, std::size_t> known;
    for (const auto& [label, sites] : all) {
        const Json& site = *sites.front();
        const auto name = name_of_kind(label);
        const auto [at, first] =
            known.emplace(std::vector{name, text_of(site, "of"), text_of(site, "status"),
                                      text_of(site, "kernel")},
                          result.size());
        if (first) {
            result.push_back({name, {}});
        }
        auto& into = result[at->second].sites;
        into.insert(into.end(), sites.begin(), sites.end());
    }
    return result;
}

// Siblings that follow each other, are called by numbers and are alike, become one.
std::vector<ModuleNode> joined(std::vector<ModuleNode> nodes, Likeness& likeness) {
    std::vector<ModuleNode> result;
    std::size_t last = 0;  // the likeness of the last
    for (auto& node : nodes) {
        const bool number = is_number(node.name);
        const auto now = number ? likeness.of(node) : 0;
        if (number && !result.empty() && now == last &&
            is_number(result.back().name.substr(0, result.back().name.find(' ')))) {
            auto& first = result.back();
            first.name = first.name.substr(0, first.name.find(' ')) + " … " + node.name;
            join(first, node);
        } else {
            result.push_back(std::move(node));
        }
        last = now;
    }
    return result;
}

ModuleNode finished(Growing&& growing, Likeness& likeness) {
    ModuleNode node = std::move(growing.node);
    for (auto& child : growing.children) {
        node.children.push_back(finished(std::move(child), likeness));
    }
    node.children = joined(std::move(node.children), likeness);
    node.sites = joined(node.sites);
    return node;
}

}  // namespace

bool ModuleNode::has_sites() const {
    return !sites.empty() ||
           std::ranges::any_of(children, [](const ModuleNode& child) { return child.has_sites(); });
}

ModuleNode module_tree(const Json& report) {
    Growing root;
    for (const auto& module : list_of(report, "modules")) {
        if (module.is_object()) {
            root.at(text_of(module, "path")).node.of = text_of(module, "class");
        }
    }
    for (const auto& site : sites_of(report)) {
        if (site.is_object()) {
            add_site(root, site);
        }
    }
    Likeness likeness;
    return finished(std::move(root), likeness);
}

}  // namespace twinkle::cli
