#include "dump.h"

#include "python/fields.h"
#include "python/unicode.h"

#include <bit>
#include <cstdio>
#include <string_view>

namespace twinkle::python {
namespace {

// clang-format off
constexpr std::string_view kContexts[] = {"Load", "Store", "Del"};
constexpr std::string_view kBoolOperators[] = {"And", "Or"};
constexpr std::string_view kOperators[] = {"Add", "Sub", "Mult", "MatMult", "Div", "Mod", "Pow",
                                           "LShift", "RShift", "BitOr", "BitXor", "BitAnd",
                                           "FloorDiv"};
constexpr std::string_view kUnaryOperators[] = {"Invert", "Not", "UAdd", "USub"};
constexpr std::string_view kCompareOperators[] = {"Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "Is",
                                                  "IsNot", "In", "NotIn"};
// clang-format on

template <class E>
std::size_t index(E value) {
    return static_cast<std::size_t>(value);
}
std::string_view operator_name(ExprContext v) {
    return kContexts[index(v)];
}
std::string_view operator_name(BoolOperator v) {
    return kBoolOperators[index(v)];
}
std::string_view operator_name(Operator v) {
    return kOperators[index(v)];
}
std::string_view operator_name(UnaryOperator v) {
    return kUnaryOperators[index(v)];
}
std::string_view operator_name(CompareOperator v) {
    return kCompareOperators[index(v)];
}

bool has_place(NodeKind kind) {
    switch (kind) {
        case NodeKind::Module:
        case NodeKind::Comprehension:
        case NodeKind::Arguments:
        case NodeKind::WithItem:
        case NodeKind::MatchCase: return false;
        default: return true;
    }
}

class Dumper {
public:
    explicit Dumper(DumpOptions options) : options_(options) {}

    std::string take() { return std::move(out_); }

    void node(const Node& node) {
        out_ += "[\"";
        out_ += kind_name(node.kind);
        out_ += '"';
        if (options_.spans && has_place(node.kind) && fstring_depth_ == 0) {
            out_ += ',' + std::to_string(node.span.begin) + ',' + std::to_string(node.span.end);
        }
        const bool hide = node.kind == NodeKind::JoinedStr && !options_.fstring_spans;
        fstring_depth_ += hide;
        visit(node, [this](const auto& typed) {
            fields(typed, [this](const auto& field) {
                out_ += ',';
                value(field);
            });
        });
        fstring_depth_ -= hide;
        out_ += ']';
    }

private:
    template <class T>
    void value(const T& field) {
        if constexpr (std::is_base_of_v<Node, T>) {
            node(field);
        } else if constexpr (std::is_enum_v<T>) {
            out_ += '"';
            out_ += operator_name(field);
            out_ += '"';
        } else if constexpr (std::is_integral_v<T>) {
            out_ += std::to_string(static_cast<int>(field));
        } else {
            identifier(field);
        }
    }
    template <class T>
    void value(const std::unique_ptr<T>& child) {
        if (child) {
            node(*child);
        } else {
            out_ += "null";
        }
    }
    template <class T>
    void value(const std::vector<T>& list) {
        out_ += '[';
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (i > 0) out_ += ',';
            value(list[i]);
        }
        out_ += ']';
    }
    void value(const ConstantValue& constant) {
        std::visit([this](const auto& held) { literal(held); }, constant);
    }

    void identifier(std::string_view name) {
        if (name.empty()) {
            out_ += "null";
        } else {
            string(name);
        }
    }

    void literal(None) { out_ += "null"; }
    void literal(bool v) { out_ += v ? "true" : "false"; }
    void literal(std::int64_t v) { out_ += std::to_string(v); }
    void literal(const BigInteger& v) { out_ += "{\"big\":\"" + v.text + "\"}"; }
    void literal(double v) { out_ += "{\"float\":\"" + bits(v) + "\"}"; }
    void literal(Imaginary v) { out_ += "{\"imag\":\"" + bits(v.value) + "\"}"; }
    void literal(const std::string& v) { string(v); }
    void literal(const Bytes& v) {
        out_ += "{\"bytes\":\"";
        for (const char c : v.value) hex(static_cast<unsigned char>(c), 2);
        out_ += "\"}";
    }
    void literal(Ellipsis) { out_ += "{\"ellipsis\":1}"; }

    static std::string bits(double v) {
        char text[17];
        std::snprintf(text, sizeof text, "%016llx",
                      static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(v)));
        return text;
    }

    void hex(std::uint32_t v, int digits) {
        for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
            out_ += "0123456789abcdef"[v >> shift & 0xF];
        }
    }

    // As Python's json.dumps writes it.
    void string(std::string_view text) {
        out_ += '"';
        for (std::size_t i = 0; i < text.size();) {
            const CodePoint code = decode_utf8(text, i);
            i += code.size;
            character(code.value);
        }
        out_ += '"';
    }

    void character(std::uint32_t code) {
        switch (code) {
            case '"': out_ += "\\\""; return;
            case '\\': out_ += "\\\\"; return;
            case '\n': out_ += "\\n"; return;
            case '\r': out_ += "\\r"; return;
            case '\t': out_ += "\\t"; return;
            case '\b': out_ += "\\b"; return;
            case '\f': out_ += "\\f"; return;
            default: break;
        }
        if (code >= 0x20 && code < 0x7F) {
            out_ += static_cast<char>(code);
        } else if (code >= 0x10000) {
            unicode(0xD800 + ((code - 0x10000) >> 10));
            unicode(0xDC00 + ((code - 0x10000) & 0x3FF));
        } else {
            unicode(code);
        }
    }

    void unicode(std::uint32_t unit) {
        out_ += "\\u";
        hex(unit, 4);
    }

    DumpOptions options_;
    std::string out_;
    int fstring_depth_ = 0;
};

}  // namespace

std::string dump(const Node& node, DumpOptions options) {
    Dumper dumper(options);
    dumper.node(node);
    return dumper.take();
}

}  // namespace twinkle::python
