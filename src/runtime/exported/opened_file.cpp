#include "runtime/exported/opened_file.h"

#include "archive/archive.h"
#include "base/file.h"
#include "base/text.h"
#include "runtime/exported/convert.h"
#include "runtime/exported/needed_kernels.h"
#include "runtime/model/no_kernel_loading.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

bool is_export(const std::filesystem::path& file) {
    const auto kind = archive::kind_of_archive(file);
    return kind == archive::ArchiveKind::exported || kind == archive::ArchiveKind::old_exported;
}

torch::jit::Module open_model_file(const std::filesystem::path& file, const std::string& model,
                                   const Opening& opening) {
    if (is_export(file)) {
        const NoKernelLoading as_asked;
        const auto access = opening.map_weights ? archive::Access::mapped : archive::Access::copied;
        torch::jit::Module converted = exported::convert(archive::Archive(file, access), model);
        mark_needed_kernels(converted);
        if (!opening.device.is_cpu()) {
            converted.to(opening.device);
        }
        return converted;
    }
    if (!model.empty()) {
        throw Error(ErrorCode::malformed,
                    {.what = "the file holds no model " + base::printable(model),
                     .where = base::display_path(file),
                     .why = "only archives of torch.export hold several",
                     .hint = "leave out --model"});
    }
    return open_model(file, opening);
}

std::vector<CodeFile> code_of_model_file(const std::filesystem::path& file) {
    return is_export(file) ? std::vector<CodeFile>() : code_of(file);
}

}  // namespace twinkle::runtime
