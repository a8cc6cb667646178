#include "runtime/model/outputs.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

namespace twinkle::runtime {

// torch::pickle_save tags lists and dicts with their types, by a call that weights_only refuses.
std::string pickled_outputs(const c10::IValue& outputs) {
    std::string pickle;
    torch::jit::Pickler pickler(
        [&](const char* data, std::size_t size) { pickle.append(data, size); }, nullptr, nullptr,
        nullptr, nullptr, /*tag_aggregates=*/false);
    pickler.protocol();
    pickler.pushIValue(outputs);
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
