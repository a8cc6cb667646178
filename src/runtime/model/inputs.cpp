#include "runtime/model/inputs.h"
#include "archive/zip_directory.h"
#include "runtime/model/valid_archive.h"

#include "base/file.h"
#include "base/text.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/serialization/pickle.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>

namespace twinkle::runtime {

using namespace archive;

namespace {

// A pickle does not say of what type the elements of lists and dicts are, and methods ask for it:
// of tensors they are List[Tensor] and, with strings as keys, Dict[str, Tensor].
c10::IValue typed(const c10::IValue& value) {
    if (value.isTuple()) {
        std::vector<c10::IValue> elements;
        for (const c10::IValue& element : value.toTupleRef().elements()) {
            elements.push_back(typed(element));
        }
        return c10::ivalue::Tuple::create(std::move(elements));
    }
    if (value.isList()) {
        const auto elements = value.toListRef();
        c10::List<at::Tensor> tensors;
        for (const c10::IValue& element : elements) {
            if (!element.isTensor()) {
                return value;
            }
            tensors.push_back(element.toTensor());
        }
        return elements.empty() ? value : c10::IValue(tensors);
    }
    if (!value.isGenericDict()) {
        return value;
    }
    c10::Dict<std::string, at::Tensor> tensors;
    for (const auto& entry : value.toGenericDict()) {
        if (!entry.key().isString() || !entry.value().isTensor()) {
            return value;
        }
        tensors.insert(entry.key().toStringRef(), entry.value().toTensor());
    }
    return tensors;
}

Inputs from_value(const c10::IValue& value, const std::string& where) {
    Inputs inputs;
    if (value.isTensor()) {
        inputs.positional.push_back(value);
    } else if (value.isTuple()) {
        inputs.positional = typed(value).toTupleRef().elements().vec();
    } else if (value.isList()) {
        for (const c10::IValue& element : value.toListRef().vec()) {
            inputs.positional.push_back(typed(element));
        }
    } else if (value.isGenericDict()) {
        for (const auto& entry : value.toGenericDict()) {
            if (!entry.key().isString()) {
                not_inputs(where, "the keys of the dict are not names of inputs");
            }
            inputs.named.emplace(entry.key().toStringRef(), typed(entry.value()));
        }
    } else {
        not_inputs(where, "it holds a " + value.tagKind() + ", not tensors");
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
        not_inputs(base::display_path(path), *problem);
    }
}

Inputs from_file(const std::string& path) {
    const std::string bytes = base::read_file(path, "inputs", most_input_bytes);
    require_valid(path, bytes.size());
    try {
        return from_value(torch::jit::pickle_load({bytes.begin(), bytes.end()}), path);
    } catch (const Error&) {
        throw;
    } catch (const std::exception&) {
        not_inputs(path, "it is not what torch.save writes for tensors, tuples, lists and dicts");
    }
}

}  // namespace

Inputs read_inputs(const std::string& text) {
    std::error_code ignored;
    const auto bracket = text.find('[');
    if (bracket == std::string::npos || std::filesystem::exists(text, ignored)) {
        return from_file(text);
    }
    return {described_inputs(text), {}};
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
        if (value.isGenericDict()) {
            const auto dict = value.toGenericDict();
            c10::impl::GenericDict changed(dict.keyType(), dict.valueType());
            for (const auto& entry : dict) {
                changed.insert(entry.key(), one(entry.value()));
            }
            return c10::IValue(std::move(changed));
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

std::vector<at::Tensor> tensors_of(const Inputs& inputs) {
    std::vector<at::Tensor> tensors;
    mapped(inputs, [&](const at::Tensor& tensor) {
        tensors.push_back(tensor);
        return tensor;
    });
    return tensors;
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
