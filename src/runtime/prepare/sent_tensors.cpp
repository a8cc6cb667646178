#include "runtime/prepare/sent_tensors.h"

#include "runtime/graph/format.h"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <vector>

namespace twinkle::runtime {

namespace {

using base::Json;

constexpr std::size_t alignment = 64;

constexpr std::array dtypes = {at::kByte,          at::kChar,  at::kShort, at::kInt,
                               at::kLong,          at::kFloat, at::kHalf,  at::kBFloat16,
                               at::kFloat8_e4m3fn, at::kBool,  at::kDouble};

std::optional<at::ScalarType> dtype_called(const std::string& name) {
    const auto found = std::find_if(dtypes.begin(), dtypes.end(),
                                    [&](at::ScalarType one) { return name == c10::toString(one); });
    return found != dtypes.end() ? std::optional(*found) : std::nullopt;
}

// The bytes of a tensor; none: more than there may be.
std::optional<std::size_t> size_in_bytes(const std::vector<std::int64_t>& sizes,
                                         at::ScalarType dtype, std::size_t most) {
    std::size_t bytes = c10::elementSize(dtype);
    for (const std::int64_t size : sizes) {
        if (size < 0 || (size > 0 && bytes > most / static_cast<std::size_t>(size))) {
            return std::nullopt;
        }
        bytes *= static_cast<std::size_t>(size);
    }
    return bytes;
}

}  // namespace

Json TensorSender::put(const NamedTensors& tensors) {
    Json list = Json::array();
    for (const auto& [name, tensor] : tensors) {
        const at::Tensor value = tensor.cpu();
        const std::size_t at = (used_ + alignment - 1) / alignment * alignment;
        const auto room = memory_.bytes();
        if (at > room.size() || value.nbytes() > room.size() - at) {
            throw std::runtime_error("they are more than twice as large as the original's");
        }
        at::from_blob(room.data() + at, value.sizes(), value.options()).copy_(value);
        used_ = at + value.nbytes();
        list.push_back({{"name", name},
                        {"dtype", c10::toString(value.scalar_type())},
                        {"sizes", value.sizes().vec()},
                        {"at", at}});
    }
    return list;
}

tl::expected<NamedTensors, std::string> received_tensors(const SharedMemory& memory,
                                                         const Json& sent,
                                                         const c10::ClassType& type) {
    const auto wrong = [](const std::string& name) {
        return tl::make_unexpected("its prepared weights are damaged" +
                                   (name.empty() ? "" : ": " + name));
    };
    constexpr std::size_t most_dimensions = 64;
    NamedTensors tensors;
    try {
        for (const Json& one : sent) {
            const auto name = one.at("name").get<std::string>();
            const auto dtype = dtype_called(one.at("dtype").get<std::string>());
            const auto sizes = one.at("sizes").get<std::vector<std::int64_t>>();
            const auto at = one.at("at").get<std::size_t>();
            const auto known = type.findAttribute(name);
            const auto room = memory.bytes();
            if (known == nullptr || known->kind() != c10::TypeKind::TensorType || !dtype ||
                sizes.size() > most_dimensions || at > room.size() || at % alignment != 0) {
                return wrong("");
            }
            const auto bytes = size_in_bytes(sizes, *dtype, room.size());
            if (!bytes || *bytes > room.size() - at) {
                return wrong(name);
            }
            tensors[name] = at::from_blob(room.data() + at, sizes, at::dtype(*dtype)).clone();
        }
    } catch (const Json::exception&) {
        return wrong("");
    }
    return tensors;
}

}  // namespace twinkle::runtime
