#pragma once
// What the sites of a model are called with: on the given inputs, and in those other sizes that the
// original accepts.

#include "runtime/verify/call_recorder.h"
#include "runtime/verify/contestant.h"
#include "runtime/verify/verification_context.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

using SiteCalls = std::map<std::string, std::vector<RecordedCall>>;

struct SizedRecording {
    std::string size;  // "batch 2 (int64[2,8])"; empty: as given
    SiteCalls calls;
};

// The same of one site.
struct SizedCalls {
    std::string size;
    Calls calls;
};

std::string size_text(const SizeVariant& variant, const Inputs& inputs);
// In front of a reason: "at batch 2 (int64[2,8]): "; nothing for the given inputs.
std::string at_size(const std::string& size);

SiteCalls record_size(CallRecorder& recorder, const Inputs& inputs);

// In the child: adds a recording for every size that the original runs in. Sends {"trying"} with
// the index of each before it is run, at last {"sizes"} with those that were accepted; of these
// others with their number are not tried. False: what the original did has broken the GPU for this
// process.
bool record_sizes(CallRecorder& recorder, const VerificationContext& context,
                  const std::function<void(std::string_view)>& send,
                  std::vector<SizedRecording>& recordings);

std::vector<SizedCalls> calls_of(const std::string& site,
                                 const std::vector<SizedRecording>& recordings);

}  // namespace twinkle::runtime
