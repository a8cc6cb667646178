#pragma once
// What a measurement holds for: the device it was made on, and the code that was measured.

#include <string>
#include <string_view>

#include "base/json.h"
#include "target/machine.h"

namespace twinkle::tuning {

// A device as facts, and their hash as its name. Measurements of equal environments may be mixed.
class Environment {
public:
    explicit Environment(base::Json facts);

    const base::Json& facts() const { return facts_; }
    const std::string& id() const { return id_; }  // 16 hex digits

    bool operator==(const Environment& other) const { return id_ == other.id_; }

private:
    base::Json facts_;
    std::string id_;
};

// What the machine does not know of the process that measures.
struct ProcessFacts {
    int threads = 0;     // that LibTorch computes with; 0: as many as there are cores
    std::string cuda{};  // of LibTorch: "13.0"; empty: none
    std::string rocm{};
};

// "cpu": model, instruction sets, threads. "cuda", "rocm": the GPUs as a set, whatever their order,
// with driver and library. Of the others nothing is known but the name.
Environment environment_of(std::string_view device, const target::Machine& machine,
                           const ProcessFacts& process);

// Hashes a candidate's build (MappedKernel::build_id(), or what an operation says of its version)
// and its configuration's content. 32 hex digits.
std::string candidate_id(std::string_view build, const base::Json& cfg);

}  // namespace twinkle::tuning
