#include "runtime/inspect/saved_code.h"

#include "base/text.h"
#include "python/parser.h"
#include "runtime/graph/class_name.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

namespace twinkle::runtime {

namespace py = twinkle::python;

namespace {

constexpr std::size_t longest_signature = 2000;
constexpr std::size_t longest_name = 500;

bool in_identifier(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Splits the text into dotted names, skipping strings and comments. It need not be Python that a
// parser accepts.
class NameScanner {
public:
    explicit NameScanner(std::string_view text) : text_(text) {}

    // The next chain of names ("ops.ns.op"), or nothing at the end.
    bool next(std::string_view& name) {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '"' || c == '\'') {
                skip_string(c);
            } else if (c == '#') {
                at_ = std::min(text_.find('\n', at_), text_.size());
            } else if (in_identifier(c) || c == '.') {
                name = take_chain();
                return true;
            } else {
                ++at_;
            }
        }
        return false;
    }

    bool is_called() const { return at_ < text_.size() && text_[at_] == '('; }

private:
    void skip_string(char quote) {
        for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_) {
            at_ += text_[at_] == '\\' ? 1 : 0;
        }
        at_ = std::min(at_ + 1, text_.size());
    }

    std::string_view take_chain() {
        const auto begin = at_;
        while (at_ < text_.size() && (in_identifier(text_[at_]) || text_[at_] == '.')) {
            ++at_;
        }
        return text_.substr(begin, at_ - begin);
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

// Splits "ops.ns.op" at its first dot.
bool split_once(std::string_view text, std::string_view& before, std::string_view& after) {
    const auto dot = text.find('.');
    if (dot == std::string_view::npos) {
        return false;
    }
    before = text.substr(0, dot);
    after = text.substr(dot + 1);
    return !before.empty() && !after.empty();
}

// "ns.op" of "ops.ns.op.default"; nothing if it is no such name, or too long.
std::optional<std::pair<std::string, std::string>> two_parts(std::string_view chain) {
    std::string_view before, after;
    if (!split_once(chain, before, after)) {
        return std::nullopt;
    }
    after = after.substr(0, after.find('.'));
    if (after.empty() || before.size() + after.size() > longest_name) {
        return std::nullopt;
    }
    return std::pair(std::string(before), std::string(after));
}

void scan(std::string_view text, SavedCode& code) {
    constexpr std::string_view ops = "ops.";
    constexpr std::string_view aten = "torch.";
    constexpr std::string_view classes = "__torch__.torch.classes.";
    constexpr std::string_view own = "__torch__.";
    NameScanner scanner(text);
    std::string_view name;
    while (scanner.next(name)) {
        if (name.starts_with(ops)) {
            if (const auto parts = two_parts(name.substr(ops.size()))) {
                ++code.operators[parts->first + "::" + parts->second];
            }
        } else if (name.starts_with(classes)) {
            if (const auto parts = two_parts(name.substr(classes.size()))) {
                ++code.foreign_classes[parts->first + "." + parts->second];
            }
        } else if (name.starts_with(own) && name.size() <= longest_name) {
            ++code.called_functions[unmangled(name)];
        } else if (name.starts_with(aten) && scanner.is_called()) {
            const auto op = name.substr(aten.size());
            if (!op.empty() && op.size() <= longest_name &&
                op.find('.') == std::string_view::npos) {
                ++code.operators["aten::" + std::string(op)];
            }
        }
    }
}

// "code/__torch__/pkg/mod.py" → "__torch__.pkg.mod"
std::string module_of(std::string path) {
    path = path.substr(std::string_view("code/").size());
    path.resize(path.size() - std::string_view(".py").size());
    std::replace(path.begin(), path.end(), '/', '.');
    return path;
}

std::string text_of(std::string_view source, const py::Node* node) {
    if (node == nullptr) {
        return "";
    }
    std::string text;
    for (const char c : source.substr(node->span.begin, node->span.end - node->span.begin)) {
        const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
        if (!space) {
            text += c;
        } else if (!text.empty() && text.back() != ' ' && text.back() != '[') {
            text += ' ';
        }
    }
    return without_mangling(text.substr(0, longest_signature));
}

// TorchScript annotates self with the class itself.
std::string signature_of(std::string_view source, const py::FunctionDef& function) {
    std::vector<std::string> parameters;
    const auto add = [&](const py::Arg& arg, const py::Expr* value) {
        const bool self = parameters.empty() && arg.arg == "self";
        std::string text = arg.arg;
        if (arg.annotation && !self) {
            text += ": " + text_of(source, arg.annotation.get());
        }
        if (value != nullptr) {
            text += " = " + text_of(source, value);
        }
        parameters.push_back(text);
    };
    const auto& args = function.args;
    const std::size_t required =
        args.args.size() - std::min(args.defaults.size(), args.args.size());
    for (std::size_t i = 0; i < args.args.size(); ++i) {
        add(args.args[i], i < required ? nullptr : args.defaults[i - required].get());
    }
    for (std::size_t i = 0; i < args.kwonlyargs.size(); ++i) {
        add(args.kwonlyargs[i], i < args.kw_defaults.size() ? args.kw_defaults[i].get() : nullptr);
    }
    std::string text = function.name + "(" + base::join(parameters, ", ") + ")";
    if (function.returns) {
        text += " -> " + text_of(source, function.returns.get());
    }
    return base::printable(text.substr(0, longest_signature));
}

class DefinitionReader {
public:
    DefinitionReader(const CodeFile& file, SavedCode& code)
        : source_(file.text), module_(module_of(file.path)), code_(code) {}

    void read(const py::Module& tree) {
        for (const py::StmtPtr& statement : tree.body) {
            if (const auto* type = py::as<py::ClassDef>(*statement)) {
                read_class(*type);
            } else if (const auto* function = py::as<py::FunctionDef>(*statement)) {
                code_.functions.emplace(unmangled(module_ + "." + function->name),
                                        signature_of(source_, *function));
            }
        }
    }

private:
    void read_class(const py::ClassDef& type) {
        SavedClass& saved = code_.classes[unmangled(module_ + "." + type.name)];
        if (saved.count++ > 0) {
            return;
        }
        saved.base = type.bases.empty() ? "" : text_of(source_, type.bases.front().get());
        for (const py::StmtPtr& statement : type.body) {
            if (const auto* method = py::as<py::FunctionDef>(*statement)) {
                saved.methods.push_back({method->name, signature_of(source_, *method)});
            } else if (const auto* attribute = py::as<py::AnnAssign>(*statement)) {
                std::string text = text_of(source_, attribute->annotation.get());
                if (attribute->value) {
                    text += " = " + text_of(source_, attribute->value.get());
                }
                saved.attributes[text_of(source_, attribute->target.get())] = base::printable(text);
            }
        }
    }

    std::string_view source_;
    std::string module_;
    SavedCode& code_;
};

}  // namespace

SavedCode read_saved_code(const std::vector<CodeFile>& files) {
    SavedCode code;
    for (const CodeFile& file : files) {
        scan(file.text, code);
        if (const auto tree = py::parse_module(file.text, file.path)) {
            DefinitionReader(file, code).read(**tree);
        } else {
            code.unreadable.push_back(
                base::printable(tree.error().where() + ": " + tree.error().message));
        }
    }
    // A name that is called may also be a class; only functions stay.
    std::erase_if(code.called_functions,
                  [&](const auto& entry) { return !code.functions.contains(entry.first); });
    return code;
}

}  // namespace twinkle::runtime
