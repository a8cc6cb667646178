#include "base/json.h"

#include <vector>

#include "base/file.h"
#include "base/json_events.h"

namespace twinkle::base {
namespace {

class TreeBuilder : public JsonEvents {
public:
    Json take() { return std::move(root_); }

    void null(TextPosition) override { add(nullptr); }
    void boolean(bool value, TextPosition) override { add(value); }
    void integer(std::int64_t value, TextPosition) override { add(value); }
    void unsigned_integer(std::uint64_t value, TextPosition) override { add(value); }
    void number(double value, TextPosition) override { add(value); }
    void string(std::string& value, TextPosition) override { add(std::move(value)); }
    void key(std::string& value, TextPosition) override { key_ = std::move(value); }
    void begin_object(TextPosition) override { open_.push_back(add(Json::object())); }
    void end_object() override { open_.pop_back(); }
    void begin_array(TextPosition) override { open_.push_back(add(Json::array())); }
    void end_array() override { open_.pop_back(); }

private:
    // Pointers stay valid: nothing is added beside a container while it is open.
    Json* add(Json value) {
        if (open_.empty()) {
            root_ = std::move(value);
            return &root_;
        }
        Json& parent = *open_.back();
        if (parent.is_array()) {
            parent.push_back(std::move(value));
            return &parent.back();
        }
        return &(parent[key_] = std::move(value));
    }

    Json root_;
    std::vector<Json*> open_;
    std::string key_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view origin, JsonLimits limits) {
    TreeBuilder builder;
    read_json_events(text, origin, limits, builder);
    return builder.take();
}

Json read_json_file(const std::filesystem::path& path, std::string_view what, JsonLimits limits) {
    return parse_json(read_file(path, what, limits.bytes), display_path(path), limits);
}

std::string dump_json(const Json& value) {
    return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string json_line(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace twinkle::base
