#include "worker/more_inputs.h"

#include "base/file.h"
#include "twinkle/error.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace twinkle::worker {

namespace {

void warn_of_lost(const Channel& channel, const runtime::Inputs& inputs,
                  const std::string& why = "") {
    channel.warning("a call is not measured: the original model does not take " +
                    runtime::shapes_text(inputs) + (why.empty() ? "" : ": " + why));
}

}  // namespace

std::size_t next_number(const std::vector<runtime::SizeVariant>& sizes) {
    return sizes.empty() ? 0 : sizes.back().number + 1;
}

void add_more_inputs(const protocol::Request& request, runtime::VerificationContext& context) {
    for (const std::string& file : request.more_inputs) {
        runtime::Inputs inputs = runtime::read_inputs(file);
        if (context.dtype) {
            inputs = runtime::with_dtype(inputs, *context.dtype);
        }
        runtime::SizeVariant size{.number = next_number(context.sizes), .tuned = true};
        size.own = std::make_shared<const runtime::Inputs>(std::move(inputs));
        context.sizes.push_back(std::move(size));
    }
}

bool use_next_recorded(const Channel& channel, const std::string& why,
                       runtime::VerificationContext& context) {
    const auto next = std::find_if(context.sizes.begin(), context.sizes.end(),
                                   [](const auto& size) { return size.own != nullptr; });
    if (next == context.sizes.end()) {
        return false;
    }
    warn_of_lost(channel, context.inputs, why);
    context.inputs = *next->own;
    context.sizes.erase(next);
    return true;
}

void refuse_lost_inputs(const protocol::Request& request, const Channel& channel,
                        const std::vector<runtime::SizeVariant>& given,
                        const std::vector<runtime::SizeVariant>& accepted) {
    for (const runtime::SizeVariant& one : given) {
        const bool lost = one.own != nullptr &&
                          std::none_of(accepted.begin(), accepted.end(), [&](const auto& other) {
                              return other.number == one.number;
                          });
        if (lost && !request.recorded_model.empty()) {
            warn_of_lost(channel, *one.own);
        } else if (lost) {
            throw Error(ErrorCode::malformed,
                        {.what = "the original model cannot be run on one of the further --inputs",
                         .where = base::display_path(request.model),
                         .why = "it does not take " + runtime::shapes_text(*one.own),
                         .hint = "`twinkle run` with these alone says why"});
        }
    }
}

}  // namespace twinkle::worker
