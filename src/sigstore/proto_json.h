#pragma once
// Protobuf messages in their JSON form, read strictly: every field is known and of its type, bytes
// are padded base64, 64-bit integers are strings. Null counts as absent.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace twinkle::sigstore {

class ProtoMessage {
public:
    // Throws the caller's kind of error for a broken rule, with this text.
    using Fail = std::function<void(std::string why)>;

    ProtoMessage(const base::Json& json, std::string path, Fail fail);

    bool has(const char* key) const;
    std::string text(const char* key);
    std::optional<std::string> optional_text(const char* key);
    std::string bytes(const char* key);
    std::vector<std::string> bytes_list(const char* key);  // absent: empty
    std::uint64_t count(const char* key);                  // an int64, not negative; absent: 0
    ProtoMessage message(const char* key);
    std::optional<ProtoMessage> optional_message(const char* key);
    std::vector<ProtoMessage> messages(const char* key);  // absent: empty

    // Fails if there are fields that were never read.
    void done() const;
    [[noreturn]] void fail(std::string_view key, std::string_view why) const;

private:
    const base::Json* find(const char* key);
    const base::Json& need(const char* key);
    std::string decode(const base::Json& value, const char* key) const;
    std::string place(std::string_view key) const;

    const base::Json* json_;
    std::string path_;
    Fail fail_;
    std::set<std::string, std::less<>> known_;
};

}  // namespace twinkle::sigstore
