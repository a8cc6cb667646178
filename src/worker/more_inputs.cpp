#include "worker/more_inputs.h"

#include <memory>
#include <utility>

namespace twinkle::worker {

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

}  // namespace twinkle::worker
