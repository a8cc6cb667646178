// twinkle/c.h over the C++ interface: no exception leaves it.

#include "twinkle/c.h"

#include "base/document.h"
#include "base/json.h"
#include "base/text.h"
#include "protocol/error_json.h"
#include "runtime/model/model_file.h"
#include "twinkle/twinkle.h"

#include <cstring>
#include <functional>

namespace {

using namespace twinkle;

struct LastError {
    std::string text;
    std::string json = "{}";
};

LastError& last_error() {
    thread_local LastError last;
    return last;
}

int fail(const Error& error) {
    last_error() = {error.what(), base::dump_json(protocol::to_json(error))};
    return error.exit_code();
}

int guarded(const std::function<void()>& body) {
    try {
        body();
        return 0;
    } catch (const Error& error) {
        return fail(error);
    } catch (const std::bad_alloc&) {
        return fail(Error(ErrorCode::failed, {"memory is exhausted", "", "", ""}));
    } catch (const std::exception& error) {
        return fail(Error(ErrorCode::failed,
                          {"something unexpected failed", "", base::printable(error.what()), ""}));
    }
}

const char* needed(const char* text, const char* name) {
    if (text == nullptr || *text == '\0') {
        throw Error(ErrorCode::malformed, {std::string(name) + " is missing", "", "", ""});
    }
    return text;
}

UseFallback fallback_of(base::TableReader& reader) {
    const base::Node* value = reader.find("use_fallback");
    if (value == nullptr) {
        return true;
    }
    if (value->kind == base::Node::Kind::boolean) {
        return value->boolean;
    }
    return parse_fallbacks(reader.as_strings(*value, "use_fallback"));
}

ModelOptions options_of(const char* text) {
    ModelOptions options;
    if (text == nullptr) {
        return options;
    }
    const base::Node root = base::parse_json_document(text, "options");
    base::TableReader reader(root, "options", "the options");
    options.mode = reader.string("mode");
    options.device = reader.string("device");
    options.dtype = reader.string("dtype");
    options.load_kernels = reader.boolean("load_kernels").value_or(true);
    options.only = reader.strings("only");
    options.exclude = reader.strings("exclude");
    options.strict = reader.boolean("strict").value_or(false);
    options.use_fallback = fallback_of(reader);
    reader.finish();
    return options;
}

Report kernelize_by(const char* mapping, torch::jit::Module& model, const ModelOptions& options) {
    if (mapping == nullptr) {
        return kernelize_model(model, options);
    }
    return kernelize(model, Mapping::load(mapping), kernelize_options(options));
}

}  // namespace

const char* twinkle_version(void) {
    return TWINKLE_VERSION;
}

const char* twinkle_last_error(void) {
    return last_error().text.c_str();
}

const char* twinkle_last_error_json(void) {
    return last_error().json.c_str();
}

void twinkle_free(char* text) {
    std::free(text);
}

int twinkle_load_kernels(const char* model, const char* kernel_dirs) {
    return guarded([&] {
        LoadOptions options;
        if (kernel_dirs != nullptr && *kernel_dirs != '\0') {
            for (const std::string& folder : base::split(kernel_dirs, ':')) {
                options.kernel_dirs.emplace_back(folder);
            }
        }
        load_required_kernels(needed(model, "the model"), options);
    });
}

int twinkle_register_kernels(const char* config) {
    return guarded([&] { register_kernels(Config::load(needed(config, "the config"))); });
}

void twinkle_clear_kernels(void) {
    Registry::of_process().clear();
}

int twinkle_kernelize_file(const char* model, const char* mapping, const char* output,
                           const char* options, char** report) {
    return guarded([&] {
        const ModelOptions how = options_of(options);
        const std::filesystem::path to = needed(output, "the output");
        const std::filesystem::path from = needed(model, "the model");
        Kernelized kernelized;
        if (mapping != nullptr && !how.load_kernels) {
            kernelized = kernelize(from, Mapping::load(mapping), kernelize_options(how));
        } else {
            kernelized.model = load(from, {.prepack = false});  // it is saved
            kernelized.report = kernelize_by(mapping, kernelized.model, how);
        }
        const Report& made = kernelized.report;
        runtime::save_model(kernelized.model, to);
        if (report != nullptr) {
            *report = ::strdup(made.to_json().c_str());
        }
    });
}
