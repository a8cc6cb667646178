#include "twinkle/invocation.h"

#include <array>
#include <bit>
#include <utility>

#include "base/sha256.h"
#include "tuning/json_reading.h"

namespace twinkle {

using base::Json;
using base::Node;
using base::TableReader;

namespace {

constexpr std::array mode_names{std::pair(RunMode::inference, std::string_view("inference")),
                                std::pair(RunMode::forward, std::string_view("forward")),
                                std::pair(RunMode::backward, std::string_view("backward"))};

Json input_json(const AbstractInput& input) {
    Json json = {{"dtype", input.dtype}};
    if (!input.layout.empty()) {
        json["layout"] = input.layout;
        json["sizes"] = input.sizes;
    }
    if (input.alignment != 0) {
        json["alignment"] = input.alignment;
    }
    if (!input.value.empty()) {
        json["value"] = input.value;
    }
    return json;
}

AbstractInput read_input(const Node& node, std::string_view origin) {
    TableReader reader(node, origin, "an input");
    AbstractInput input;
    input.dtype = reader.required_string("dtype");
    input.layout = reader.string("layout").value_or("");
    if (const Node* sizes = reader.find("sizes")) {
        for (const Node& size : reader.as_array(*sizes, "sizes").items) {
            if (size.kind != Node::Kind::integer || size.integer < 0) {
                reader.fail(size, "a size is an integer of 0 or more");
            }
            input.sizes.push_back(size.integer);
        }
    }
    if (input.layout.empty() && !input.sizes.empty()) {
        reader.fail(node, "what has sizes has a layout");
    }
    input.alignment = reader.integer("alignment", 1, 1 << 20).value_or(0);
    input.value = reader.string("value").value_or("");
    reader.finish();
    return input;
}

RunMode read_mode(TableReader& reader) {
    const Node& node = reader.require("mode");
    const std::string text = reader.as_string(node, "mode");
    for (const auto& [mode, name] : mode_names) {
        if (text == name) {
            return mode;
        }
    }
    reader.fail(node, "a mode is inference, forward or backward");
}

}  // namespace

namespace tuning {

Json invocation_json(const Invocation& invocation) {
    Json inputs = Json::array();
    for (const AbstractInput& input : invocation.inputs) {
        inputs.push_back(input_json(input));
    }
    Json json = {{"operation", invocation.operation},
                 {"inputs", inputs},
                 {"device", invocation.device},
                 {"mode", run_mode_name(invocation.mode)}};
    if (invocation.captured) {
        json["captured"] = true;
    }
    if (!invocation.extras.empty()) {
        json["extras"] = invocation.extras;
    }
    return json;
}

Invocation read_invocation(const Node& node, std::string_view origin) {
    TableReader reader(node, origin, "an invocation");
    Invocation invocation;
    invocation.operation = reader.required_string("operation");
    for (const Node& input : reader.as_array(reader.require("inputs"), "inputs").items) {
        invocation.inputs.push_back(read_input(input, origin));
    }
    invocation.device = reader.required_string("device");
    invocation.mode = read_mode(reader);
    invocation.captured = reader.boolean("captured").value_or(false);
    if (const Node* extras = reader.find("extras")) {
        for (const base::Member& extra : reader.as_table(*extras, "extras").members) {
            invocation.extras[extra.key] = reader.as_string(extra.value, extra.key);
        }
    }
    reader.finish();
    return invocation;
}

}  // namespace tuning

std::string_view run_mode_name(RunMode mode) {
    for (const auto& [known, name] : mode_names) {
        if (known == mode) {
            return name;
        }
    }
    return "inference";
}

std::string Invocation::key() const {
    return base::json_line(tuning::invocation_json(*this));
}

std::string Invocation::hash() const {
    return base::sha256_hex(key());
}

Invocation Invocation::from_key(std::string_view key) {
    constexpr std::string_view origin = "key of an invocation";
    return tuning::read_invocation(base::parse_json_document(key, origin, tuning::entry_limits),
                                   origin);
}

std::int64_t size_bucket(std::int64_t size) {
    constexpr std::int64_t largest = std::int64_t{1} << 62;
    return size <= 0 ? 0
           : size >= largest
               ? largest
               : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
}

}  // namespace twinkle
