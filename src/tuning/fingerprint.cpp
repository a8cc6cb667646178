#include "tuning/fingerprint.h"

#include <algorithm>
#include <map>

#include "base/sha256.h"

namespace twinkle::tuning {

using base::Json;

namespace {

std::string short_hash(const Json& value, std::size_t digits) {
    return base::sha256_hex(base::json_line(value)).substr(0, digits);
}

// How many there are of each kind.
Json gpu_set(const std::vector<target::Gpu>& gpus) {
    std::map<std::string, std::pair<Json, int>> kinds;
    for (const target::Gpu& gpu : gpus) {
        Json kind = {{"name", gpu.name}, {"arch", gpu.arch}, {"memory", gpu.memory_bytes}};
        auto& [facts, count] = kinds[base::json_line(kind)];
        facts = std::move(kind);
        ++count;
    }
    Json set = Json::array();
    for (auto& [text, kind] : kinds) {
        kind.first["count"] = kind.second;
        set.push_back(std::move(kind.first));
    }
    return set;
}

Json cpu_facts(const target::Machine& machine, const ProcessFacts& process) {
    const target::CpuFacts cpu = machine.cpu();
    return {{"device", "cpu"},
            {"arch", cpu.arch},
            {"model", cpu.model},
            {"features", cpu.features},
            {"threads", process.threads > 0 ? process.threads : cpu.cores}};
}

}  // namespace

Environment::Environment(Json facts) : facts_(std::move(facts)), id_(short_hash(facts_, 16)) {}

Environment environment_of(std::string_view device, const target::Machine& machine,
                           const ProcessFacts& process) {
    if (device == "cpu") {
        return Environment(cpu_facts(machine, process));
    }
    Json facts = {{"device", device}, {"arch", machine.arch()}};
    if (device == "cuda") {
        const auto driver = machine.may_have_cuda() ? machine.cuda_driver() : std::nullopt;
        facts["cuda"] = process.cuda;
        facts["driver"] = driver ? driver->version.text() : "";
        facts["gpus"] = gpu_set(driver ? driver->gpus : std::vector<target::Gpu>());
    } else if (device == "rocm") {
        facts["rocm"] = process.rocm;
        facts["gpus"] = gpu_set(machine.rocm_gpus());
    }
    return Environment(std::move(facts));
}

std::string candidate_id(std::string_view build, const Json& cfg) {
    return short_hash({{"build", build}, {"cfg", cfg}}, 32);
}

}  // namespace twinkle::tuning
