#include "archive/compiled_package.h"

#include "archive/archive.h"
#include "archive/json_reader.h"
#include "base/json.h"
#include "base/text.h"
#include "twinkle/error.h"

namespace twinkle::archive {

using base::Json;

namespace {

constexpr std::string_view packages_folder = "data/aotinductor/";
constexpr std::string_view own_key = "AOTI_";
constexpr base::JsonLimits document_limits{.bytes = 64u << 20, .depth = 256};
constexpr std::size_t most_models = 10000;

std::string known(const Json& metadata, const char* key) {
    const Json* value = optional_member(metadata, key);
    return value == nullptr ? "" : text_of(*value);
}

class PackageReader {
public:
    explicit PackageReader(const std::filesystem::path& file) : archive_(file) {}

    CompiledPackage read() {
        for (const std::string& record : archive_.names()) {
            if (record.starts_with(packages_folder)) {
                read_record(record);
            } else if (record.starts_with("data/weights/") ||
                       record.starts_with("data/constants/")) {
                package_.weight_bytes += archive_.size_of(record);
            }
        }
        if (models_.empty() || models_.size() > most_models) {
            refuse_archive(archive_.file(), "it holds no model that AOTInductor compiled", "");
        }
        for (auto& [name, model] : models_) {
            package_.models.push_back(std::move(model));
        }
        return std::move(package_);
    }

private:
    // "data/aotinductor/model/HASH.wrapper.so"
    void read_record(const std::string& record) {
        const auto slash = record.find('/', packages_folder.size());
        if (slash == std::string::npos) {
            return;
        }
        const std::string name =
            record.substr(packages_folder.size(), slash - packages_folder.size());
        CompiledModel& model = models_[name];
        model.name = name;
        const std::uint64_t size = archive_.size_of(record);
        if (record.ends_with(".so")) {
            model.libraries.push_back(record);
            model.library_bytes += size;
        } else if (record.ends_with(".cubin") || record.ends_with(".hsaco")) {
            model.gpu_code_bytes += size;
        } else if (record.ends_with(".cpp")) {
            model.source_bytes += size;
        } else if (record.ends_with("_metadata.json")) {
            read_metadata(document(record), model);
        } else if (record.ends_with(".wrapper.json")) {
            read_calls(document(record), model);
        }
    }

    Json document(const std::string& record) const {
        return base::parse_json(archive_.text(record, document_limits.bytes), record,
                                document_limits);
    }

    // Of the wrapper and of the kernels there is one each; they say the same.
    static void read_metadata(const Json& metadata, CompiledModel& model) {
        model.made_for = {known(metadata, "AOTI_DEVICE_KEY"),
                          known(metadata, "AOTI_PLATFORM"),
                          known(metadata, "AOTI_MACHINE"),
                          {},
                          known(metadata, "AOTI_COMPUTE_CAPABILITY")};
        for (const std::string& isa : base::split(known(metadata, "AOTI_CPU_ISA"), ' ')) {
            if (!isa.empty()) {
                model.made_for.isa.push_back(isa);
            }
        }
        for (const auto& [key, value] : metadata.items()) {
            if (!key.starts_with(own_key) && value.is_string()) {
                model.metadata[key] = value.get<std::string>();
            }
        }
    }

    // "mylib::scale", or with its overload "mylib::scale.out".
    static void read_calls(const Json& calls, CompiledModel& model) {
        for (const Json& call : list_at(calls, "nodes")) {
            const std::string target = text_at(object_at(call, "node"), "target");
            const auto colons = target.find("::");
            if (colons == std::string::npos) {
                throw InvalidJson("it calls " + base::printable(target.substr(0, 100)) +
                                  ", which is the name of no operator");
            }
            ++model.operators[target.substr(0, target.find('.', colons))];
        }
    }

    Archive archive_;
    CompiledPackage package_;
    std::map<std::string, CompiledModel> models_;
};

}  // namespace

CompiledPackage read_package(const std::filesystem::path& file) {
    try {
        CompiledPackage package = PackageReader(file).read();
        package.bytes = std::filesystem::file_size(file);
        return package;
    } catch (const InvalidJson& invalid) {
        refuse_archive(file, invalid.what(), "copy it again, or compile the model again");
    }
}

bool is_compiled(const std::filesystem::path& file) {
    return kind_of_archive(file) == ArchiveKind::compiled;
}

}  // namespace twinkle::archive
