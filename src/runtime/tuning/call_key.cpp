#include "twinkle/call_key.h"

#include "base/text.h"

#include <c10/core/Layout.h>
#include <c10/core/ScalarType.h>

#include <bit>

namespace twinkle {

namespace {

enum class Lies { dense, rows, channels_last, strided, other };

constexpr std::int64_t widest_alignment = 16;  // bytes that one instruction reads

Lies how_it_lies(const at::Tensor& tensor) {
    if (tensor.layout() != c10::kStrided) {
        return Lies::other;
    }
    if (tensor.is_contiguous()) {
        return Lies::dense;
    }
    if (tensor.dim() == 4 && tensor.is_contiguous(at::MemoryFormat::ChannelsLast)) {
        return Lies::channels_last;
    }
    return tensor.dim() > 0 && tensor.strides().back() == 1 ? Lies::rows : Lies::strided;
}

const char* layout_name(Lies lies) {
    switch (lies) {
        case Lies::dense: return "dense";
        case Lies::rows: return "rows";
        case Lies::channels_last: return "channels_last";
        case Lies::strided: return "strided";
        case Lies::other: return "other";
    }
    return "other";
}

// 0: it has no address.
std::int64_t alignment_of(const at::Tensor& tensor, Lies lies) {
    if (lies == Lies::other || !tensor.has_storage() || tensor.is_meta()) {
        return 0;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
    return address == 0 ? widest_alignment
                        : std::min<std::int64_t>(widest_alignment,
                                                 std::int64_t{1} << std::countr_zero(address));
}

std::int64_t bucket_of(c10::IntArrayRef sizes, std::size_t dimension) {
    return dimension + 1 == sizes.size() ? sizes[dimension] : size_bucket(sizes[dimension]);
}

// "float32", as torch says it.
std::string dtype_text(at::ScalarType dtype) {
    const auto [name, legacy] = c10::getDtypeNames(dtype);
    return std::string(name);
}

}  // namespace

AbstractInput abstract_input(const at::Tensor& tensor) {
    if (!tensor.defined()) {
        return {.dtype = "none"};
    }
    const Lies lies = how_it_lies(tensor);
    AbstractInput input{.dtype = dtype_text(tensor.scalar_type()),
                        .layout = layout_name(lies),
                        .alignment = alignment_of(tensor, lies)};
    const auto sizes = tensor.sizes();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        input.sizes.push_back(bucket_of(sizes, i));
    }
    return input;
}

AbstractInput detail::abstract_list(const std::vector<std::int64_t>& list) {
    std::string value;
    for (const std::int64_t one : list) {
        value += (value.empty() ? "" : ",") + std::to_string(one);
    }
    return {.dtype = "ints", .value = value};
}

void detail::add_tensor(CallKey& key, const at::Tensor& tensor) {
    if (!tensor.defined()) {
        key.add(1);
        return;
    }
    const Lies lies = how_it_lies(tensor);
    const auto sizes = tensor.sizes();
    std::uint64_t word = 16;  // other than the marks of add_argument
    for (const std::uint64_t part :
         {static_cast<std::uint64_t>(tensor.scalar_type()),
          static_cast<std::uint64_t>(tensor.device().type()), static_cast<std::uint64_t>(lies),
          static_cast<std::uint64_t>(alignment_of(tensor, lies)),
          static_cast<std::uint64_t>(sizes.size())}) {
        word = (word << 8) | (part & 0xff);
    }
    key.add(word);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        key.add(static_cast<std::uint64_t>(bucket_of(sizes, i)));
    }
}

void detail::add_text(CallKey& key, std::string_view text) {
    key.add(9);
    key.add(text.size());
    while (!text.empty()) {
        std::uint64_t word = 0;
        const std::size_t count = std::min(text.size(), sizeof(word));
        std::memcpy(&word, text.data(), count);
        key.add(word);
        text.remove_prefix(count);
    }
}

std::string default_key_builder(const Invocation& invocation) {
    return invocation.key();
}

std::string default_key_builder_with_sharding(const Invocation& invocation,
                                              const std::string& sharding) {
    Invocation divided = invocation;
    divided.extras["sharding"] = sharding;
    return divided.key();
}

std::string sharding_fingerprint(std::size_t parts,
                                 const std::vector<std::optional<std::int64_t>>& in_axes,
                                 const std::vector<std::string>& platforms) {
    std::vector<std::string> axes;
    for (const auto& axis : in_axes) {
        axes.push_back(axis ? std::to_string(*axis) : "-");
    }
    std::vector<std::string> kinds = platforms;
    std::sort(kinds.begin(), kinds.end());
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    return std::to_string(parts) + " parts [" + base::join(axes, ",") + "] on " +
           base::join(kinds, ",");
}

}  // namespace twinkle
