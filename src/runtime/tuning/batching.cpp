#include "twinkle/batching.h"

#include "twinkle/error.h"

namespace twinkle::detail {

namespace {

[[noreturn]] void bad_axes(const std::string& what, const std::string& why) {
    throw Error(ErrorCode::malformed, {.what = what, .where = "in_axes", .why = why, .hint = ""});
}

}  // namespace

std::int64_t checked_size(const at::Tensor& tensor, std::int64_t axis, std::size_t argument) {
    const std::string which = "argument " + std::to_string(argument);
    if (!tensor.defined()) {
        bad_axes(which + " cannot be divided", "it is no tensor");
    }
    if (axis < -tensor.dim() || axis >= tensor.dim()) {
        bad_axes(which + " has no dimension " + std::to_string(axis),
                 "it has " + std::to_string(tensor.dim()));
    }
    return tensor.size(axis);
}

void require_axes(std::size_t given, std::size_t arguments) {
    if (given != arguments) {
        bad_axes("there are " + std::to_string(given) + " axes for " + std::to_string(arguments) +
                     " arguments",
                 "every argument has one, or none (std::nullopt)");
    }
}

void require_same_size(std::int64_t& size, std::int64_t other, std::size_t argument) {
    if (size >= 0 && size != other) {
        bad_axes("argument " + std::to_string(argument) + " is divided into " +
                     std::to_string(other) + " parts",
                 "those before it into " + std::to_string(size));
    }
    size = other;
}

void require_divided(std::int64_t size) {
    if (size <= 0) {
        bad_axes("nothing is divided",
                 size == 0 ? "the dimension is empty" : "no argument has an axis");
    }
}

std::int64_t part_size(std::int64_t size, std::size_t parts) {
    if (parts == 0 || size % static_cast<std::int64_t>(parts) != 0) {
        bad_axes("a size of " + std::to_string(size) + " is not divided evenly",
                 "there are " + std::to_string(parts) + " devices");
    }
    return size / static_cast<std::int64_t>(parts);
}

Executor sharded(const Executor& executor, const std::vector<c10::Device>& devices,
                 const InAxes& in_axes) {
    std::vector<std::string> platforms;
    for (const c10::Device& device : devices) {
        platforms.push_back(get_device_platform(device));
    }
    return executor.with_sharding(sharding_fingerprint(devices.size(), in_axes, platforms));
}

}  // namespace twinkle::detail
