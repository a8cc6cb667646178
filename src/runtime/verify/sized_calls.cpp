#include "runtime/verify/sized_calls.h"

#include "base/json.h"
#include "base/text.h"
#include "runtime/trial/gpu_state.h"
#include "runtime/verify/run_error.h"

#include <ATen/Context.h>

#include <algorithm>
#include <exception>
#include <set>

namespace twinkle::runtime {

namespace {

constexpr std::size_t calls_per_site = 4;

// cuDNN plans attention for each new shape, a third of a second each on an H200. What is recorded
// may come from any attention: only sites are compared and measured with it.
class AttentionWithoutPlans {
public:
    AttentionWithoutPlans() : before_(at::globalContext().userEnabledCuDNNSDP()) {
        at::globalContext().setSDPUseCuDNN(false);
    }
    ~AttentionWithoutPlans() { at::globalContext().setSDPUseCuDNN(before_); }
    AttentionWithoutPlans(const AttentionWithoutPlans&) = delete;
    AttentionWithoutPlans& operator=(const AttentionWithoutPlans&) = delete;

private:
    bool before_;
};

SiteCalls record_size(CallRecorder& recorder, const Inputs& inputs) {
    return recorder.record(calls_per_site, [&](torch::jit::Module& model) {
        run_seeded(model, "forward", deep_copy(inputs));
    });
}

// None: the original does not run in this size, so nothing can be wrong in it.
std::optional<SizedRecording> record_variant(CallRecorder& recorder,
                                             const VerificationContext& context,
                                             const SizeVariant& variant) {
    try {
        const Inputs inputs = variant.of(context.inputs);
        return SizedRecording{size_text(variant, inputs), variant.tuned,
                              record_size(recorder, inputs)};
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

// False: the original has broken the GPU.
bool record_sizes(CallRecorder& recorder, const VerificationContext& context, const Send& send,
                  std::vector<SizedRecording>& recordings) {
    // Each runs once: preparing TorchScript's optimizer for further runs takes longer.
    const torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
    std::vector<std::size_t> accepted;
    std::set<std::size_t> numbers;
    bool lengths = false;
    for (std::size_t i = 0; i < context.sizes.size(); ++i) {
        const SizeVariant& variant = context.sizes[i];
        if (numbers.contains(variant.number) || (variant.instead && lengths)) {
            continue;
        }
        send(base::json_line({{"trying", i}}));
        if (auto recording = record_variant(recorder, context, variant)) {
            recordings.push_back(*std::move(recording));
            lengths = lengths || (variant.length > 0 && variant.batch == 0);
            numbers.insert(variant.number);
            accepted.push_back(i);
        }
        if (context.device && !still_works(context.device)) {
            return false;
        }
    }
    send(base::json_line({{"sizes", accepted}}));
    return true;
}

}  // namespace

std::string size_text(const SizeVariant& variant, const Inputs& inputs) {
    return variant.name() + " (" + shapes_text(inputs) + ")";
}

std::string at_size(const std::string& size) {
    return size.empty() ? "" : "at " + size + ": ";
}

std::optional<std::vector<SizedRecording>> record_calls(CallRecorder& recorder,
                                                        const VerificationContext& context,
                                                        const Send& send) {
    const AttentionWithoutPlans as_recorded;
    std::vector<SizedRecording> recordings;
    try {
        recordings.push_back({"", true, record_size(recorder, context.inputs)});
    } catch (const std::exception& error) {
        send(base::json_line({{"fatal", run_error(error.what())}}));
        return std::nullopt;
    }
    if (!record_sizes(recorder, context, send, recordings)) {
        return std::nullopt;
    }
    return recordings;
}

bool SizesTried::take(const base::Json& json) {
    if (json.contains("fatal")) {
        fatal = base::printable(json["fatal"].get<std::string>());
    } else if (json.contains("trying")) {
        trying = json["trying"].get<std::size_t>();
    } else if (json.contains("sizes")) {
        accepted = json["sizes"].get<std::vector<std::size_t>>();
        trying.reset();
    } else {
        return false;
    }
    return true;
}

bool SizesTried::drop_crashed(std::vector<SizeVariant>& sizes) const {
    const bool crashed = trying && *trying < sizes.size();
    if (crashed) {
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(*trying));
    }
    return crashed;
}

std::vector<SizeVariant> sizes_chosen(const std::vector<SizeVariant>& from,
                                      const std::vector<std::size_t>& which) {
    std::vector<SizeVariant> sizes;
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (std::find(which.begin(), which.end(), i) != which.end()) {
            sizes.push_back(from[i]);
        }
    }
    return sizes;
}

std::vector<SizedCalls> calls_of(const std::string& site,
                                 const std::vector<SizedRecording>& recordings) {
    std::vector<SizedCalls> sized;
    for (const SizedRecording& recording : recordings) {
        sized.push_back({recording.size, recording.tuned, {}});
        if (const auto found = recording.calls.find(site); found != recording.calls.end()) {
            for (const RecordedCall& call : found->second) {
                sized.back().calls.push_back({call.method, Inputs{call.inputs, {}}});
            }
        }
    }
    return sized;
}

}  // namespace twinkle::runtime
