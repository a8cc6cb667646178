#include "runtime/exported/weights.h"

#include "archive/json_reader.h"
#include "base/text.h"
#include "runtime/exported/read_arguments.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>

namespace twinkle::runtime::exported {

using namespace archive;
using base::Json;

namespace {

constexpr std::size_t most_ties = 1000;
constexpr base::JsonLimits config_limits{.bytes = 256u << 20, .depth = 64};
constexpr std::size_t most_dimensions = 64;
const std::string save_again =
    "save the model again with torch.export.save of PyTorch 2.9 or newer";

class InvalidWeight : public InvalidJson {
public:
    using InvalidJson::InvalidJson;
};

std::int64_t number_in(const Extent& extent, const char* what) {
    if (!extent.number || *extent.number < 0) {
        throw InvalidWeight(std::string(what) + " is not a number, or is negative");
    }
    return *extent.number;
}

struct Geometry {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    std::int64_t offset = 0;
    bool empty = false;
};

// Where its elements lie must be within so many bytes.
Geometry geometry_of(const TensorMeta& meta, std::size_t itemsize, std::size_t bytes) {
    __extension__ using Wide = __int128;
    Geometry found;
    found.offset = number_in(meta.offset, "its offset");
    if (meta.sizes.size() != meta.strides.size() || meta.sizes.size() > most_dimensions) {
        throw InvalidWeight("its sizes and strides do not fit together");
    }
    Wide last = found.offset;
    Wide elements = 1;
    for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
        found.sizes.push_back(number_in(meta.sizes[i], "a size of it"));
        found.strides.push_back(number_in(meta.strides[i], "a stride of it"));
        found.empty = found.empty || found.sizes.back() == 0;
        last += (Wide(found.sizes.back()) - 1) * found.strides.back();
        elements *= found.sizes.back();
        if (last > Wide(INT64_MAX) || elements > Wide(INT64_MAX)) {
            throw InvalidWeight("its sizes are larger than any memory");
        }
    }
    if (!found.empty && (last + 1) * Wide(itemsize) > Wide(bytes)) {
        throw InvalidWeight(
            bytes == 0 ? "the archive holds no data of it: it was exported with fake "
                         "tensors"
                       : "it is larger than its record of " + std::to_string(bytes) + " bytes");
    }
    return found;
}

class WeightReader {
public:
    WeightReader(const Archive& archive, const std::set<std::string>& objects)
        : archive_(archive), objects_(objects) {}

    void read(const std::string& config, const std::string& folder) {
        if (!archive_.has(config)) {
            return;
        }
        const Json json =
            base::parse_json(archive_.text(config, config_limits.bytes), config, config_limits);
        for (const auto& [path, payload] : object_at(json, "config").items()) {
            try {
                add(path, payload, folder);
            } catch (const InvalidWeight& invalid) {
                throw InvalidJson(base::printable(path) + ": " + invalid.what());
            }
        }
    }

    Weights take() { return std::move(weights_); }

private:
    // Of one storage, with the same view of it, there is one tensor.
    using Identity = std::tuple<std::string, at::ScalarType, std::vector<std::int64_t>,
                                std::vector<std::int64_t>, std::int64_t, bool>;

    void add(const std::string& path, const Json& payload, const std::string& folder) {
        const std::string name = text_at(payload, "path_name");
        const bool pickled = boolean_at(payload, "use_pickle");
        if (pickled && objects_.contains(path)) {
            add_object(path, name, folder);
            return;
        }
        if (pickled) {
            throw InvalidWeight(
                "its data is a pickle, which nothing here unpickles; tensor subclasses and objects "
                "are saved so: replace them by plain tensors before the export");
        }
        require_record_name(name);
        const TensorMeta meta = read_tensor_meta(object_at(payload, "tensor_meta"));
        if (!meta.dtype || !meta.strided) {
            throw InvalidWeight("it has a dtype or layout that this LibTorch does not have");
        }
        if (weights_.tensors.contains(path)) {
            throw InvalidWeight("the archive has two tensors of this name");
        }
        const bool parameter = boolean_at(payload, "is_param");
        const at::Storage& storage = storage_of(folder + name);
        const Geometry at = geometry_of(meta, c10::elementSize(*meta.dtype), storage.nbytes());
        const bool learns = parameter && meta.requires_grad;
        auto& same = known_[Identity(folder + name, *meta.dtype, at.sizes, at.strides, at.offset,
                                     parameter)];
        if (same == nullptr) {
            same = std::make_shared<std::vector<std::string>>();
            at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(meta.dtype));
            tensor.set_(storage, at.offset, at.sizes, at.strides);
            if (learns && (at::isFloatingType(*meta.dtype) || at::isComplexType(*meta.dtype))) {
                tensor.requires_grad_();
            }
            weights_.tensors[path] = tensor;
        } else {
            weights_.tensors[path] = weights_.tensors.at(same->front());
        }
        weights_.is_parameter[path] = parameter;
        same->push_back(path);
        if (same->size() > most_ties) {
            throw InvalidWeight("it is one of more names for a tensor than any model has");
        }
        weights_.ties[path] = same;
    }

    static void require_record_name(const std::string& name) {
        if (name.find('/') != std::string::npos || name.find("..") != std::string::npos) {
            throw InvalidWeight("its record has a name that leaves the archive's folder");
        }
    }

    void add_object(const std::string& path, const std::string& name, const std::string& folder) {
        require_record_name(name);
        if (!archive_.has(folder + name)) {
            throw InvalidWeight("there is no record " + base::printable(name));
        }
        weights_.objects[path] = folder + name;
    }

    const at::Storage& storage_of(const std::string& record) {
        const auto known = storages_.find(record);
        if (known != storages_.end()) {
            return known->second;
        }
        if (!archive_.has(record)) {
            throw InvalidWeight("there is no record " + base::printable(record));
        }
        return storages_.emplace(record, read_storage(record)).first->second;
    }

    at::Storage read_storage(const std::string& record) const {
        const auto size = static_cast<std::int64_t>(archive_.size_of(record));
        if (std::shared_ptr<char> mapped = archive_.mapped(record)) {
            char* const bytes = mapped.get();
            return at::from_blob(
                       bytes, {size}, [kept = std::move(mapped)](void*) {}, at::kByte)
                .storage();
        }
        const at::Tensor bytes = at::empty({size}, at::kByte);
        archive_.read(record, static_cast<char*>(bytes.data_ptr()));
        return bytes.storage();
    }

    const Archive& archive_;
    const std::set<std::string>& objects_;
    Weights weights_;
    std::map<std::string, at::Storage> storages_;
    std::map<Identity, std::shared_ptr<std::vector<std::string>>> known_;
};

}  // namespace

Weights read_weights(const Archive& archive, const std::string& model,
                     const std::set<std::string>& objects) {
    const std::string weights = "data/weights/" + model + "_weights_config.json";
    if (!archive.has(weights) && archive.has("data/weights/" + model + ".pt")) {
        refuse_archive(archive.file(),
                       "its weights are a pickle, as PyTorch 2.8 wrote them, which nothing here "
                       "unpickles",
                       save_again);
    }
    WeightReader reader(archive, objects);
    try {
        reader.read(weights, "data/weights/");
        reader.read("data/constants/" + model + "_constants_config.json", "data/constants/");
    } catch (const InvalidJson& invalid) {
        refuse_archive(archive.file(), invalid.what(), "copy it again, or " + save_again);
    } catch (const c10::Error& error) {
        refuse_archive(archive.file(),
                       "a tensor of it is not as LibTorch has tensors: " +
                           base::printable(error.msg().substr(0, 200)),
                       "copy it again, or " + save_again);
    }
    return reader.take();
}

}  // namespace twinkle::runtime::exported
