#include "cli/module_tree_html.h"

#include <fmt/format.h>

#include "cli/html_page.h"
#include "cli/json_fields.h"
#include "cli/module_tree.h"
#include "cli/report_parts.h"
#include "cli/site_details.h"
#include "cli/svg.h"

namespace twinkle::cli {
namespace {

using base::Json;

constexpr std::size_t most_rows = 3000;

std::string dot(const std::string& look) {
    return element("span", "dot " + look, "");
}

// Renders a tree until there are too many rows.
class TreeHtml {
public:
    std::string list_of(const ModuleNode& parent) {
        std::string items;
        for (const auto& sites : parent.sites) {
            items += sites.label.empty() ? "" : site_item(sites);
        }
        for (const auto& child : parent.children) {
            items += item(child, parent.alike);
        }
        return items.empty() ? "" : element("ul", "", items);
    }
    std::size_t left_out() const { return left_out_; }

private:
    // False, and counted as left out, where there is no room for another.
    bool take_row() {
        if (rows_ == most_rows) {
            ++left_out_;
            return false;
        }
        ++rows_;
        return true;
    }

    // A module, and below it its sites and modules; its own site opens with it. `around`: for how
    // many modules the one around it stands.
    std::string item(const ModuleNode& node, std::size_t around) {
        if (!take_row()) {
            return "";
        }
        const Json* own = nullptr;
        std::string details;
        for (const auto& [label, sites] : node.sites) {
            if (label.empty()) {
                own = sites.front();
                details += element("div", "inside", site_details(group_of(sites)));
            }
        }
        const std::string line =
            dot(own != nullptr ? status_look(*own) : "none") +
            element("span", own != nullptr ? "name mono" : "mono", xml_text(node.name)) + " " +
            element("span", "soft small", xml_text(short_name(node.of))) +
            (node.alike > around
                 ? element("span", "soft small", fmt::format(" · {} alike", node.alike))
                 : "") +
            (own != nullptr ? kernel_html(*own) : "");
        const auto inside = details + list_of(node);
        return element("li", "",
                       inside.empty()
                           ? element("div", "leaf", line)
                           : disclosure("", line, inside, own == nullptr && node.has_sites()));
    }

    std::string site_item(const ModuleNode::Sites& sites) {
        if (!take_row()) {
            return "";
        }
        const Json& site = *sites.sites.front();
        const auto count = sites.sites.size();
        const auto line =
            dot(status_look(site)) + element("span", "name mono", xml_text(sites.label)) +
            (count > 1 ? element("span", "soft small", fmt::format(" · {} times", count)) : "") +
            kernel_html(site);
        return element(
            "li", "",
            disclosure("", line, element("div", "inside", site_details(group_of(sites.sites)))));
    }

    static SiteGroup group_of(const std::vector<const Json*>& sites) {
        return {sites, summary_of(sites)};
    }

    static std::string kernel_html(const Json& site) {
        const auto look = status_look(site);
        const auto kernel = shown_text(site, "kernel");
        return element("span", "small",
                       look == "replaced" ? " <span class=\"soft\">→</span> " + xml_text(kernel)
                       : look == "kept"   ? std::string(" kept")
                                          : std::string(" put back"));
    }

    std::size_t rows_ = 0;
    std::size_t left_out_ = 0;
};

}  // namespace

std::string module_tree_html(const Json& report) {
    const auto tree = module_tree(report);
    TreeHtml html;
    ModuleNode top;  // the model itself is a node like others
    top.children = {tree};
    top.children.front().name = "(the model)";
    const auto list = html.list_of(top);
    return element("div", "tree", list) +
           (html.left_out() > 0
                ? element("p", "soft", fmt::format("{} more are not shown", html.left_out()))
                : "");
}

}  // namespace twinkle::cli
