#include "base/document.h"

#include <algorithm>

#include "base/text.h"

namespace twinkle::base {
namespace {

class DocumentBuilder : public JsonEvents {
public:
    Node take() { return std::move(root_); }

    void null(TextPosition at) override { add(Node::Kind::null, at); }
    void boolean(bool value, TextPosition at) override {
        add(Node::Kind::boolean, at).boolean = value;
    }
    void integer(std::int64_t value, TextPosition at) override {
        Node& node = add(Node::Kind::integer, at);
        node.integer = value;
        node.number = static_cast<double>(value);
    }
    void unsigned_integer(std::uint64_t value, TextPosition at) override {
        if (value <= INT64_MAX) {
            return integer(static_cast<std::int64_t>(value), at);
        }
        add(Node::Kind::number, at).number = static_cast<double>(value);
    }
    void number(double value, TextPosition at) override {
        add(Node::Kind::number, at).number = value;
    }
    void string(std::string& value, TextPosition at) override {
        add(Node::Kind::string, at).text = std::move(value);
    }
    void key(std::string& value, TextPosition at) override {
        key_ = std::move(value);
        key_at_ = at;
    }
    void begin_object(TextPosition at) override { open_.push_back(&add(Node::Kind::table, at)); }
    void end_object() override { open_.pop_back(); }
    void begin_array(TextPosition at) override { open_.push_back(&add(Node::Kind::array, at)); }
    void end_array() override { open_.pop_back(); }

private:
    // Pointers in open_ stay valid: nothing is added beside a container while it is open.
    Node& add(Node::Kind kind, TextPosition at) {
        Node* node = &root_;
        if (!open_.empty() && open_.back()->kind == Node::Kind::array) {
            node = &open_.back()->items.emplace_back();
        } else if (!open_.empty()) {
            node = &open_.back()->members.emplace_back(Member{std::move(key_), key_at_, {}}).value;
        }
        node->kind = kind;
        node->at = at;
        return *node;
    }

    Node root_;
    std::vector<Node*> open_;
    std::string key_;
    TextPosition key_at_;
};

}  // namespace

const Node* Node::find(std::string_view key) const {
    const auto found =
        std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.key == key; });
    return found == members.end() ? nullptr : &found->value;
}

std::string_view kind_name(Node::Kind kind) {
    switch (kind) {
        case Node::Kind::null: return "null";
        case Node::Kind::boolean: return "a truth value";
        case Node::Kind::integer: return "an integer";
        case Node::Kind::number: return "a number";
        case Node::Kind::string: return "a string";
        case Node::Kind::array: return "a list";
        case Node::Kind::table: return "a table";
        case Node::Kind::other: return "a date or time";
    }
    return "a value";
}

Node parse_json_document(std::string_view text, std::string_view origin, JsonLimits limits) {
    DocumentBuilder builder;
    read_json_events(text, origin, limits, builder);
    return builder.take();
}

TableReader::TableReader(const Node& table, std::string_view origin, std::string_view what)
    : table_(table), origin_(origin), what_(what) {
    if (table.kind != Node::Kind::table) {
        fail(table, "it is " + std::string(kind_name(table.kind)) + " where a table is needed");
    }
}

const Node* TableReader::find(std::string_view key) {
    known_.emplace_back(key);
    const Node* value = table_.find(key);
    return value != nullptr && value->kind == Node::Kind::null ? nullptr : value;
}

const Node& TableReader::require(std::string_view key) {
    const Node* value = find(key);
    if (value == nullptr) {
        fail(table_, "the key \"" + std::string(key) + "\" is missing");
    }
    return *value;
}

std::optional<std::string> TableReader::string(std::string_view key) {
    const Node* value = find(key);
    return value == nullptr ? std::nullopt : std::optional(as_string(*value, key));
}

std::string TableReader::required_string(std::string_view key) {
    return as_string(require(key), key);
}

std::optional<bool> TableReader::boolean(std::string_view key) {
    const Node* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->kind != Node::Kind::boolean) {
        fail_kind(*value, key, "true or false");
    }
    return value->boolean;
}

std::optional<std::int64_t> TableReader::integer(std::string_view key, std::int64_t least,
                                                 std::int64_t most) {
    const Node* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->kind != Node::Kind::integer) {
        fail_kind(*value, key, "an integer");
    }
    if (value->integer < least || value->integer > most) {
        fail(*value, "\"" + std::string(key) + "\" must be between " + std::to_string(least) +
                         " and " + std::to_string(most));
    }
    return value->integer;
}

std::vector<std::string> TableReader::strings(std::string_view key) {
    const Node* value = find(key);
    return value == nullptr ? std::vector<std::string>() : as_strings(*value, key);
}

std::string TableReader::as_string(const Node& value, std::string_view key) const {
    if (value.kind != Node::Kind::string) {
        fail_kind(value, key, "a string");
    }
    return value.text;
}

const Node& TableReader::as_table(const Node& value, std::string_view key) const {
    if (value.kind != Node::Kind::table) {
        fail_kind(value, key, "a table");
    }
    return value;
}

const Node& TableReader::as_array(const Node& value, std::string_view key) const {
    if (value.kind != Node::Kind::array) {
        fail_kind(value, key, "a list");
    }
    return value;
}

std::vector<std::string> TableReader::as_strings(const Node& value, std::string_view key) const {
    std::vector<std::string> result;
    for (const Node& item : as_array(value, key).items) {
        if (item.kind != Node::Kind::string) {
            fail_kind(item, key, "a list of strings");
        }
        result.push_back(item.text);
    }
    return result;
}

void TableReader::finish() {
    for (const Member& member : table_.members) {
        if (std::find(known_.begin(), known_.end(), member.key) == known_.end()) {
            throw Error(ErrorCode::malformed,
                        {.what = "unknown key \"" + printable(member.key) + "\" in " + what_,
                         .where = located(origin_, member.at),
                         .why = "",
                         .hint = suggestion(member.key, known_).empty()
                                     ? "known keys: " + join(known_, ", ")
                                     : suggestion(member.key, known_)});
        }
    }
}

void TableReader::fail(const Node& at, std::string why, std::string hint) const {
    throw Error(ErrorCode::malformed, {.what = "cannot read " + what_,
                                       .where = where(at),
                                       .why = std::move(why),
                                       .hint = std::move(hint)});
}

void TableReader::fail_kind(const Node& value, std::string_view key,
                            std::string_view wanted) const {
    fail(value, "\"" + printable(key) + "\" is " + std::string(kind_name(value.kind)) + ", not " +
                    std::string(wanted));
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
    const auto near = nearest(name, candidates);
    return near ? "did you mean \"" + printable(*near) + "\"?" : "";
}

}  // namespace twinkle::base
