#include "runtime/exported/objects.h"

#include "archive/json_reader.h"
#include "base/text.h"
#include "runtime/exported/object_state.h"
#include "runtime/exported/plain_pickle.h"
#include "runtime/model/io_operators.h"
#include "runtime/model/valid_pickle.h"
#include "twinkle/error.h"

#include <torch/custom_class.h>

#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <cstring>
#include <sstream>

namespace twinkle::runtime::exported {

using archive::InvalidJson;

namespace {

constexpr std::uint64_t largest_object = 4ull << 30;

std::string short_name(const std::string& class_name) {
    return class_name.starts_with(torch_classes_prefix)
               ? class_name.substr(torch_classes_prefix.size())
               : class_name;
}

[[noreturn]] void refuse_class(ErrorCode code, const InputSpec& spec, const std::string& why,
                               const std::string& hint) {
    throw Error(
        code, {.what = (spec.kind == InputSpec::Kind::user ? "the model gets" : "the model holds") +
                       std::string(" an object of the class torch.classes.") +
                       base::printable(short_name(spec.class_name).substr(0, 200)),
               .where = base::printable(
                   (spec.target.empty() ? spec.value.text : spec.target).substr(0, 200)),
               .why = why,
               .hint = hint});
}

c10::ClassTypePtr registered_class(const InputSpec& spec) {
    const std::string name = short_name(spec.class_name);
    if (const auto does = io_of_class(name)) {
        refuse_class(ErrorCode::refused, spec, "that class " + *does,
                     "export the model without the object");
    }
    if (!spec.class_name.starts_with(torch_classes_prefix) || name.starts_with("twinkle.")) {
        refuse_class(ErrorCode::refused, spec, "that is no class of a model",
                     "export the model again");
    }
    const c10::ClassTypePtr type = torch::getCustomClass(spec.class_name);
    if (type == nullptr) {
        refuse_class(
            ErrorCode::not_found, spec,
            "LibTorch does not have it, and no kernel that is loaded here registers it",
            "name the folder of the kernel whose library registers it with --kernels or "
            "TWINKLE_KERNELS, to `twinkle convert` or `twinkle run`; a program that registers it "
            "itself calls twinkle::load");
    }
    if (spec.kind == InputSpec::Kind::object && type->findMethod("__setstate__") == nullptr) {
        refuse_class(ErrorCode::refused, spec, "it has no __setstate__ (def_pickle)",
                     "define how its objects are saved");
    }
    return type;
}

class BytesReader final : public caffe2::serialize::ReadAdapterInterface {
public:
    explicit BytesReader(const std::string& bytes) : bytes_(bytes) {}

    std::size_t size() const override { return bytes_.size(); }

    std::size_t read(std::uint64_t at, void* into, std::size_t size,
                     const char* /*what*/) const override {
        const std::uint64_t begin = std::min<std::uint64_t>(at, bytes_.size());
        const std::size_t there = std::min(size, bytes_.size() - static_cast<std::size_t>(begin));
        std::memcpy(into, bytes_.data() + begin, there);
        return there;
    }

private:
    const std::string& bytes_;
};

// Checked before LibTorch's reader sees it.
class ObjectRecord {
public:
    explicit ObjectRecord(std::string bytes) : bytes_(std::move(bytes)) {
        std::istringstream in(bytes_);
        const auto entries = archive::zip_directory(in, bytes_.size());
        const auto problem = entries ? archive::invalid_sizes(*entries, bytes_.size())
                                     : std::optional<std::string>("it is no zip archive");
        if (problem) {
            throw InvalidJson("the record of an object of torch.classes is damaged: " + *problem);
        }
        reader_.emplace(std::make_unique<BytesReader>(bytes_));
    }

    std::string text(const std::string& name) {
        if (!reader_->hasRecord(name)) {
            throw InvalidJson("the record of an object of torch.classes lacks " +
                              base::printable(name.substr(0, 200)));
        }
        const auto [data, size] = reader_->getRecord(name);
        return {static_cast<const char*>(data.get()), size};
    }

private:
    std::string bytes_;
    std::optional<caffe2::serialize::PyTorchStreamReader> reader_;
};

c10::IValue restored_object(const archive::Archive& archive, const std::string& record,
                            const InputSpec& spec) {
    const c10::ClassTypePtr type = registered_class(spec);
    ObjectRecord opened(archive.text(record, largest_object));
    const std::string pickle = opened.text("data.pkl");
    if (const auto problem = invalid_pickle(pickle)) {
        throw InvalidJson("the pickle of an object of torch.classes is damaged: " + *problem);
    }
    const PlainObject plain = read_plain_object(pickle);
    if (plain.class_name != spec.class_name) {
        throw InvalidJson("its record holds an object of another class: " +
                          base::printable(plain.class_name.substr(0, 200)));
    }
    torch::jit::Function& set_state = type->getMethod("__setstate__");
    const c10::TypePtr wanted = set_state.getSchema().arguments().at(1).type();
    const c10::IValue state = state_of(plain.state, wanted, [&](const std::string& storage) {
        return opened.text("data/" + storage);
    });
    const auto object =
        c10::ivalue::Object::create(c10::StrongTypePtr(nullptr, type), type->numAttributes());
    try {
        set_state({object, state});
    } catch (const std::exception& error) {
        const std::string text = error.what();
        throw InvalidJson(
            "__setstate__ of torch.classes." + base::printable(short_name(spec.class_name)) +
            " does not take its state: " +
            base::printable(text.substr(0, std::min<std::size_t>(text.find('\n'), 200))));
    }
    return object;
}

}  // namespace

std::map<std::string, std::size_t> classes_of(const Program& program) {
    std::map<std::string, std::size_t> found;
    for (const InputSpec& input : program.inputs) {
        if (input.value.kind == Argument::Kind::object) {
            ++found[short_name(input.class_name)];
        }
    }
    return found;
}

c10::TypePtr class_of(const InputSpec& input) {
    return registered_class(input);
}

bool has_class(const std::string& name) {
    return torch::getCustomClass(std::string(torch_classes_prefix) + name) != nullptr;
}

std::map<std::string, c10::IValue> read_objects(const archive::Archive& archive,
                                                const Program& program,
                                                const std::map<std::string, std::string>& records) {
    std::map<std::string, c10::IValue> objects;
    for (const InputSpec& input : program.inputs) {
        if (input.kind != InputSpec::Kind::object || objects.contains(input.target)) {
            continue;
        }
        registered_class(input);  // a class that is not there is the better reason
        const auto record = records.find(input.target);
        if (record == records.end()) {
            throw InvalidJson(base::printable(input.target) +
                              ": the archive does not hold this object");
        }
        try {
            objects[input.target] = restored_object(archive, record->second, input);
        } catch (const InvalidJson& invalid) {
            throw InvalidJson(base::printable(input.target) + ": " + invalid.what(),
                              invalid.hint());
        }
    }
    return objects;
}

}  // namespace twinkle::runtime::exported
