#include "runtime/model/valid_pickle.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <vector>

namespace twinkle::runtime {

namespace {

constexpr std::size_t deepest_value = 500;

struct Invalid : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The element size of torch.FloatStorage and so on; one byte for unknown storages.
std::uint64_t element_size(std::string_view storage) {
    static const std::map<std::string_view, std::uint64_t> sizes = {
        {"DoubleStorage", 8},      {"FloatStorage", 4},         {"HalfStorage", 2},
        {"BFloat16Storage", 2},    {"LongStorage", 8},          {"IntStorage", 4},
        {"ShortStorage", 2},       {"ComplexFloatStorage", 8},  {"QInt32Storage", 4},
        {"ComplexHalfStorage", 4}, {"ComplexDoubleStorage", 16}};
    const auto found = sizes.find(storage);
    return found == sizes.end() ? 1 : found->second;
}

// Values are numbers here; it keeps what they hold, and which are numbers or strings.
class Walk {
public:
    Walk(std::string_view data, std::vector<PickledStorage>* storages,
         std::vector<std::string>* globals)
        : rest_(data), most_memos_(data.size()), storages_(storages), globals_(globals) {}

    void run() {
        while (step()) {
        }
        need(1);
        measure(stack_.back());
    }

private:
    using Value = std::uint32_t;
    static constexpr Value plain = 0;

    std::string_view take(std::uint64_t size) {
        if (size > rest_.size()) {
            throw Invalid("it ends too early, or a length in it is wrong");
        }
        const auto taken = rest_.substr(0, static_cast<std::size_t>(size));
        rest_.remove_prefix(static_cast<std::size_t>(size));
        return taken;
    }

    static constexpr std::uint64_t max_elements = std::uint64_t(1) << 48;

    std::uint64_t number(std::size_t width) {
        std::uint64_t value = 0;
        std::memcpy(&value, take(width).data(), width);
        return value;
    }

    std::string_view take_line() {
        const auto end = rest_.find('\n');
        const auto line = take(end == std::string_view::npos ? rest_.size() + 1 : end + 1);
        return line.substr(0, line.size() - 1);
    }

    void push_number(std::uint64_t value) {
        if (storages_ == nullptr) {
            return push(plain);
        }
        numbers_[held_.size()] = value;
        construct(0);
    }

    void push_text(std::string_view value) {
        if (storages_ == nullptr) {
            return push(plain);
        }
        texts_[held_.size()] = value;
        construct(0);
    }

    // An integer of up to eight bytes, as TorchScript writes and reads it.
    void push_long() {
        const std::uint64_t size = number(1);
        if (size > sizeof(std::uint64_t)) {
            throw Invalid("a number of it is longer than any that it can have");
        }
        push_number(number(size));
    }

    void push_global() {
        const std::string_view module = take_line();
        const std::string_view name = take_line();
        if (module.find('\0') != std::string_view::npos ||
            name.find('\0') != std::string_view::npos) {
            throw Invalid("a name of it is none");
        }
        if (globals_ != nullptr) {
            globals_->push_back(std::string(module) + "." + std::string(name));
        }
        push_text(name);
    }

    // ("storage", type, key, device, number of elements)
    void persistent() {
        need(1);
        if (storages_ == nullptr) {
            return construct(1);
        }
        const auto& parts = held_[stack_.back()];
        const auto type = parts.size() >= 5 ? texts_.find(parts[1]) : texts_.end();
        const auto key = parts.size() >= 5 ? texts_.find(parts[2]) : texts_.end();
        const auto count = parts.size() >= 5 ? numbers_.find(parts[4]) : numbers_.end();
        if (type == texts_.end() || key == texts_.end() || count == numbers_.end() ||
            count->second > max_elements) {
            throw Invalid("a storage of it is none");
        }
        storages_->push_back(
            {std::string(key->second), count->second * element_size(type->second)});
        construct(1);
    }

    void need(std::size_t count) const {
        if (stack_.size() < count + (marks_.empty() ? 0 : marks_.back())) {
            throw Invalid("an instruction of it has no operands");
        }
    }

    void push(Value value) { stack_.push_back(value); }

    Value pop() {
        const Value value = stack_.back();
        stack_.pop_back();
        return value;
    }

    // Makes a value that holds the topmost `count`, in their place.
    void construct(std::size_t count) {
        need(count);
        held_.emplace_back(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
        stack_.resize(stack_.size() - count);
        push(static_cast<Value>(held_.size() - 1));
    }

    // Moves the topmost `count` into the one below them.
    void put_into(std::size_t count) {
        need(count + 1);
        const Value container = stack_[stack_.size() - count - 1];
        for (; count > 0; --count) {
            const Value value = pop();
            if (container != plain && value != plain) {
                held_[container].push_back(value);
            }
        }
    }

    std::size_t since_mark() {
        if (marks_.empty()) {
            throw Invalid("an instruction of it has no operands");
        }
        const std::size_t count = stack_.size() - marks_.back();
        marks_.pop_back();
        return count;
    }

    void remember(std::uint64_t memo) {
        need(1);
        if (memo > most_memos_) {
            throw Invalid("it numbers more values than it can have");
        }
        if (memo >= memos_.size()) {
            memos_.resize(memo + 1, plain);
        }
        memos_[memo] = stack_.back();
    }

    void recall(std::uint64_t memo) {
        if (memo >= memos_.size()) {
            throw Invalid("it refers to a value that it does not have");
        }
        push(memos_[memo]);
    }

    bool step() {
        const char code = take(1).front();
        switch (code) {
            case '\x80': take(1); break;
            case '.': return false;
            case 'N':
            case '\x88':
            case '\x89': push(plain); break;
            case 'K': push_number(number(1)); break;
            case 'M': push_number(number(2)); break;
            case 'J': push_number(number(4)); break;
            case 'G': take(8), push(plain); break;
            case 'X': push_text(take(number(4))); break;
            case '\x8d': take(number(8)), push(plain); break;
            case '\x8a': push_long(); break;
            case 'c': push_global(); break;
            case ')':
            case ']':
            case '}': construct(0); break;
            case '(': marks_.push_back(stack_.size()); break;
            case 't':
            case 'l':
            case 'd': construct(since_mark()); break;
            case '\x85': construct(1); break;
            case '\x86': construct(2); break;
            case '\x87': construct(3); break;
            case 'R':
            case '\x81': construct(2); break;
            case 'a':
            case 'b': put_into(1); break;
            case 's': put_into(2); break;
            case 'e':
            case 'u': put_into(since_mark()); break;
            case 'Q': persistent(); break;
            case '0': need(1), pop(); break;
            case 'q': remember(number(1)); break;
            case 'r': remember(number(4)); break;
            case 'h': recall(number(1)); break;
            case 'j': recall(number(4)); break;
            default: throw Invalid("it has an instruction that no model has");
        }
        return true;
    }

    // The depth of nesting, computed without recursion.
    void measure(Value root) const {
        std::vector<std::size_t> depth(held_.size(), 0);  // 0: not seen; 1: being looked at
        struct Visit {
            Value value;
            std::size_t next = 0;
            std::size_t below = 1;
        };
        std::vector<Visit> way{{root}};
        depth[root] = 1;
        while (!way.empty()) {
            Visit& visit = way.back();
            if (visit.next < held_[visit.value].size()) {
                const Value child = held_[visit.value][visit.next++];
                if (depth[child] == 1) {
                    throw Invalid("a value of it holds itself");
                }
                if (depth[child] == 0) {
                    depth[child] = 1;
                    way.push_back({child});
                } else {
                    visit.below = std::max(visit.below, depth[child]);
                }
                continue;
            }
            const std::size_t found = visit.below + 1;
            depth[visit.value] = found;
            way.pop_back();
            if (!way.empty()) {
                way.back().below = std::max(way.back().below, found);
            }
            if (found > deepest_value) {
                throw Invalid("its values are nested more deeply than any sane ones");
            }
        }
    }

    std::string_view rest_;
    std::size_t most_memos_;
    std::vector<PickledStorage>* storages_;
    std::vector<std::string>* globals_;
    std::unordered_map<std::size_t, std::uint64_t> numbers_;
    std::unordered_map<std::size_t, std::string_view> texts_;
    std::vector<Value> stack_;
    std::vector<std::size_t> marks_;
    std::vector<Value> memos_;
    std::vector<std::vector<Value>> held_{{}};  // by value; the first is that of all plain ones
};

}  // namespace

std::optional<std::string> invalid_pickle(std::string_view data,
                                          std::vector<PickledStorage>* storages,
                                          std::vector<std::string>* globals) {
    try {
        Walk(data, storages, globals).run();
        return std::nullopt;
    } catch (const Invalid& problem) {
        return problem.what();
    }
}

}  // namespace twinkle::runtime
