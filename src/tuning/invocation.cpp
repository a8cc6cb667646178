#include "twinkle/invocation.h"

#include <algorithm>
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

// Every field once, under its key, for what writes (Writer) and for what reads (Reader).
template <typename Input, typename Fields>
void visit_fields(Input& input, Fields& fields) {
    fields.required("dtype", input.dtype);
    fields.optional("layout", input.layout);
    if (!input.layout.empty()) {  // a tensor
        fields.required("sizes", input.sizes);
    }
    fields.optional("alignment", input.alignment);
    fields.optional("value", input.value);
}

template <typename Call, typename Fields>
void visit_call(Call& invocation, Fields& fields) {
    fields.required("operation", invocation.operation);
    fields.required("inputs", invocation.inputs);
    fields.required("device", invocation.device);
    fields.required("mode", invocation.mode);
    fields.optional("captured", invocation.captured);
    fields.optional("extras", invocation.extras);
}

// Leaves out what is empty, where it may.
struct Writer {
    Json json = Json::object();

    template <typename Value>
    void required(const char* key, const Value& value) {
        json[key] = value;
    }
    void required(const char* key, RunMode mode) { json[key] = run_mode_name(mode); }
    void required(const char* key, const std::vector<AbstractInput>& inputs) {
        Json& list = json[key] = Json::array();
        for (const AbstractInput& input : inputs) {
            Writer writer;
            visit_fields(input, writer);
            list.push_back(std::move(writer.json));
        }
    }
    template <typename Value>
    void optional(const char* key, const Value& value) {
        if (value != Value()) {
            json[key] = value;
        }
    }
};

struct Reader {
    TableReader& reader;
    std::string_view origin;

    void required(const char* key, std::string& value) { value = reader.required_string(key); }
    void required(const char* key, RunMode& mode) {
        const Node& node = reader.require(key);
        const std::string text = reader.as_string(node, key);
        const auto known = std::find_if(mode_names.begin(), mode_names.end(),
                                        [&](const auto& one) { return one.second == text; });
        if (known == mode_names.end()) {
            reader.fail(node, "a mode is inference, forward or backward");
        }
        mode = known->first;
    }
    void required(const char* key, std::vector<std::int64_t>& sizes) {
        for (const Node& size : reader.as_array(reader.require(key), key).items) {
            if (size.kind != Node::Kind::integer || size.integer < 0) {
                reader.fail(size, "a size is an integer of 0 or more");
            }
            sizes.push_back(size.integer);
        }
    }
    void required(const char* key, std::vector<AbstractInput>& inputs) {
        for (const Node& node : reader.as_array(reader.require(key), key).items) {
            TableReader input(node, origin, "an input");
            Reader fields{input, origin};
            visit_fields(inputs.emplace_back(), fields);
            input.finish();
        }
    }
    void optional(const char* key, std::string& value) { value = reader.string(key).value_or(""); }
    void optional(const char* key, bool& value) { value = reader.boolean(key).value_or(false); }
    void optional(const char* key, std::int64_t& value) {
        constexpr std::int64_t largest = 1 << 20;
        value = reader.integer(key, 1, largest).value_or(0);
    }
    void optional(const char* key, std::map<std::string, std::string>& values) {
        if (const Node* table = reader.find(key)) {
            for (const base::Member& one : reader.as_table(*table, key).members) {
                values[one.key] = reader.as_string(one.value, one.key);
            }
        }
    }
};

}  // namespace

namespace tuning {

Json invocation_json(const Invocation& invocation) {
    Writer writer;
    visit_call(invocation, writer);
    return std::move(writer.json);
}

Invocation read_invocation(const Node& node, std::string_view origin) {
    TableReader reader(node, origin, "an invocation");
    Invocation invocation;
    Reader fields{reader, origin};
    visit_call(invocation, fields);
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
