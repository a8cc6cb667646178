// Targets as people and files write them.

#include <algorithm>

#include "base/document.h"
#include "base/file.h"
#include "base/text.h"
#include "target/target.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::target {
namespace {

[[noreturn]] void fail(std::string what, std::string why, std::string hint) {
    throw Error(
        ErrorCode::malformed,
        {.what = std::move(what), .where = "", .why = std::move(why), .hint = std::move(hint)});
}

bool is_target_key(const std::string& key) {
    const auto& keys = target_keys();
    return std::find(keys.begin(), keys.end(), key) != keys.end();
}

[[noreturn]] void fail_unknown(const std::string& text,
                               const std::map<std::string, TargetSpec>& named) {
    std::vector<std::string> names{"here"};
    for (const auto& [name, spec] : named) {
        names.push_back(name);
    }
    const std::string near = base::suggestion(text, names);
    throw Error(
        ErrorCode::not_found,
        {.what = "no target \"" + base::printable(text) + "\"",
         .where = "",
         .why = "it is neither a name in [targets] of the manifest nor a file; there are: " +
                base::join(names, ", "),
         .hint = near.empty() ? "write it out: --target torch=2.13,backend=cpu" : near});
}

}  // namespace

const std::vector<std::string>& target_keys() {
    static const std::vector<std::string> keys{"torch", "cxx11", "backend", "arch",
                                               "cpu",   "os",    "tvm-ffi", "macos"};
    return keys;
}

TargetSpec parse_target_spec(std::string_view text) {
    TargetSpec spec{{}, "--target " + base::printable(text)};
    for (const std::string& part : base::split(text, ',')) {
        const auto equals = part.find('=');
        const std::string key = part.substr(0, equals);
        if (equals == std::string::npos || equals + 1 == part.size()) {
            fail("cannot read the target \"" + base::printable(text) + "\"",
                 "\"" + base::printable(part) + "\" is not key=value",
                 "keys: " + base::join(target_keys(), ", "));
        }
        if (!is_target_key(key)) {
            const std::string near = base::suggestion(key, target_keys());
            fail("unknown key \"" + base::printable(key) + "\" in the target", "",
                 near.empty() ? "known keys: " + base::join(target_keys(), ", ") : near);
        }
        if (!spec.values.emplace(key, part.substr(equals + 1)).second) {
            fail("the key \"" + key + "\" is given twice in the target", "", "");
        }
    }
    return spec;
}

TargetSpec read_target_file(const fs::path& file) {
    const std::string origin = base::display_path(file);
    const base::Node root =
        base::parse_json_document(base::read_file(file, "target file", 1u << 20), origin);
    base::TableReader document(root, origin, "the target file");
    const base::Node& table = document.require("target");
    base::TableReader reader(table, origin, "the target");
    TargetSpec spec{{}, origin};
    for (const std::string& key : target_keys()) {
        if (const auto value = reader.string(key)) {
            spec.values.emplace(key, *value);
        }
    }
    reader.finish();
    return spec;
}

Target choose_target(const std::optional<std::string>& text,
                     const std::map<std::string, TargetSpec>& named, const Machine& machine,
                     const std::optional<Runtime>& runtime) {
    if (!text || *text == "here") {
        return complete_target({}, machine, runtime);
    }
    if (const auto found = named.find(*text); found != named.end()) {
        return complete_target(found->second, machine, runtime);
    }
    if (text->find('=') != std::string::npos) {
        return complete_target(parse_target_spec(*text), machine, runtime);
    }
    std::error_code error;
    if (!fs::exists(*text, error)) {
        fail_unknown(*text, named);
    }
    return complete_target(read_target_file(*text), machine, runtime);
}

}  // namespace twinkle::target
