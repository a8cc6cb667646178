#include "runtime/model/inputs.h"
#include "archive/zip_directory.h"
#include "runtime/model/valid_archive.h"

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "twinkle/error.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>

namespace twinkle::runtime {

using namespace archive;

namespace {

constexpr std::uint64_t seed = 20240229;
constexpr std::uint64_t max_input_bytes = 4ull << 30;

[[noreturn]] void malformed(const std::string& where, const std::string& why) {
    throw Error(
        ErrorCode::malformed,
        {.what = "these are no inputs",
         .where = where,
         .why = why,
         .hint = "give a file of torch.save, or \"int64[1,128]:0..32000;float32[1,128,512]\""});
}

const std::map<std::string, at::ScalarType>& dtypes() {
    static const auto& names = *new std::map<std::string, at::ScalarType>{
        {"float64", at::kDouble},    {"float32", at::kFloat}, {"float16", at::kHalf},
        {"bfloat16", at::kBFloat16}, {"int64", at::kLong},    {"int32", at::kInt},
        {"int16", at::kShort},       {"int8", at::kChar},     {"uint8", at::kByte},
        {"bool", at::kBool}};
    return names;
}

at::ScalarType dtype_named(const std::string& text, const std::string& name) {
    const auto found = dtypes().find(name);
    if (found == dtypes().end()) {
        malformed(text, "unknown dtype " + base::printable(name));
    }
    return found->second;
}

template <typename Number>
Number number(const std::string& text, const std::string& digits) {
    const auto value = base::parse_number<Number>(digits);
    if (!value) {
        malformed(text, base::printable(digits) + " is no number");
    }
    return *value;
}

std::vector<std::int64_t> shape_of(const std::string& text, const std::string& list) {
    std::vector<std::int64_t> shape;
    std::uint64_t elements = 1;
    for (const std::string& size : base::split(list, ',')) {
        if (list.empty()) {
            break;
        }
        shape.push_back(number<std::int64_t>(text, size));
        if (shape.back() < 0 || (shape.back() > 0 && elements > max_input_bytes / shape.back())) {
            malformed(text, "the shape [" + list + "] is negative or too large");
        }
        elements *= static_cast<std::uint64_t>(shape.back());
    }
    return shape;
}

// Makes one of "int64[1,128]:0..32000".
at::Tensor make_tensor(const std::string& text, const std::string& part, at::Generator& generator) {
    const auto open = part.find('[');
    const auto close = part.find(']');
    if (open == std::string::npos || close == std::string::npos || close < open) {
        malformed(text, base::printable(part) + " is not dtype[shape]");
    }
    const at::ScalarType dtype = dtype_named(text, part.substr(0, open));
    const auto shape = shape_of(text, part.substr(open + 1, close - open - 1));
    const std::string range = part.substr(close + 1);
    if (range.empty()) {
        return at::isFloatingType(dtype) ? at::randn(shape, generator, at::kDouble).to(dtype)
                                         : at::randint(0, 2, shape, generator, at::kLong).to(dtype);
    }
    const auto dots = range.find("..");
    if (range[0] != ':' || dots == std::string::npos) {
        malformed(text, base::printable(range) + " is not :low..high");
    }
    const double low = number<double>(text, range.substr(1, dots - 1));
    const double high = number<double>(text, range.substr(dots + 2));
    if (!(low < high)) {
        malformed(text, "the range " + base::printable(range) + " is empty");
    }
    if (at::isFloatingType(dtype)) {
        return (at::rand(shape, generator, at::kDouble) * (high - low) + low).to(dtype);
    }
    return at::randint(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high), shape,
                       generator, at::kLong)
        .to(dtype);
}

Inputs from_value(const c10::IValue& value, const std::string& where) {
    Inputs inputs;
    if (value.isTensor()) {
        inputs.positional.push_back(value);
    } else if (value.isTuple()) {
        inputs.positional = value.toTupleRef().elements().vec();
    } else if (value.isList()) {
        for (const c10::IValue& element : value.toListRef().vec()) {
            inputs.positional.push_back(element);
        }
    } else if (value.isGenericDict()) {
        for (const auto& entry : value.toGenericDict()) {
            if (!entry.key().isString()) {
                malformed(where, "the keys of the dict are not names of inputs");
            }
            inputs.named.emplace(entry.key().toStringRef(), entry.value());
        }
    } else {
        malformed(where, "it holds a " + value.tagKind() + ", not tensors");
    }
    return inputs;
}

// Rejects a file that is no pickle of tensors, or would take more memory than it is large.
void require_valid(const std::string& path, std::uint64_t bytes) {
    std::optional<std::string> problem;
    try {
        const auto entries = zip_directory(path);
        problem = entries ? invalid_sizes(*entries, bytes) : "it is no zip archive that is whole";
        if (!problem) {
            caffe2::serialize::PyTorchStreamReader archive(path);
            problem = invalid_data(archive, bytes);
        }
    } catch (const std::exception&) {
        problem = "it is not what torch.save writes for tensors, tuples, lists and dicts";
    }
    if (problem) {
        malformed(base::display_path(path), *problem);
    }
}

Inputs from_file(const std::string& path) {
    const std::string bytes = base::read_file(path, "inputs", max_input_bytes);
    require_valid(path, bytes.size());
    try {
        return from_value(torch::jit::pickle_load({bytes.begin(), bytes.end()}), path);
    } catch (const Error&) {
        throw;
    } catch (const std::exception&) {
        malformed(path, "it is not what torch.save writes for tensors, tuples, lists and dicts");
    }
}

}  // namespace

Inputs read_inputs(const std::string& text) {
    std::error_code ignored;
    const auto bracket = text.find('[');
    if (bracket == std::string::npos || std::filesystem::exists(text, ignored)) {
        return from_file(text);
    }
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    Inputs inputs;
    for (const std::string& part : base::split(text, ';')) {
        inputs.positional.emplace_back(make_tensor(text, part, generator));
    }
    return inputs;
}

std::string dtype_name(at::ScalarType dtype) {
    for (const auto& [name, value] : dtypes()) {
        if (value == dtype) {
            return name;
        }
    }
    return c10::toString(dtype);
}

Inputs mapped(const Inputs& inputs, const std::function<at::Tensor(const at::Tensor&)>& change) {
    const std::function<c10::IValue(const c10::IValue&)> one = [&](const c10::IValue& value) {
        if (value.isTensor()) {
            return c10::IValue(change(value.toTensor()));
        }
        if (value.isTensorList()) {
            std::vector<at::Tensor> tensors;
            for (const at::Tensor& tensor : value.toTensorVector()) {
                tensors.push_back(change(tensor));
            }
            return c10::IValue(std::move(tensors));
        }
        if (value.isTuple()) {
            std::vector<c10::IValue> elements;
            for (const c10::IValue& element : value.toTupleRef().elements()) {
                elements.push_back(one(element));
            }
            return c10::IValue(c10::ivalue::Tuple::create(std::move(elements)));
        }
        return value;
    };
    Inputs result;
    for (const c10::IValue& value : inputs.positional) {
        result.positional.push_back(one(value));
    }
    const std::map<std::string, c10::IValue> named(inputs.named.begin(), inputs.named.end());
    for (const auto& [name, value] : named) {
        result.named.emplace(name, one(value));
    }
    return result;
}

void move_to(Inputs& inputs, torch::Device device) {
    inputs = mapped(inputs, [&](const at::Tensor& tensor) { return tensor.to(device); });
}

Inputs with_dtype(const Inputs& inputs, at::ScalarType dtype) {
    return mapped(inputs, [&](const at::Tensor& tensor) {
        return tensor.is_floating_point() ? tensor.to(dtype, false, /*copy=*/true) : tensor.clone();
    });
}

Inputs deep_copy(const Inputs& inputs) {
    return mapped(inputs, [](const at::Tensor& tensor) { return tensor.clone(); });
}

}  // namespace twinkle::runtime
