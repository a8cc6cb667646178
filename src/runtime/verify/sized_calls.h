#pragma once
// The calls that a model's sites get: on the given inputs, and in the other sizes that the original
// accepts.

#include "base/json.h"
#include "runtime/verify/call_recorder.h"
#include "runtime/verify/contestant.h"
#include "runtime/verify/verification_context.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

using SiteCalls = std::map<std::string, std::vector<RecordedCall>>;

struct SizedRecording {
    std::string size;  // "batch 2 (int64[2,8])"; empty: as given
    bool tuned = false;
    SiteCalls calls;
};

// The calls of one site in one size.
struct SizedCalls {
    std::string size;
    bool tuned = false;
    Calls calls;
};

std::string size_text(const SizeVariant& variant, const Inputs& inputs);
// Prefix of a reason: "at batch 2 (int64[2,8]): "; empty for the given inputs.
std::string at_size(const std::string& size);

// Runs in the child: records the given inputs and every other size that the original runs in. Sends
// {"fatal"} if it does not run with the given ones, else {"trying"} with the index of each variant
// before it runs, and finally {"sizes"} with the accepted ones; once one is accepted, others of its
// number are skipped. Nothing: the rest is not for this process (the original has failed, or has
// broken the GPU).
std::optional<std::vector<SizedRecording>> record_calls(CallRecorder& recorder,
                                                        const VerificationContext& context,
                                                        const Send& send);

// What record_calls() has sent.
struct SizesTried {
    std::optional<std::string> fatal;
    std::optional<std::size_t> trying;  // whether the original accepts a size
    std::vector<std::size_t> accepted;

    // Whether it is one of these messages.
    bool take(const base::Json& json);
    // Removes the size in which the original itself has crashed, or broken the GPU. Whether there
    // is one.
    bool drop_crashed(std::vector<SizeVariant>& sizes) const;
};

// The numbers come from a child that runs foreign code: each variant can be taken only once.
std::vector<SizeVariant> sizes_chosen(const std::vector<SizeVariant>& from,
                                      const std::vector<std::size_t>& which);

std::vector<SizedCalls> calls_of(const std::string& site,
                                 const std::vector<SizedRecording>& recordings);

}  // namespace twinkle::runtime
