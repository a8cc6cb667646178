#include "cli/check_model.h"

#include "cli/json_fields.h"
#include "cli/model_request.h"
#include "operations/kernel_mapping.h"

namespace twinkle::cli {
namespace fs = std::filesystem;
namespace {

using base::Json;

void add_fits(const LayerFit& of, const Json& one, std::vector<LayerFit>& fits) {
    LayerFit fit = of;
    fit.model_class = text_of(one, "class");
    fit.by_name = text_of(one, "by") == "name";
    fit.sites = one.value("sites", std::size_t{0});
    fit.fits = one.value("fits", std::size_t{0});
    for (const auto& attribute : one.value("attributes", Json::array())) {
        if (text_of(attribute, "from") == "lost") {
            fit.lost.push_back(text_of(attribute, "name"));
        }
    }
    const auto kept = one.value("kept", Json::array());
    if (kept.empty()) {
        fits.push_back(fit);
    }
    for (const auto& reason : kept) {
        fit.because = text_of(reason, "because");
        fit.as_asked = reason.value("as_asked", false);
        fit.where = text_of(reason, "where");
        fit.example = text_of(reason, "example");
        fits.push_back(fit);
    }
}

}  // namespace

std::vector<LayerFit> check_model(const fs::path& kernel, const fs::path& model, bool allow_io,
                                  Console& console) {
    const auto file = existing_file(model.string(), "model");
    const auto worker = find_worker(console);
    const auto mapping =
        operations::kernel_mapping(kernel, console.globals().project,
                                   [&](const std::string& warning) { console.warn(warning); });
    protocol::Request request;
    request.command = "check";
    request.model = file;
    request.map = mapping.to_json();
    request.kernel_dirs = kernel_folders({});
    request.allow_io = allow_io;
    const auto result = run_worker(worker, request, console);

    std::vector<LayerFit> fits;
    for (const bool functions : {false, true}) {
        const char* list = functions ? "functions" : "layers";
        for (const auto& one : result.value(list, Json::array())) {
            LayerFit fit;
            fit.is_function = functions;
            fit.layer = text_of(one, functions ? "function" : "layer");
            const auto found = one.value(functions ? "functions" : "classes", Json::array());
            if (found.empty()) {
                fits.push_back(fit);
            }
            for (const auto& of_model : found) {
                add_fits(fit, of_model, fits);
            }
        }
    }
    return fits;
}

}  // namespace twinkle::cli
