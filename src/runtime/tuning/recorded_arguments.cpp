#include "runtime/tuning/recorded_arguments.h"

#include "base/number.h"
#include "base/text.h"
#include "runtime/model/inputs.h"
#include "twinkle/error.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

namespace twinkle::runtime {

namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 31;
constexpr double small = 1e-6;  // an epsilon, most likely

[[noreturn]] void does_not_fit(const Invocation& invocation, const std::string& why) {
    throw Error(ErrorCode::malformed, {.what = "a recorded call cannot be repeated",
                                       .where = base::printable(invocation.operation),
                                       .why = why,
                                       .hint = ""});
}

[[noreturn]] void sizes_do_not_fit(const std::string& why) {
    throw Error(
        ErrorCode::malformed,
        {.what = "a recorded call cannot be repeated", .where = "", .why = why, .hint = ""});
}

std::optional<at::ScalarType> dtype_of(const std::string& name) {
    constexpr std::array known = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,
                                  at::kLong,  at::kInt,    at::kBool};
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](at::ScalarType one) { return dtype_name(one) == name; });
    return found != known.end() ? std::optional(*found) : std::nullopt;
}

std::int64_t elements_of(const std::vector<std::int64_t>& sizes) {
    std::int64_t elements = 1;
    for (const std::int64_t size : sizes) {
        if (size > 0 && elements > most_elements / size) {
            return most_elements + 1;
        }
        elements *= size;
    }
    return elements;
}

}  // namespace

const AbstractInput& RecordedArguments::take() {
    if (next_ >= invocation_.inputs.size()) {
        does_not_fit(invocation_, "it has too few arguments");
    }
    return invocation_.inputs[next_++];
}

bool RecordedArguments::none() {
    const bool is_none =
        next_ < invocation_.inputs.size() && invocation_.inputs[next_].dtype == "none";
    next_ += is_none ? 1 : 0;
    return is_none;
}

at::Tensor RecordedArguments::tensor() {
    const AbstractInput& input = take();
    const auto dtype = dtype_of(input.dtype);
    if (input.layout.empty() || !dtype || elements_of(input.sizes) > most_elements) {
        does_not_fit(invocation_, "its argument " + std::to_string(next_) +
                                      " is no tensor that can be made here");
    }
    const at::Device device = invocation_.device == "cpu" ? at::kCPU : at::kCUDA;
    const at::ScalarType known = *dtype;
    const auto options = at::TensorOptions().dtype(known).device(device);
    std::vector<std::int64_t> sizes = input.sizes;
    const bool rows = input.layout == "rows" && !sizes.empty();
    const bool channels_last = input.layout == "channels_last" && sizes.size() == 4;
    if (rows) {
        sizes.back() += 8;
    } else if (input.layout != "dense" && !channels_last) {
        does_not_fit(invocation_, "its argument " + std::to_string(next_) +
                                      " is a tensor with strides, which a record does not have");
    }
    at::Tensor made = at::isFloatingType(*dtype) ? at::randn(sizes, options.dtype(at::kFloat))
                                                 : at::zeros(sizes, options);
    made = made.to(*dtype);
    if (channels_last) {
        return made.contiguous(at::MemoryFormat::ChannelsLast);
    }
    return rows ? made.narrow(-1, 0, input.sizes.back()) : made;
}

bool RecordedArguments::truth() {
    const AbstractInput& input = take();
    if (input.dtype != "bool") {
        does_not_fit(invocation_, "its argument " + std::to_string(next_) + " is no truth value");
    }
    return input.value == "true";
}

double RecordedArguments::number() {
    if (take().dtype != "float") {
        does_not_fit(invocation_, "its argument " + std::to_string(next_) + " is no number");
    }
    return small;
}

void RecordedArguments::read_integers(std::span<std::int64_t> integers) {
    const AbstractInput& input = take();
    const auto texts = base::split(input.value, ',');
    if (input.dtype != "ints" || texts.size() != integers.size()) {
        does_not_fit(invocation_,
                     "its argument " + std::to_string(next_) + " is no list of as many integers");
    }
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const auto known = base::parse_number<std::int64_t>(texts[i]);
        if (!known || *known < 0 || *known > most_elements) {
            does_not_fit(invocation_, base::printable(texts[i]) + " is none of its integers");
        }
        integers[i] = *known;
    }
}

void RecordedArguments::finish() const {
    if (next_ != invocation_.inputs.size()) {
        does_not_fit(invocation_, "it has too many arguments");
    }
}

void require_possible(const std::vector<std::int64_t>& sizes) {
    if (elements_of(sizes) > most_elements) {
        sizes_do_not_fit("its result is too large");
    }
}

at::Tensor narrowed(const at::Tensor& tensor, std::int64_t dim, std::int64_t size) {
    const std::int64_t from_first = dim < 0 ? dim + tensor.dim() : dim;
    if (from_first < 0 || from_first >= tensor.dim() || size < 0 ||
        size > tensor.size(from_first)) {
        sizes_do_not_fit("its sizes do not fit each other");
    }
    const auto format = tensor.suggest_memory_format();
    const at::Tensor part = tensor.narrow(from_first, 0, size);
    return tensor.is_contiguous(format) ? part.contiguous(format) : part;
}

}  // namespace twinkle::runtime
