#include "protocol/request.h"

#include "twinkle/error.h"

#include <algorithm>

namespace twinkle::protocol {

namespace {

using base::Json;
using std::filesystem::path;

constexpr const char* schema = "twinkle.request/1";

// Every field once, under its key.
template <typename Of, typename Visit>
void visit_fields(Of& request, const Visit& visit) {
    visit("command", request.command);
    visit("model", request.model);
    visit("model_name", request.model_name);
    visit("output", request.output);
    visit("report", request.report);
    visit("map", request.map);
    visit("choices", request.choices);
    visit("mode", request.mode);
    visit("device", request.device);
    visit("dtype", request.dtype);
    visit("inputs", request.inputs);
    visit("more_inputs", request.more_inputs);
    visit("recorded_model", request.recorded_model);
    visit("inputs_recorded", request.inputs_recorded);
    visit("graph", request.graph);
    visit("kernel", request.kernel);
    visit("build", request.build);
    visit("method", request.method);
    visit("only", request.only);
    visit("exclude", request.exclude);
    visit("fallback", request.fallback);
    visit("warnings", request.warnings);
    visit("kernel_dirs", request.kernel_dirs);
    visit("threads", request.threads);
    visit("duration", request.duration);
    visit("runs", request.runs);
    visit("warm_up", request.warm_up);
    visit("load_kernels", request.load_kernels);
    visit("verify", request.verify);
    visit("sizes", request.sizes);
    visit("tolerance", request.tolerance);
    visit("precisions", request.precisions);
    visit("max_error", request.max_error);
    visit("agree", request.agree);
    visit("tune", request.tune);
    visit("measure", request.measure);
    visit("modules", request.modules);
    visit("tune_sizes", request.tune_sizes);
    visit("shard", request.shard);
    visit("shards", request.shards);
    visit("gpu", request.gpu);
    visit("invocations", request.invocations);
    visit("strict", request.strict);
    visit("dry_run", request.dry_run);
    visit("strip_debug", request.strip_debug);
    visit("graphs", request.graphs);
    visit("freeze", request.freeze);
    visit("profile_names", request.profile_names);
    visit("allow_io", request.allow_io);
}

Json written(const path& value) {
    return value.empty() ? Json() : Json(value.string());
}

template <typename Value>
Json written(const Value& value) {
    return value;
}

template <typename Value>
Json written(const std::optional<Value>& value) {
    return value ? written(*value) : Json();
}

Json written(const std::vector<path>& values) {
    Json list = Json::array();
    for (const path& value : values) {
        list.push_back(value.string());
    }
    return list;
}

void read(const Json& json, std::string& value) {
    value = json.is_string() ? json.get<std::string>() : value;
}

void read(const Json& json, path& value) {
    value = json.is_string() ? path(json.get<std::string>()) : value;
}

void read(const Json& json, Json& value) {
    value = json;
}

void read(const Json& json, bool& value) {
    value = json.is_boolean() ? json.get<bool>() : value;
}

void read(const Json& json, double& value) {
    value = json.is_number() ? json.get<double>() : value;
}

void read(const Json& json, std::uint64_t& value) {
    value = json.is_number_unsigned() ? json.get<std::uint64_t>() : value;
}

void read(const Json& json, std::int64_t& value) {
    value = json.is_number_integer() ? json.get<std::int64_t>() : value;
}

bool fits(const Json& json, const std::optional<std::string>&) {
    return json.is_string();
}
bool fits(const Json& json, const std::optional<path>&) {
    return json.is_string();
}
bool fits(const Json& json, const std::optional<double>&) {
    return json.is_number();
}
bool fits(const Json& json, const std::optional<std::uint64_t>&) {
    return json.is_number_unsigned();
}

template <typename Value>
void read(const Json& json, std::optional<Value>& value) {
    if (fits(json, value)) {
        read(json, value.emplace());
    }
}

template <typename Value>
void read(const Json& json, std::vector<Value>& values) {
    if (json.is_array()) {
        for (const Json& one : json) {
            read(one, values.emplace_back());
        }
    }
}

}  // namespace

Json Request::to_json() const {
    Json json = {{"schema", schema}};
    visit_fields(*this, [&](const char* key, const auto& value) { json[key] = written(value); });
    return json;
}

Request Request::parse(const std::string& text) {
    const Json json = base::parse_json(text, "request");
    if (!json.is_object() || json.value("schema", "") != schema) {
        throw Error(ErrorCode::malformed,
                    {.what = "the worker does not understand the request",
                     .where = "",
                     .why = std::string("it is not of schema ") + schema,
                     .hint = "install twinkle and its runtime in one version"});
    }
    Request request;
    visit_fields(request, [&](const char* key, auto& value) {
        if (const auto found = json.find(key); found != json.end()) {
            read(*found, value);
        }
    });
    return request;
}

}  // namespace twinkle::protocol
