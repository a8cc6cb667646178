// What tiles of AMX are loaded from next. It is asked for in parts, and these some lines at a time:
// more requests at once would keep the tiles waiting.
class NextLines {
public:
    // One of so many parts of the memory, asked for so often.
    NextLines(const char* data, int64_t bytes, int64_t part, int64_t parts, int64_t often)
        : at_(data + bytes * part / parts / line * line),
          end_(data + bytes * (part + 1) / parts / line * line),
          each_((end_ - at_ + often - 1) / often) {}

    void ask() {
        const char* const to = end_ - at_ < each_ ? end_ : at_ + each_;
        for (; at_ < to; at_ += line) __builtin_prefetch(at_, 0, 2);
    }

private:
    static constexpr int64_t line = 64;

    const char *at_, *end_;
    int64_t each_;
};
