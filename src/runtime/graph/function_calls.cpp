#include "runtime/graph/function_calls.h"
#include "runtime/graph/format.h"

#include "runtime/graph/class_name.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/graph/sites.h"

#include <deque>
#include <map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::string_view own_prefix = "twinkle_functions.";
constexpr std::string_view inlined_prefix = "inlined_";

// What a function is called in the model, or was called that another stands for now.
struct Callee {
    std::string function;
    bool replaced = false;
    std::optional<InlinedPlace> inlined;
};

// "inlined_2_0_7_7_1.my_pkg.ops.add"
std::optional<InlinedPlace> take_place(std::string& name) {
    InlinedPlace place;
    unsigned long long given = 0;
    int length = 0;
    if (!name.starts_with(inlined_prefix) ||
        std::sscanf(name.c_str() + inlined_prefix.size(), "%9zu_%9zu_%9zu_%9zu_%18llu.%n",
                    &place.number, &place.run, &place.begin, &place.count, &given, &length) != 5 ||
        length == 0) {
        return std::nullopt;
    }
    place.given = given;
    name.erase(0, inlined_prefix.size() + static_cast<std::size_t>(length));
    return place;
}

std::optional<Callee> callee_of(const jit::Node* call) {
    const auto type = call->input(0)->type()->cast<c10::FunctionType>();
    if (type == nullptr) {
        return std::nullopt;
    }
    Callee callee{unmangled(type->function()->qualname().qualifiedName()), false, std::nullopt};
    if (callee.function.starts_with(own_prefix)) {
        callee.function.erase(0, own_prefix.size());
        callee.replaced = true;
        callee.inlined = take_place(callee.function);
    }
    return callee;
}

constexpr std::string_view pattern_prefix = "twinkle_patterns.";

// What stands for the second place of a pattern in a method is called "twinkle_patterns._2.norm":
// places that are left alone are counted, too.
std::string take_number(std::string& function) {
    const std::size_t begin = pattern_prefix.size();
    if (!function.starts_with(pattern_prefix) || function.compare(begin, 1, "_") != 0) {
        return "";
    }
    const auto end = function.find('.', begin);
    if (end == std::string::npos) {
        return "";
    }
    std::string number = "#" + function.substr(begin + 1, end - begin - 1);
    function.erase(begin, end + 1 - begin);
    return number;
}

class Finder {
public:
    std::vector<FunctionCall> found;
    FunctionUses uses;

    void instance(const Instance& one) {
        for (const auto& list :
             {one.module.type()->methods(), one.module.type()->getForwardPreHooks(),
              one.module.type()->getForwardHooks()}) {
            for (jit::Function* method : list) {
                if (!is_of_a_kernel(*method)) {
                    where_ = (one.path.empty() ? "" : one.path + ".") + method->name();
                    path_ = one.path;
                    in_function_ = false;
                    caller(*method, one.module);
                }
            }
        }
    }

    void functions(const jit::Module& root) {
        while (!pending_.empty()) {
            jit::Function* next = pending_.front();
            pending_.pop_front();
            // Two functions may have one name but for the mangling.
            where_ = next->qualname().qualifiedName();
            where_ = where_.starts_with("__torch__.") ? where_.substr(10) : where_;
            path_.clear();
            in_function_ = true;
            caller(*next, root);
        }
    }

private:
    void caller(jit::Function& function, const jit::Module& module) {
        auto* compiled = jit::tryToGraphFunction(function);
        if (compiled == nullptr) {
            return;
        }
        caller_ = &function;
        block(compiled->graph()->block(), module);
    }

    void block(jit::Block* block, const jit::Module& module) {
        for (jit::Node* node : block->nodes()) {
            if (node->kind() == c10::prim::CallFunction) {
                call(node, module);
            } else if (node->kind() == c10::prim::CallMethod) {
                method_of_class(node);
            }
            for (jit::Block* inner : node->blocks()) {
                this->block(inner, module);
            }
        }
    }

    void call(jit::Node* node, const jit::Module& module) {
        auto callee = callee_of(node);
        if (!callee) {
            return;
        }
        FunctionCall one;
        one.function = std::move(callee->function);
        one.replaced = callee->replaced;
        one.inlined = callee->inlined;
        const std::string number = take_number(one.function);
        const std::string place = one.function + number;
        one.site = site_of_call(
            where_, place, one.inlined ? one.inlined->number : ++counts_[where_ + ":" + place]);
        if (!one.replaced) {
            later(node->input(0)->type()->expectRef<c10::FunctionType>().function(), one.site);
        }
        one.path = path_;
        one.instance = module;
        one.caller = caller_;
        one.node = node;
        one.in_function = in_function_;
        found.push_back(std::move(one));
    }

    // Follows methods of classes that are not modules, as if they were functions.
    void method_of_class(const jit::Node* node) {
        const auto type = node->input(0)->type()->cast<c10::ClassType>();
        if (type != nullptr && !type->is_module()) {
            if (jit::Function* method = type->findMethod(node->s(c10::attr::name))) {
                later(method, "");
            }
        }
    }

    void later(jit::Function* function, const std::string& site) {
        auto& all = uses.of[function];
        if (all.empty()) {
            uses.functions.push_back(function);
            pending_.push_back(function);
        }
        all.push_back(
            {site, path_, in_function_ ? "" : caller_->name(), in_function_ ? caller_ : nullptr});
    }

    std::string where_, path_;
    bool in_function_ = false;
    jit::Function* caller_ = nullptr;
    std::map<std::string, std::size_t> counts_;
    std::deque<jit::Function*> pending_;
};

}  // namespace

jit::Function& FunctionCall::callee() const {
    return *node->input(0)->type()->expectRef<c10::FunctionType>().function();
}

std::vector<FunctionCall> function_calls(const jit::Module& root, FunctionUses* uses) {
    Finder finder;
    for (const Instance& instance : instances_of(root)) {
        finder.instance(instance);
    }
    finder.functions(root);
    if (uses != nullptr) {
        *uses = std::move(finder.uses);
    }
    return std::move(finder.found);
}

c10::QualifiedName name_in_place_of(const jit::Function& function) {
    return c10::QualifiedName("__torch__." + std::string(own_prefix) +
                              unmangled(function.qualname().qualifiedName()));
}

c10::QualifiedName name_in_place_of(const std::string& function, const InlinedPlace& place) {
    return c10::QualifiedName(fmt::format("__torch__.{}{}{}_{}_{}_{}_{}.{}", own_prefix,
                                          inlined_prefix, place.number, place.run, place.begin,
                                          place.count, place.given, function));
}

std::string site_of_call(const std::string& caller, const std::string& function,
                         std::size_t number) {
    const std::string first = caller + ":" + function;
    return number > 1 ? fmt::format("{}#{}", first, number) : first;
}

bool stands_for(const jit::Node* node, const std::string& function) {
    if (node->kind() != c10::prim::CallFunction) {
        return false;
    }
    const auto callee = callee_of(node);
    return callee && callee->replaced && callee->function == function;
}

}  // namespace twinkle::runtime
