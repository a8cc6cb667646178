// Answers questions about src/project and src/kernel for the tests that compare them with the
// Python tools (`kernels`, packaging): one JSON object per line on standard input, one on standard
// output.

#include <algorithm>
#include <iostream>

#include "base/json.h"
#include "base/sha256.h"
#include "kernel/versions.h"
#include "project/kernels_lock.h"
#include "project/lock.h"
#include "project/version_specifier.h"
#include "target/target.h"
#include "twinkle/error.h"

namespace {

using namespace twinkle;
using base::Json;
using Strings = std::vector<std::string>;

// {"releases": […]}: which of them are releases, and their order.
Json order(const Json& question) {
    std::vector<project::Release> releases;
    Json valid = Json::array();
    for (const std::string& text : question["releases"].get<Strings>()) {
        auto release = project::parse_release(text);
        valid.push_back(release.has_value());
        if (release) {
            releases.push_back(std::move(*release));
        }
    }
    std::stable_sort(releases.begin(), releases.end(),
                     [](const auto& a, const auto& b) { return project::compare(a, b) < 0; });
    Json sorted = Json::array();
    for (const auto& release : releases) {
        sorted.push_back(release.spelled);
    }
    return {{"valid", valid}, {"sorted", sorted}};
}

// {"specifier": …, "releases": […]}: which of them it admits, and the newest.
Json admit(const Json& question) {
    const auto text = question["specifier"].get<std::string>();
    const auto specifier = project::VersionSpecifier::parse(text);
    if (!specifier) {
        return {{"valid", false}};
    }
    Json admitted = Json::array();
    const auto releases = question["releases"].get<Strings>();
    for (const std::string& release : releases) {
        if (specifier->admits(project::parse_release(release).value(), true)) {
            admitted.push_back(release);
        }
    }
    const auto newest = project::newest_admitted(text, releases);
    return {{"valid", true},
            {"admitted", admitted},
            {"newest", newest ? Json(*newest) : Json()},
            {"names_prerelease", specifier->names_prerelease()}};
}

// {"locks": [{"repo_id", "version" | "revision", "commit"}]}: kernels.lock.
Json write_kernels_lock(const Json& question) {
    project::Lock lock;
    for (const Json& entry : question["locks"]) {
        project::LockedKernel kernel;
        kernel.name = entry["repo_id"];
        kernel.commit = entry["commit"];
        kernel.ref = "main";
        if (entry.contains("version")) {
            kernel.pin.version = entry["version"].get<int>();
        } else {
            kernel.pin.revision = entry["revision"];
        }
        lock.set(std::move(kernel));
    }
    return {{"text", project::kernels_lock_json(lock)}};
}

// {"kernels_lock": text}: its contents, or the error.
Json read_kernels_lock(const Json& question) {
    Json locks = Json::array();
    for (const auto& kernel :
         project::parse_kernels_lock(question["kernels_lock"].get<std::string>(), "l").kernels) {
        locks.push_back({kernel.name, kernel.pin.text(), kernel.commit});
    }
    return {{"locks", locks}};
}

// {"kernels": [{"name", "version", "commit", "variants": {name: {path: seed}}}]}: twinkle.lock.
Json write_lock(const Json& question) {
    project::Lock lock;
    for (const Json& entry : question["kernels"]) {
        project::LockedKernel kernel;
        kernel.name = entry["name"];
        kernel.pin.version = entry["version"].get<int>();
        kernel.ref = "v" + kernel.pin.text();
        kernel.commit = base::sha256_hex(entry["commit"].get<std::string>()).substr(0, 40);
        for (const auto& [name, files] : entry["variants"].items()) {
            project::LockedVariant variant;
            variant.name = name;
            variant.metadata_sha256 = base::sha256_hex(files.dump());
            for (const auto& [path, seed] : files.items()) {
                const std::string hash = base::sha256_hex(seed.get<std::string>());
                variant.files.push_back({path, hash.size(), hash.substr(0, 40), hash});
            }
            kernel.variants.push_back(std::move(variant));
        }
        lock.set(std::move(kernel));
    }
    return {{"text", project::lock_toml(lock)}};
}

// {"lock": text}: the text written back, or its error.
Json read_lock(const Json& question) {
    return {{"text",
             project::lock_toml(project::parse_lock(question["lock"].get<std::string>(), "l"))}};
}

// {"variants": […], "target": "torch=…", "device": …}: accepted ones in order, and the others.
Json rank(const Json& question) {
    std::vector<kernel::OfferedVariant> offered;
    for (const Json& entry : question["variants"]) {
        const auto archs = entry.value("archs", Strings());
        offered.push_back({entry["name"], [archs] { return archs; }});
    }
    const auto target = target::choose_target(question["target"].get<std::string>(), {},
                                              target::this_machine(), std::nullopt);
    Json accepted = Json::array();
    Json rejected = Json::object();
    for (const auto& choice :
         kernel::rank_variants(offered, target, question["device"].get<std::string>())) {
        if (choice.accepted) {
            accepted.push_back(choice.name);
        } else {
            rejected[choice.name] = choice.reason;
        }
    }
    return {{"accepted", accepted}, {"rejected", rejected}};
}

Json answer(const Json& question) {
    const auto what = question["do"].get<std::string>();
    return what == "order"                ? order(question)
           : what == "admit"              ? admit(question)
           : what == "write_kernels_lock" ? write_kernels_lock(question)
           : what == "read_kernels_lock"  ? read_kernels_lock(question)
           : what == "write_lock"         ? write_lock(question)
           : what == "read_lock"          ? read_lock(question)
                                          : rank(question);
}

}  // namespace

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        Json result;
        try {
            result = answer(Json::parse(line));
        } catch (const Error& error) {
            result = {{"error", error.details().what + ": " + error.details().why},
                      {"exit", error.exit_code()}};
        }
        std::cout << result.dump() << '\n';
    }
}
