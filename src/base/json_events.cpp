#include "base/json_events.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <vector>

#include "base/text.h"
#include "twinkle/error.h"

namespace twinkle::base {
namespace {

// Feeds the parser and remembers how far it has read.
class CountingIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    CountingIterator(const char* at, const char** progress) : at_(at), progress_(progress) {}
    const char& operator*() const { return *at_; }
    CountingIterator& operator++() {
        *progress_ = ++at_;
        return *this;
    }
    CountingIterator operator++(int) {
        CountingIterator old = *this;
        ++*this;
        return old;
    }
    bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
    bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

private:
    const char* at_;
    const char** progress_;
};

// Cuts "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while …" to
// the reason; `where` already has the rest.
std::string plain_reason(std::string_view text) {
    const std::size_t bracket = text.find("] ");
    if (bracket != std::string_view::npos) {
        text.remove_prefix(bracket + 2);
    }
    if (text.starts_with("parse error")) {
        const std::size_t colon = text.find(": ");
        if (colon != std::string_view::npos) {
            text.remove_prefix(colon + 2);
        }
    }
    return printable(text);
}

class StrictSax : public nlohmann::json_sax<Json> {
public:
    StrictSax(std::string_view text, std::string_view origin, JsonLimits limits, JsonEvents& events)
        : text_(text),
          origin_(origin),
          limits_(limits),
          events_(events),
          progress_(text.data()),
          token_end_(text.data()),
          counted_(text.data()) {}

    CountingIterator begin() { return {text_.data(), &progress_}; }
    CountingIterator end() { return {text_.data() + text_.size(), &progress_}; }

    bool null() override { return events_.null(token()), true; }
    bool boolean(bool value) override { return events_.boolean(value, token()), true; }
    bool number_integer(std::int64_t value) override {
        return events_.integer(value, token()), true;
    }
    bool number_unsigned(std::uint64_t value) override {
        return events_.unsigned_integer(value, token()), true;
    }
    bool number_float(double value, const std::string&) override {
        return events_.number(value, token()), true;
    }
    bool string(std::string& value) override { return events_.string(value, token()), true; }
    bool binary(binary_t&) override { return false; }

    bool start_object(std::size_t) override {
        const TextPosition at = token();
        enter(at);
        return events_.begin_object(at), true;
    }
    bool key(std::string& value) override {
        const TextPosition at = token();
        if (!keys_.back().insert(value).second) {
            fail(at, "the key \"" + printable(value) + "\" is given twice");
        }
        return events_.key(value, at), true;
    }
    bool end_object() override { return leave(), events_.end_object(), true; }
    bool start_array(std::size_t) override {
        const TextPosition at = token();
        enter(at);
        return events_.begin_array(at), true;
    }
    bool end_array() override { return leave(), events_.end_array(), true; }

    bool parse_error(std::size_t, const std::string&,
                     const nlohmann::detail::exception& error) override {
        // The last character read is the offending one.
        fail(position_of(progress_ > text_.data() ? progress_ - 1 : progress_),
             plain_reason(error.what()));
    }

    [[noreturn]] void fail(TextPosition at, std::string why) const {
        throw Error(ErrorCode::malformed, {.what = "not valid JSON",
                                           .where = located(origin_, at),
                                           .why = std::move(why),
                                           .hint = ""});
    }

private:
    void enter(TextPosition at) {
        if (keys_.size() >= limits_.depth) {
            fail(at, "nested deeper than " + std::to_string(limits_.depth) + " levels");
        }
        keys_.emplace_back();
    }
    void leave() {
        keys_.pop_back();
        token_end_ = progress_;
    }

    // The start of the token that the parser has just read: the first character after the last
    // token that is neither space nor punctuation.
    TextPosition token() {
        const char* start = token_end_;
        const char* end = text_.data() + text_.size();
        while (start < end &&
               std::string_view(" \t\r\n,:\xef\xbb\xbf").find(*start) != std::string_view::npos) {
            ++start;
        }
        token_end_ = progress_;
        return position_of(start);
    }

    // Counts from the last position on, so that a whole document takes one pass.
    TextPosition position_of(const char* where) {
        if (where < counted_) {
            counted_ = text_.data();
            position_ = {};
        }
        for (; counted_ < where; ++counted_) {
            if (*counted_ == '\n') {
                ++position_.line;
                position_.column = 1;
            } else if ((static_cast<unsigned char>(*counted_) & 0xc0) != 0x80) {
                ++position_.column;
            }
        }
        return position_;
    }

    std::string_view text_;
    std::string_view origin_;
    JsonLimits limits_;
    JsonEvents& events_;
    std::vector<std::unordered_set<std::string>> keys_;  // one set per open object or array
    const char* progress_;
    const char* token_end_;
    const char* counted_;
    TextPosition position_;
};

}  // namespace

std::string located(std::string_view origin, TextPosition position) {
    return printable(origin) + ":" + std::to_string(position.line) + ":" +
           std::to_string(position.column);
}

void read_json_events(std::string_view text, std::string_view origin, JsonLimits limits,
                      JsonEvents& events) {
    if (text.size() > limits.bytes) {
        throw Error(ErrorCode::malformed,
                    {.what = "the JSON document is too large",
                     .where = printable(origin),
                     .why = "it has more than " + std::to_string(limits.bytes) + " bytes",
                     .hint = ""});
    }
    StrictSax sax(text, origin, limits, events);
    Json::sax_parse(sax.begin(), sax.end(), &sax);
}

}  // namespace twinkle::base
