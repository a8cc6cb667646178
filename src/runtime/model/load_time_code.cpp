#include "runtime/model/load_time_code.h"

#include "runtime/graph/class_name.h"
#include "runtime/model/io_operators.h"

#include <torch/csrc/jit/frontend/lexer.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/tree_views.h>

#include <map>
#include <set>
#include <stdexcept>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// A function, a method, or an expression that LibTorch evaluates.
struct Definition {
    std::string name;   // "__setstate__"; empty: an expression
    std::string where;  // "__setstate__ of pkg.Table"
    jit::TreeRef tree;
};

// All names that code mentions. An ambiguous mention is recorded in every possible way.
struct Mentions {
    std::set<std::string> names;      // behind a dot, or a text of getattr
    std::set<std::string> operators;  // "aten::add" for torch.add
    std::set<std::string> classes;    // "quantized.LinearPackedParamsBase"
    bool hidden = false;              // torch, ops or getattr as values: any name could follow
    bool computes = false;            // a call or a comprehension
};

class Reader {
public:
    explicit Reader(Mentions& found) : found_(found) {}

    // Iterative: nesting has one limit, the length of a chain of operators another, and both
    // together may be too deep for recursion.
    void read(const jit::TreeRef& root) {
        work_.push_back(root);
        while (!work_.empty()) {
            const jit::TreeRef tree = std::move(work_.back());
            work_.pop_back();
            step(tree);
        }
    }

private:
    void step(const jit::TreeRef& tree) {
        switch (tree->kind()) {
            case '.': return select(tree);
            case jit::TK_VAR: return variable(tree);
            case jit::TK_APPLY: return call(tree);
            case jit::TK_LIST_COMP:
            case jit::TK_DICT_COMP: found_.computes = true; break;
            default: break;
        }
        push_parts(tree);
    }

    void push_parts(const jit::TreeRef& tree) {
        work_.insert(work_.end(), tree->trees().begin(), tree->trees().end());
    }

    static std::string name_of(const jit::TreeRef& variable) {
        return jit::Var(variable).name().name();
    }

    void variable(const jit::TreeRef& tree) {
        static const std::set<std::string> doors = {"torch", "ops", "__torch__", "getattr"};
        found_.hidden = found_.hidden || doors.contains(name_of(tree));
    }

    void call(const jit::TreeRef& tree) {
        found_.computes = true;
        const jit::TreeRef& callee = tree->tree(0);
        if (callee->kind() != jit::TK_VAR) {
            return push_parts(tree);
        }
        const std::string name = name_of(callee);
        found_.operators.insert("prim::" + name);  // rpc_async(…)
        for (std::size_t i = 1; i < tree->trees().size(); ++i) {
            if (name == "getattr") {
                texts_of(tree->tree(i));
            }
            work_.push_back(tree->tree(i));
        }
        if (name != "getattr") {
            variable(callee);
        }
    }

    void texts_of(const jit::TreeRef& arguments) {
        for (const jit::TreeRef& argument : arguments->trees()) {
            if (argument->kind() == jit::TK_STRINGLITERAL) {
                found_.names.insert(jit::StringLiteral(argument).text());
            }
        }
    }

    void select(const jit::TreeRef& tree) {
        std::vector<std::string> parts;
        jit::TreeRef base = tree;
        for (; base->kind() == '.'; base = base->tree(0)) {
            parts.insert(parts.begin(), jit::Ident(base->tree(1)).name());
        }
        if (base->kind() != jit::TK_VAR) {
            work_.push_back(base);
        } else {
            from(name_of(base), parts);
        }
        found_.names.insert(parts.begin(), parts.end());
    }

    void from(const std::string& root, const std::vector<std::string>& parts) {
        if (root == "torch") {
            found_.operators.insert("aten::" + parts[0]);
        } else if (root == "ops" && parts.size() >= 2) {
            found_.operators.insert(parts[0] + "::" + parts[1]);
        } else if (root == "ops" || root == "getattr") {
            found_.hidden = true;
        } else if (root == "__torch__" && parts.size() >= 3 && parts[0] == "torch" &&
                   parts[1] == "classes") {
            found_.classes.insert(parts[2] + "." + (parts.size() > 3 ? parts[3] : ""));
        }
    }

    Mentions& found_;
    std::vector<jit::TreeRef> work_;
};

Mentions mentions_of(const jit::TreeRef& tree) {
    Mentions found;
    Reader(found).read(tree);
    return found;
}

bool is_special(const std::string& name) {
    return name.starts_with("__") && name.ends_with("__");
}

class Code {
public:
    void read(const SavedSource& source);
    LoadTimeCode examine() const;

private:
    void add_function(const jit::Def& function, const std::string& of);
    void add_class(const jit::ClassDef& type, const std::string& module);
    void add_expression(const jit::TreeRef& expression, const std::string& where);
    std::vector<const Definition*> reached() const;

    std::multimap<std::string, Definition> functions_;  // by name
    std::vector<Definition> expressions_;
    std::set<std::string> hooks_;
    bool runs_ = false;  // there is __setstate__, __getstate__, or an expression that calls
};

// Skips what LibTorch's importer skips in a file: an old version number, imports, definitions.
void skip_imports(jit::Lexer& lexer) {
    while (lexer.nextIf(jit::TK_IMPORT)) {
        while (lexer.cur().kind != jit::TK_NEWLINE) {
            if (lexer.cur().kind == jit::TK_EOF) {
                throw std::runtime_error("an import without an end");
            }
            lexer.next();
        }
        lexer.expect(jit::TK_NEWLINE);
    }
}

void skip_version(jit::Lexer& lexer) {
    if (lexer.cur().kind == jit::TK_IDENT && lexer.cur().text() == "op_version_set") {
        lexer.next();
        lexer.expect('=');
        lexer.expect(jit::TK_NUMBER);
        lexer.expect(jit::TK_NEWLINE);
    }
}

void Code::read(const SavedSource& source) {
    jit::Parser parser(std::make_shared<jit::Source>(std::string(source.text)));
    jit::Lexer& lexer = parser.lexer();
    skip_version(lexer);
    for (skip_imports(lexer); lexer.cur().kind != jit::TK_EOF; skip_imports(lexer)) {
        if (lexer.cur().kind == jit::TK_CLASS_DEF) {
            add_class(jit::ClassDef(parser.parseClass()), source.module);
        } else if (lexer.cur().kind == jit::TK_DEF) {
            add_function(jit::Def(parser.parseFunction(/*is_method=*/false)), source.module);
        } else {
            throw std::runtime_error("what is no definition");
        }
    }
}

void Code::add_function(const jit::Def& function, const std::string& of) {
    const std::string name = function.name().name();
    const std::string where = name + " of " + unmangled(of);
    for (const jit::Param& parameter : function.decl().params()) {
        if (parameter.defaultValue().present()) {
            add_expression(parameter.defaultValue().get().tree(), "a default of " + where);
        }
    }
    functions_.emplace(name, Definition{name, where, function.tree()});
}

void Code::add_class(const jit::ClassDef& type, const std::string& module) {
    const std::string name = module + "." + type.name().name();
    for (const jit::Stmt& statement : type.body()) {
        if (statement.kind() == jit::TK_DEF) {
            const jit::Def method(statement.tree());
            const std::string method_name = method.name().name();
            runs_ = runs_ || method_name == "__setstate__" || method_name == "__getstate__";
            add_function(method, name);
        } else if (statement.kind() == jit::TK_ASSIGN) {
            const jit::Assign assign(statement.tree());
            const bool is_type = assign.lhs_list()[0].kind() == jit::TK_SUBSCRIPT;
            if (assign.rhs().present() && !is_type) {
                add_expression(assign.rhs().get().tree(), "a constant of " + unmangled(name));
            }
        }
    }
}

// The hooks of a module are a list of strings.
void Code::add_expression(const jit::TreeRef& expression, const std::string& where) {
    expressions_.push_back({"", where, expression});
    runs_ = runs_ || mentions_of(expression).computes;
    std::vector<jit::TreeRef> work{expression};
    while (!work.empty()) {
        const jit::TreeRef tree = std::move(work.back());
        work.pop_back();
        if (tree->kind() == jit::TK_STRINGLITERAL) {
            hooks_.insert(jit::StringLiteral(tree).text());
        }
        work.insert(work.end(), tree->trees().begin(), tree->trees().end());
    }
}

// Operators call special methods, and calls of a module its hooks: neither names them.
std::vector<const Definition*> Code::reached() const {
    std::vector<const Definition*> reached;
    if (!runs_) {
        return reached;
    }
    std::set<std::string> names = hooks_;
    for (const auto& [name, definition] : functions_) {
        if (is_special(name)) {
            names.insert(name);
        }
    }
    for (const Definition& expression : expressions_) {
        reached.push_back(&expression);
        names.merge(mentions_of(expression.tree).names);
    }
    std::vector<std::string> work(names.begin(), names.end());
    while (!work.empty()) {
        const std::string name = std::move(work.back());
        work.pop_back();
        for (auto [at, end] = functions_.equal_range(name); at != end; ++at) {
            reached.push_back(&at->second);
            for (const std::string& called : mentions_of(at->second.tree).names) {
                if (names.insert(called).second) {
                    work.push_back(called);
                }
            }
        }
    }
    return reached;
}

std::optional<std::string> problem_of(const Mentions& mentions) {
    if (mentions.hidden) {
        return "hides which operators it calls";
    }
    for (const std::string& name : mentions.operators) {
        if (const auto why = unfit_for_loading(name)) {
            return "calls " + name + ", " + *why;
        }
    }
    for (const std::string& name : mentions.names) {
        if (const auto why = unfit_for_loading("aten::" + name)) {
            return "calls aten::" + name + ", " + *why;
        }
    }
    for (const std::string& name : mentions.classes) {
        if (const auto why = class_unfit_for_loading(name)) {
            return "uses the class torch.classes." + name + ", " + *why;
        }
    }
    return std::nullopt;
}

LoadTimeCode Code::examine() const {
    for (const Definition* definition : reached()) {
        if (const auto problem = problem_of(mentions_of(definition->tree))) {
            return {.runs = runs_, .problem = definition->where + " " + *problem};
        }
    }
    return {.runs = runs_, .problem = std::nullopt};
}

}  // namespace

LoadTimeCode load_time_code(const std::vector<SavedSource>& sources) {
    Code code;
    for (const SavedSource& source : sources) {
        code.read(source);
    }
    return code.examine();
}

}  // namespace twinkle::runtime
