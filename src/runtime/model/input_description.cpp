#include "runtime/model/input_description.h"

#include "base/number.h"
#include "base/text.h"
#include "runtime/graph/format.h"
#include "twinkle/error.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <map>

namespace twinkle::runtime {

namespace {

constexpr std::uint64_t seed = 20240229;

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
        not_inputs(text, "unknown dtype " + base::printable(name));
    }
    return found->second;
}

template <typename Number>
Number number(const std::string& text, const std::string& digits) {
    const auto value = base::parse_number<Number>(digits);
    if (!value) {
        not_inputs(text, base::printable(digits) + " is no number");
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
        if (shape.back() < 0 || (shape.back() > 0 && elements > most_input_bytes / shape.back())) {
            not_inputs(text, "the shape [" + list + "] is negative or too large");
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
        not_inputs(text, base::printable(part) + " is not dtype[shape]");
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
        not_inputs(text, base::printable(range) + " is not :low..high");
    }
    const double low = number<double>(text, range.substr(1, dots - 1));
    const double high = number<double>(text, range.substr(dots + 2));
    if (!(low < high)) {
        not_inputs(text, "the range " + base::printable(range) + " is empty");
    }
    if (at::isFloatingType(dtype)) {
        return (at::rand(shape, generator, at::kDouble) * (high - low) + low).to(dtype);
    }
    return at::randint(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high), shape,
                       generator, at::kLong)
        .to(dtype);
}

// Reads one part after the other.
class DescribedInputs {
public:
    explicit DescribedInputs(const std::string& text) : text_(text) {}

    std::vector<c10::IValue> all() {
        std::vector<c10::IValue> inputs = parts();
        if (at_ < text_.size()) {
            not_inputs(text_, "there is something behind the last one");
        }
        return inputs;
    }

private:
    bool take(char wanted) {
        const bool is_there = at_ < text_.size() && text_[at_] == wanted;
        at_ += is_there ? 1 : 0;
        return is_there;
    }

    std::vector<c10::IValue> parts() {
        std::vector<c10::IValue> all = {part()};
        while (take(';')) {
            all.push_back(part());
        }
        return all;
    }

    c10::IValue part() {
        if (take('(')) {
            return c10::ivalue::Tuple::create(parts_before(')'));
        }
        return take('[') ? list_of(parts_before(']')) : c10::IValue(tensor());
    }

    std::vector<c10::IValue> parts_before(char close) {
        if (++depth_ > deepest_input) {
            not_inputs(text_, "it is nested too deeply");
        }
        std::vector<c10::IValue> inside = parts();
        if (!take(close)) {
            not_inputs(text_, std::string("there is no ") + close + " for what was opened");
        }
        --depth_;
        return inside;
    }

    c10::IValue list_of(const std::vector<c10::IValue>& inside) const {
        std::vector<at::Tensor> tensors;
        for (const c10::IValue& one : inside) {
            if (!one.isTensor()) {
                not_inputs(text_, "a list holds tensors alone");
            }
            tensors.push_back(one.toTensor());
        }
        return tensors;
    }

    // Up to what follows its shape and its range.
    at::Tensor tensor() {
        const std::size_t begin = at_;
        const std::size_t shape = std::min(text_.find(']', begin), text_.size());
        at_ = std::min(text_.find_first_of(";)]", shape + 1), text_.size());
        return make_tensor(text_, text_.substr(begin, at_ - begin), generator_);
    }

    const std::string& text_;
    at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(seed);
    std::size_t at_ = 0;
    int depth_ = 0;
};

std::optional<std::string> description_at(const c10::IValue& value, int depth);

std::optional<std::string> descriptions_at(const std::vector<c10::IValue>& values, int depth) {
    std::vector<std::string> texts;
    if (depth > deepest_input) {
        return std::nullopt;
    }
    for (const c10::IValue& value : values) {
        const auto text = description_at(value, depth);
        if (!text) {
            return std::nullopt;
        }
        texts.push_back(*text);
    }
    return texts.empty() ? std::nullopt : std::optional(base::join(texts, ";"));
}

// `depth`: how many tuples and lists hold it.
std::optional<std::string> description_at(const c10::IValue& value, int depth) {
    if (value.isTensor() && value.toTensor().defined()) {
        const at::Tensor& tensor = value.toTensor();
        return fmt::format("{}[{}]", dtype_name(tensor.scalar_type()),
                           fmt::join(tensor.sizes(), ","));
    }
    if (value.isTuple()) {
        const auto parts = descriptions_at(value.toTupleRef().elements().vec(), depth + 1);
        return parts ? std::optional("(" + *parts + ")") : std::nullopt;
    }
    if (value.isTensorList()) {
        const auto parts = descriptions_at(value.toListRef().vec(), depth + 1);
        return parts ? std::optional("[" + *parts + "]") : std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

void not_inputs(const std::string& where, const std::string& why) {
    throw Error(
        ErrorCode::malformed,
        {.what = "these are no inputs",
         .where = where,
         .why = why,
         .hint = "give a file of torch.save, or \"int64[1,128]:0..32000;float32[1,128,512]\""});
}

std::vector<c10::IValue> described_inputs(const std::string& text) {
    return DescribedInputs(text).all();
}

std::optional<std::string> description_of(const c10::IValue& value) {
    return description_at(value, 0);
}

std::string dtype_name(at::ScalarType dtype) {
    for (const auto& [name, value] : dtypes()) {
        if (value == dtype) {
            return name;
        }
    }
    return c10::toString(dtype);
}

}  // namespace twinkle::runtime
