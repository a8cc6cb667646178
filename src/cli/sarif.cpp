#include "cli/sarif.h"

#include <algorithm>

namespace fs = std::filesystem;

namespace twinkle::cli {
namespace {

using base::Json;

// Percent-encodes a path as RFC 3986 requires.
std::string uri(const std::string& path) {
    static const char digits[] = "0123456789ABCDEF";
    std::string text;
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                           (c >= 'a' && c <= 'z') ||
                           std::string_view("/-._~+,=@").find(c) != std::string_view::npos;
        if (plain) {
            text += c;
        } else {
            text += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return text;
}

Json rule_json(const kernel::Rule& rule) {
    return {{"id", rule.id},
            {"shortDescription", {{"text", rule.text}}},
            {"help", {{"text", rule.remedy}}}};
}

// The folder that was checked, relative to the current one; empty if it is not below it.
fs::path below_here(const fs::path& checked) {
    std::error_code error;
    const fs::path relative = fs::relative(checked, error);
    return error || relative.empty() || *relative.begin() == ".." ? fs::path() : relative;
}

Json result_json(const kernel::Finding& finding, std::size_t rule_index, const fs::path& folder) {
    const fs::path file =
        finding.file.empty() ? folder : (folder / finding.file).lexically_normal();
    Json location{
        {"artifactLocation",
         {{"uri", file.empty() ? "." : uri(file.generic_string())}, {"uriBaseId", "%SRCROOT%"}}}};
    if (finding.line > 0) {
        location["region"] = {{"startLine", finding.line}};
    }
    return {{"ruleId", finding.rule},
            {"ruleIndex", rule_index},
            {"level", kernel::severity_name(finding.severity)},
            {"message", {{"text", finding.text}}},
            {"locations", Json::array({{{"physicalLocation", location}}})}};
}

}  // namespace

Json sarif(const operations::CheckReport& report, const fs::path& checked) {
    const fs::path folder = below_here(checked);
    Json rules = Json::array();
    for (const kernel::Rule& rule : kernel::rules()) {
        rules.push_back(rule_json(rule));
    }
    Json results = Json::array();
    for (const kernel::Finding& finding : report.findings) {
        const auto all = kernel::rules();
        const auto at = std::find_if(all.begin(), all.end(),
                                     [&](const auto& rule) { return rule.id == finding.rule; });
        results.push_back(result_json(finding, static_cast<std::size_t>(at - all.begin()), folder));
    }
    const Json run{
        {"tool",
         {{"driver", {{"name", "twinkle"}, {"version", TWINKLE_VERSION}, {"rules", rules}}}}},
        {"columnKind", "utf16CodeUnits"},
        {"results", results}};
    return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
            {"version", "2.1.0"},
            {"runs", Json::array({run})}};
}

}  // namespace twinkle::cli
