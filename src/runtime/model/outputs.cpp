#include "runtime/model/outputs.h"

#include "base/text.h"
#include "twinkle/error.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

namespace twinkle::runtime {

namespace {

constexpr int deepest_result = 500;

[[noreturn]] void cannot_be_written(const std::string& why) {
    throw Error(ErrorCode::malformed,
                {.what = "the outputs cannot be written",
                 .where = "",
                 .why = why,
                 .hint = "leave --output out, or call a --method that returns tensors, numbers and "
                         "texts, or lists, tuples and dicts of them"});
}

// LibTorch writes lists of tensors or numbers, and named tuples, by calls of functions that
// weights_only refuses; values of type Any are written plainly.
c10::IValue plain(const c10::IValue& value, int depth = 0) {
    if (depth > deepest_result) {
        cannot_be_written("they are nested too deeply");
    }
    if (value.isTuple()) {
        std::vector<c10::IValue> elements;
        for (const c10::IValue& element : value.toTupleRef().elements()) {
            elements.push_back(plain(element, depth + 1));
        }
        return c10::ivalue::Tuple::create(std::move(elements));
    }
    if (value.isList()) {
        c10::impl::GenericList list(c10::AnyType::get());
        for (const c10::IValue& element : value.toListRef().vec()) {
            list.push_back(plain(element, depth + 1));
        }
        return list;
    }
    if (value.isGenericDict()) {
        c10::impl::GenericDict dict(c10::AnyType::get(), c10::AnyType::get());
        for (const auto& entry : value.toGenericDict()) {
            dict.insert(plain(entry.key(), depth + 1), plain(entry.value(), depth + 1));
        }
        return dict;
    }
    if (value.isEnum()) {
        return plain(value.toEnumHolder()->value(), depth + 1);
    }
    if (value.isTensor() || value.isNone() || value.isScalar() || value.isString() ||
        value.isDevice()) {
        return value;
    }
    cannot_be_written("a result is of the type " + base::printable(value.type()->repr_str()));
}

}  // namespace

// torch::pickle_save tags lists and dicts with their types, by a call that weights_only refuses.
std::string pickled_outputs(const c10::IValue& outputs) {
    std::string pickle;
    torch::jit::Pickler pickler(
        [&](const char* data, std::size_t size) { pickle.append(data, size); }, nullptr, nullptr,
        nullptr, nullptr, /*tag_aggregates=*/false);
    pickler.protocol();
    pickler.pushIValue(plain(outputs));
    pickler.stop();

    std::string archive;
    caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, std::size_t size) {
        archive.append(static_cast<const char*>(data), size);
        return size;
    });
    writer.writeRecord("data.pkl", pickle.data(), pickle.size());
    std::size_t index = 0;
    for (const at::Tensor& tensor : pickler.tensorData()) {
        const auto data = torch::jit::getWriteableTensorData(tensor);
        writer.writeRecord("data/" + std::to_string(index++), data.data(), data.sizeInBytes());
    }
    writer.writeEndOfFile();
    return archive;
}

}  // namespace twinkle::runtime
