#pragma once
// A JSON or TOML document as one tree in which every value has its position, and a reader of tables
// that turns everything unexpected into an error with file, line and column.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_events.h"
#include "twinkle/error.h"

namespace twinkle::base {

struct Member;

struct Node {
    enum class Kind { null, boolean, integer, number, string, array, table, other };
    Kind kind = Kind::null;
    bool boolean = false;
    std::int64_t integer = 0;
    double number = 0;  // also for integers
    std::string text;   // the string; for `other` (dates, …) its kind
    std::vector<Node> items;
    std::vector<Member> members;  // in the order of the document
    TextPosition at;

    const Node* find(std::string_view key) const;
};

struct Member {
    std::string key;
    TextPosition at;
    Node value;
};

std::string_view kind_name(Node::Kind kind);  // "a string", "a table", …

Node parse_json_document(std::string_view text, std::string_view origin, JsonLimits limits = {});

// Reads the keys of one table. Keys that were asked for are known; finish() refuses
// others.
class TableReader {
public:
    // `what` names the table in messages: "the manifest", "a layer", …
    TableReader(const Node& table, std::string_view origin, std::string_view what);

    const Node* find(std::string_view key);     // null values count as absent
    const Node& require(std::string_view key);  // Error if it is not there
    std::optional<std::string> string(std::string_view key);
    std::optional<bool> boolean(std::string_view key);
    std::optional<std::int64_t> integer(std::string_view key, std::int64_t least,
                                        std::int64_t most);
    std::vector<std::string> strings(std::string_view key);  // absent: empty
    std::string required_string(std::string_view key);

    // Converts a value that was found already; `key` is for messages.
    std::string as_string(const Node& value, std::string_view key) const;
    const Node& as_table(const Node& value, std::string_view key) const;
    const Node& as_array(const Node& value, std::string_view key) const;
    std::vector<std::string> as_strings(const Node& value, std::string_view key) const;

    void finish();
    [[noreturn]] void fail(const Node& at, std::string why, std::string hint = "") const;
    std::string where(const Node& at) const { return located(origin_, at.at); }
    const Node& table() const { return table_; }

private:
    [[noreturn]] void fail_kind(const Node& value, std::string_view key,
                                std::string_view wanted) const;

    const Node& table_;
    std::string origin_;
    std::string what_;
    std::vector<std::string> known_;
};

// `did you mean "x"?` or nothing.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

}  // namespace twinkle::base
