// twinkle tree: the kernels of a project and what they depend on.

#include "base/text.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/hub_session.h"
#include "operations/dependency_tree.h"

namespace twinkle::cli {
namespace {

using operations::TreeNode;

base::Json node_json(const TreeNode& node) {
    base::Json dependencies = base::Json::array();
    for (const auto& child : node.dependencies) {
        dependencies.push_back(node_json(child));
    }
    return {{"kernel", node.kernel},
            {"ref", node.ref.empty() ? base::Json() : base::Json(node.ref)},
            {"commit", node.commit.empty() ? base::Json() : base::Json(node.commit)},
            {"variants", node.variants},
            {"dependencies", dependencies}};
}

std::string line_of(const TreeNode& node) {
    std::string line = base::printable(kernel_text(node.kernel));
    if (node.missing) {
        return line + "  not locked";
    }
    line +=
        "  " + (node.path.empty() ? state_text(node.ref, node.commit) : base::printable(node.path));
    return node.variants.empty() ? line : line + "  only " + base::join(node.variants, ", ");
}

void add_lines(const TreeNode& node, const std::string& indent, std::string& text) {
    for (std::size_t i = 0; i < node.dependencies.size(); ++i) {
        const bool last = i + 1 == node.dependencies.size();
        text += indent + (last ? "└── " : "├── ") + line_of(node.dependencies[i]) + "\n";
        add_lines(node.dependencies[i], indent + (last ? "    " : "│   "), text);
    }
}

int run_tree(const Arguments& arguments, Console& console) {
    HubSession command(console, arguments.text("lockfile"));
    const auto tree = operations::dependency_tree(command.context());
    if (console.json()) {
        base::Json kernels = base::Json::array();
        for (const auto& node : tree.kernels) {
            kernels.push_back(node_json(node));
        }
        console.result("tree", {{"kernels", kernels}, {"locked", tree.locked}});
        return 0;
    }
    std::string text;
    for (const auto& node : tree.kernels) {
        text += line_of(node) + "\n";
        add_lines(node, "", text);
    }
    console.result(text);
    if (tree.kernels.empty()) {
        console.note("the project asks for no kernels");
    }
    return 0;
}

}  // namespace

Command tree_command() {
    return {.name = "tree",
            .summary = "Show the kernels of a project and what they depend on",
            .description = "From the lock; without one, what the manifest means now.",
            .arguments = {},
            .options = {lockfile_option()},
            .examples = {{"The tree of the project in this folder", "twinkle tree"}},
            .run = run_tree};
}

}  // namespace twinkle::cli
