// What the preload library calls: loads the kernels of a model that the program is about to load
// itself.

#include "runtime/model/model_file.h"
#include "twinkle/api.h"
#include "twinkle/error.h"
#include "twinkle/load.h"
#include "twinkle/package.h"

#include <caffe2/serialize/istream_adapter.h>

#include <cstdio>
#include <filesystem>

namespace {

// The values of enum twinkle_source in preload/find_runtime.h.
enum Source { path = 0, stream = 1, reader = 2, package = 3 };

using Reader = std::shared_ptr<caffe2::serialize::ReadAdapterInterface>;

void prepare(int source, void* model) {
    if (source == path) {
        twinkle::load_required_kernels(static_cast<const char*>(model));
    } else if (source == package) {
        // LibTorch also takes a folder that somebody has unpacked.
        const std::filesystem::path file = static_cast<const char*>(model);
        if (!std::filesystem::is_directory(file)) {
            twinkle::load_package_kernels(file);
        }
    } else if (source == reader) {
        twinkle::load_required_kernels(*static_cast<Reader*>(model));
    } else {
        auto& in = *static_cast<std::istream*>(model);
        const auto position = in.tellg();
        twinkle::load_required_kernels(std::make_shared<caffe2::serialize::IStreamAdapter>(&in));
        in.clear();
        in.seekg(position);
    }
}

}  // namespace

// Errors are said, not thrown: LibTorch then refuses the model with an error that its program
// expects.
extern "C" TWINKLE_API void twinkle_prepare_model(int source, void* model) {
    try {
        prepare(source, model);
    } catch (const twinkle::Error& error) {
        std::fprintf(stderr, "twinkle: %s\n", twinkle::Error::format(error.details()).c_str());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "twinkle: the model's kernels were not loaded: %s\n", error.what());
    }
}
