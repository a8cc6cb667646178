#include "worker/request.h"

#include "twinkle/error.h"

namespace twinkle::worker {

namespace {

using base::Json;

std::optional<std::string> text(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? std::optional(found->get<std::string>())
                                                     : std::nullopt;
}

std::optional<std::size_t> count(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_unsigned()
               ? std::optional(found->get<std::size_t>())
               : std::nullopt;
}

std::vector<std::string> texts(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_array() ? found->get<std::vector<std::string>>()
                                                    : std::vector<std::string>{};
}

}  // namespace

Request Request::parse(const std::string& source) {
    const Json json = base::parse_json(source, "request");
    if (!json.is_object() || json.value("schema", "") != "twinkle.request/1") {
        throw Error(ErrorCode::malformed,
                    {.what = "the worker does not understand the request",
                     .where = "",
                     .why = "it is not of schema twinkle.request/1",
                     .hint = "install twinkle and its runtime in one version"});
    }
    Request request;
    request.command = json.value("command", "");
    request.model = text(json, "model").value_or("");
    request.output = text(json, "output");
    request.report = text(json, "report");
    request.map = json.value("map", Json());
    request.mode = text(json, "mode");
    request.device = text(json, "device");
    request.dtype = text(json, "dtype");
    request.inputs = text(json, "inputs");
    request.graph = text(json, "graph");
    request.kernel = text(json, "kernel");
    request.method = text(json, "method").value_or("forward");
    request.only = texts(json, "only");
    request.exclude = texts(json, "exclude");
    request.fallback = texts(json, "fallback");
    request.warnings = texts(json, "warnings");
    for (const std::string& folder : texts(json, "kernel_dirs")) {
        request.kernel_dirs.emplace_back(folder);
    }
    if (json.contains("threads") && json["threads"].is_number_integer()) {
        request.threads = json["threads"].get<int>();
    }
    if (json.contains("duration") && json["duration"].is_number()) {
        request.duration = json["duration"].get<double>();
    }
    request.runs = count(json, "runs");
    request.warm_up = count(json, "warm_up").value_or(request.warm_up);
    request.load_kernels = json.value("load_kernels", true);
    request.verify = json.value("verify", false);
    request.sizes = json.value("sizes", true);
    request.tolerance = json.value("tolerance", 1.0);
    request.strict = json.value("strict", false);
    request.dry_run = json.value("dry_run", false);
    request.strip_debug = json.value("strip_debug", false);
    request.allow_io = json.value("allow_io", false);
    return request;
}

}  // namespace twinkle::worker
