#include "sigstore/proto_json.h"

#include <charconv>
#include <limits>
#include <stdexcept>

#include "base/base64.h"
#include "base/text.h"

namespace twinkle::sigstore {

ProtoMessage::ProtoMessage(const base::Json& json, std::string path, Fail fail)
    : json_(&json), path_(std::move(path)), fail_(std::move(fail)) {
    if (!json_->is_object()) {
        this->fail("", "is not an object");
    }
}

std::string ProtoMessage::place(std::string_view key) const {
    const std::string shown = base::printable(key);
    return path_.empty() || shown.empty() ? path_ + shown : path_ + "." + shown;
}

void ProtoMessage::fail(std::string_view key, std::string_view why) const {
    const std::string at = place(key);
    fail_((at.empty() ? "the document" : at) + " " + std::string(why));
    throw std::logic_error("a failure was not thrown");
}

const base::Json* ProtoMessage::find(const char* key) {
    known_.insert(key);
    const auto found = json_->find(key);
    return found == json_->end() || found->is_null() ? nullptr : &*found;
}

const base::Json& ProtoMessage::need(const char* key) {
    const auto* value = find(key);
    if (value == nullptr) {
        fail(key, "is missing");
    }
    return *value;
}

bool ProtoMessage::has(const char* key) const {
    const auto found = json_->find(key);
    return found != json_->end() && !found->is_null();
}

std::string ProtoMessage::text(const char* key) {
    const auto& value = need(key);
    if (!value.is_string()) {
        fail(key, "is not a string");
    }
    return value.get<std::string>();
}

std::optional<std::string> ProtoMessage::optional_text(const char* key) {
    return find(key) != nullptr ? std::optional(text(key)) : std::nullopt;
}

std::string ProtoMessage::decode(const base::Json& value, const char* key) const {
    auto decoded =
        value.is_string() ? base::from_base64(value.get_ref<const std::string&>()) : std::nullopt;
    if (!decoded) {
        fail(key, "is not base64");
    }
    return std::move(*decoded);
}

std::string ProtoMessage::bytes(const char* key) {
    return decode(need(key), key);
}

std::vector<std::string> ProtoMessage::bytes_list(const char* key) {
    std::vector<std::string> list;
    const auto* value = find(key);
    if (value != nullptr && !value->is_array()) {
        fail(key, "is not a list");
    }
    for (std::size_t i = 0; value != nullptr && i < value->size(); ++i) {
        list.push_back(decode((*value)[i], key));
    }
    return list;
}

std::uint64_t ProtoMessage::count(const char* key) {
    const auto* value = find(key);
    if (value == nullptr) {
        return 0;
    }
    if (!value->is_string()) {
        fail(key, "is not a number written as a string");
    }
    const auto& digits = value->get_ref<const std::string&>();
    std::uint64_t number = 0;
    const auto* end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, number);
    if (error != std::errc() || rest != end || (digits.size() > 1 && digits.front() == '0') ||
        number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail(key, "is not a number from 0 to 2^63 - 1");
    }
    return number;
}

ProtoMessage ProtoMessage::message(const char* key) {
    return {need(key), place(key), fail_};
}

std::optional<ProtoMessage> ProtoMessage::optional_message(const char* key) {
    return find(key) != nullptr ? std::optional(message(key)) : std::nullopt;
}

std::vector<ProtoMessage> ProtoMessage::messages(const char* key) {
    std::vector<ProtoMessage> list;
    const auto* value = find(key);
    if (value != nullptr && !value->is_array()) {
        fail(key, "is not a list");
    }
    for (std::size_t i = 0; value != nullptr && i < value->size(); ++i) {
        list.emplace_back((*value)[i], place(key) + "[" + std::to_string(i) + "]", fail_);
    }
    return list;
}

void ProtoMessage::done() const {
    for (const auto& [key, value] : json_->items()) {
        if (!known_.contains(key)) {
            fail(key, "is not a field that this version knows");
        }
    }
}

}  // namespace twinkle::sigstore
