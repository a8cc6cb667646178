#include "runtime/exported/plain_pickle.h"

#include "archive/json_reader.h"
#include "base/text.h"

#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

namespace twinkle::runtime::exported {

using archive::InvalidJson;

namespace {

constexpr std::size_t most_pickled_values = 10'000'000;
// With `metadata`: what _rebuild_tensor_v2 and _rebuild_qtensor take.
constexpr std::size_t fewest_arguments_of_tensor = 6;
constexpr std::size_t most_arguments_of_tensor = 7;

std::optional<at::ScalarType> storage_dtype(const std::string& name) {
    static const std::map<std::string, at::ScalarType> dtypes = {
        {"torch.DoubleStorage", at::kDouble},
        {"torch.FloatStorage", at::kFloat},
        {"torch.HalfStorage", at::kHalf},
        {"torch.BFloat16Storage", at::kBFloat16},
        {"torch.LongStorage", at::kLong},
        {"torch.IntStorage", at::kInt},
        {"torch.ShortStorage", at::kShort},
        {"torch.CharStorage", at::kChar},
        {"torch.ByteStorage", at::kByte},
        {"torch.BoolStorage", at::kBool},
        {"torch.ComplexFloatStorage", at::kComplexFloat},
        {"torch.ComplexDoubleStorage", at::kComplexDouble},
        {"torch.QInt8Storage", at::kQInt8},
        {"torch.QUInt8Storage", at::kQUInt8},
        {"torch.QInt32Storage", at::kQInt32},
    };
    const auto found = dtypes.find(name);
    return found == dtypes.end() ? std::nullopt : std::optional(found->second);
}

[[noreturn]] void refuse_pickle(const std::string& what) {
    throw InvalidJson("the pickle of an object of torch.classes " + what,
                      "let __getstate__ of the class return numbers, texts, tensors, and tuples, "
                      "lists and dicts of these");
}

class PickleReader {
public:
    explicit PickleReader(std::string_view data) : rest_(data) {}

    PlainObject read() {
        while (step()) {
        }
        if (!object_ || stack_.size() != 1 || stack_.back() != object_mark_ || !marks_.empty()) {
            refuse_pickle("holds something else than one object");
        }
        return *object_;
    }

private:
    using Made = std::shared_ptr<PlainValue>;

    std::string_view take(std::uint64_t size) {
        if (size > rest_.size()) {
            refuse_pickle("ends too early");
        }
        const auto taken = rest_.substr(0, static_cast<std::size_t>(size));
        rest_.remove_prefix(static_cast<std::size_t>(size));
        return taken;
    }

    std::uint64_t number(std::size_t width) {
        std::uint64_t value = 0;
        std::memcpy(&value, take(width).data(), width);
        return value;
    }

    std::string take_line() {
        const auto end = rest_.find('\n');
        const std::string line(take(end == std::string_view::npos ? rest_.size() + 1 : end));
        take(1);
        return line;
    }

    void count(std::size_t values) {
        made_ += values;
        if (made_ > most_pickled_values) {
            refuse_pickle("holds more values than any sane one");
        }
    }

    void push(PlainValue value) {
        count(1);
        stack_.push_back(std::make_shared<PlainValue>(std::move(value)));
    }

    // What is copied of a text that was there before: few bytes can ask for it often.
    const std::string& copied(const std::string& text) {
        count(text.size() / text_bytes_of_value);
        return text;
    }

    void push_integer(std::int64_t value) { push({.kind = PlainKind::integer, .integer = value}); }

    void push_long() {
        const std::size_t size = number(1);
        if (size > sizeof(std::int64_t)) {
            refuse_pickle("has a number of more than 64 bits");
        }
        std::uint64_t value = number(size);
        if (size > 0 && size < 8 && (value >> (8 * size - 1)) != 0) {
            value |= ~std::uint64_t(0) << (8 * size);  // two's complement, shortened
        }
        push_integer(static_cast<std::int64_t>(value));
    }

    void push_number() {
        std::uint64_t bits = 0;
        for (const char byte : take(8)) {  // big-endian
            bits = bits << 8 | static_cast<unsigned char>(byte);
        }
        push({.kind = PlainKind::number, .number = std::bit_cast<double>(bits)});
    }

    void push_name() {
        std::string name = take_line();
        name += "." + take_line();
        push({.kind = PlainKind::name, .text = std::move(name)});
    }

    Made pop() {
        if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
            refuse_pickle("has an instruction without operands");
        }
        Made value = std::move(stack_.back());
        stack_.pop_back();
        return value;
    }

    std::vector<Plain> pop(std::size_t count) {
        std::vector<Plain> values(count);
        for (std::size_t i = count; i-- > 0;) {
            values[i] = pop();
        }
        return values;
    }

    std::vector<Plain> since_mark() {
        if (marks_.empty()) {
            refuse_pickle("has an instruction without operands");
        }
        auto values = pop(stack_.size() - marks_.back());
        marks_.pop_back();
        return values;
    }

    void push_tuple(std::vector<Plain> items) {
        push({.kind = PlainKind::tuple, .items = std::move(items)});
    }

    void fill(PlainKind kind, const std::vector<Plain>& items) {
        const Made container = pop();
        if (container->kind != kind) {
            refuse_pickle("fills something that is no list or dict");
        }
        container->items.insert(container->items.end(), items.begin(), items.end());
        stack_.push_back(container);
    }

    // An argument of a function is its result.
    void push_back(const Plain& value) {
        stack_.push_back(std::const_pointer_cast<PlainValue>(value));
    }

    void remember(std::uint64_t number) {
        const Made value = pop();
        memo_[number] = value;
        stack_.push_back(value);
    }

    void recall(std::uint64_t number) {
        const auto found = memo_.find(number);
        if (found == memo_.end()) {
            refuse_pickle("refers to a value that it does not have");
        }
        stack_.push_back(found->second);
    }

    // ("storage", type, key, device, number of elements)
    void push_storage() {
        const Plain parts = pop();
        const auto& items = parts->items;
        const bool usual = parts->kind == PlainKind::tuple && items.size() >= 5 &&
                           items[1]->kind == PlainKind::name && items[2]->kind == PlainKind::text &&
                           items[4]->kind == PlainKind::integer && items[4]->integer >= 0;
        const auto dtype = usual ? storage_dtype(items[1]->text) : std::nullopt;
        if (!dtype) {
            refuse_pickle("has a storage of a kind that is not known");
        }
        push({.kind = PlainKind::storage,
              .integer = items[4]->integer,
              .text = copied(items[2]->text),
              .dtype = *dtype});
    }

    static bool gives_back_its_argument(const std::string& name, const std::vector<Plain>& items) {
        if (name == "torch.jit._pickle.restore_type_tag") {
            return items.size() == 2;
        }
        return name.starts_with("torch.jit._pickle.build_") && items.size() == 1 &&
               items[0]->kind == PlainKind::list;
    }

    // The functions that plain values need, which are not called: only their arguments are kept.
    void reduce() {
        const Plain arguments = pop();
        const Plain function = pop();
        if (function->kind != PlainKind::name || arguments->kind != PlainKind::tuple) {
            refuse_pickle("calls something that is no function");
        }
        const std::string& name = function->text;
        const auto& items = arguments->items;
        if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_qtensor") {
            if (items.size() < fewest_arguments_of_tensor || items[0]->kind != PlainKind::storage) {
                refuse_pickle("has a tensor without a storage");
            }
            if (items.size() > most_arguments_of_tensor) {
                refuse_pickle("has a tensor with more arguments than it takes");
            }
            push({.kind = PlainKind::tensor, .dtype = items[0]->dtype, .items = items});
        } else if (name == "collections.OrderedDict" && items.empty()) {
            push({.kind = PlainKind::dict});
        } else if (gives_back_its_argument(name, items)) {
            push_back(items[0]);
        } else if (name == "torch.device" && !items.empty() && items[0]->kind == PlainKind::text) {
            push({.kind = PlainKind::device, .text = copied(items[0]->text)});
        } else {
            refuse_pickle("calls " + base::printable(name.substr(0, 200)) +
                          ", which makes no plain value");
        }
    }

    // NEWOBJ of the class, and BUILD of it with its state: once, and around everything else.
    void make_object() {
        const Plain arguments = pop();
        const Plain type = pop();
        if (object_mark_ || !stack_.empty() || !marks_.empty() || type->kind != PlainKind::name ||
            !type->text.starts_with(torch_classes_prefix) || arguments->kind != PlainKind::tuple ||
            !arguments->items.empty()) {
            refuse_pickle("holds an object in an object");
        }
        class_name_ = type->text;
        push({.kind = PlainKind::name, .text = "the object"});
        object_mark_ = stack_.back();
        std::erase_if(memo_, [&](const auto& entry) { return entry.second == type; });
    }

    void build() {
        const Plain state = pop();
        const Plain object = pop();
        if (object_ || object != object_mark_ || !stack_.empty()) {
            refuse_pickle("holds an object in an object");
        }
        object_ = PlainObject{class_name_, state};
        stack_.push_back(object_mark_);
    }

    bool step() {
        const char code = take(1).front();
        switch (code) {
            case '\x80': take(1); break;
            case '.': return false;
            case 'N': push({}); break;
            case '\x88':
            case '\x89':
                push({.kind = PlainKind::boolean, .integer = code == '\x88' ? 1 : 0});
                break;
            case 'K': push_integer(static_cast<std::int64_t>(number(1))); break;
            case 'M': push_integer(static_cast<std::int64_t>(number(2))); break;
            case 'J': push_integer(static_cast<std::int32_t>(number(4))); break;
            case '\x8a': push_long(); break;
            case 'G': push_number(); break;
            case 'X': push({.kind = PlainKind::text, .text = std::string(take(number(4)))}); break;
            case '\x8d':
                push({.kind = PlainKind::text, .text = std::string(take(number(8)))});
                break;
            case 'c': push_name(); break;
            case ')': push_tuple({}); break;
            case ']': push({.kind = PlainKind::list}); break;
            case '}': push({.kind = PlainKind::dict}); break;
            case '(': marks_.push_back(stack_.size()); break;
            case 't': push_tuple(since_mark()); break;
            case '\x85': push_tuple(pop(1)); break;
            case '\x86': push_tuple(pop(2)); break;
            case '\x87': push_tuple(pop(3)); break;
            case 'a': fill(PlainKind::list, pop(1)); break;
            case 'e': fill(PlainKind::list, since_mark()); break;
            case 's': fill(PlainKind::dict, pop(2)); break;
            case 'u': fill(PlainKind::dict, since_mark()); break;
            case 'Q': push_storage(); break;
            case 'R': reduce(); break;
            case '\x81': make_object(); break;
            case 'b': build(); break;
            case 'q': remember(number(1)); break;
            case 'r': remember(number(4)); break;
            case 'h': recall(number(1)); break;
            case 'j': recall(number(4)); break;
            default: refuse_pickle("has an instruction that no such object needs");
        }
        return true;
    }

    std::string_view rest_;
    std::vector<Made> stack_;
    std::vector<std::size_t> marks_;
    std::unordered_map<std::uint64_t, Made> memo_;
    std::string class_name_;
    Made object_mark_;
    std::optional<PlainObject> object_;
    std::size_t made_ = 0;
};

}  // namespace

PlainObject read_plain_object(std::string_view pickle) {
    return PickleReader(pickle).read();
}

}  // namespace twinkle::runtime::exported
