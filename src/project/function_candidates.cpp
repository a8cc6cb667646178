#include "project/function_candidates.h"
#include "project/modes.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "kernel/layers.h"
#include "kernel/verdict.h"
#include "python/parser.h"
#include "twinkle/error.h"

namespace twinkle::project {
namespace {

constexpr std::string_view pack_namespace = "twinkle_pack";

class FunctionAdder {
public:
    FunctionAdder(const Manifest& manifest, const LayerRules& rules, KernelLocator& locator,
                  BuildChooser& chooser, Mapping& mapping)
        : manifest_(manifest),
          rules_(rules),
          locator_(locator),
          chooser_(chooser),
          mapping_(mapping) {}

    void add(const FunctionBinding& binding) {
        put(binding, resolve(binding, "function", binding.target_module + "." + binding.name));
    }

    void add(const PatternBinding& binding) {
        const FunctionBinding& replacement = binding.replacement;
        MappedPattern pattern{replacement.name, "", "", binding.formulas, {}, binding.preset};
        pattern.source =
            base::read_file(binding.formula_file, "Python file", python::kMaxSourceSize);
        pattern.file = binding.formula_file.filename().string();
        pattern.candidates = resolve(replacement, "pattern", replacement.name);
        // Candidates for several devices or modes are one pattern, if their formulas are the same.
        for (MappedPattern& other : mapping_.patterns) {
            if (other.name == pattern.name && other.source == pattern.source &&
                other.formulas == pattern.formulas) {
                std::move(pattern.candidates.begin(), pattern.candidates.end(),
                          std::back_inserter(other.candidates));
                return;
            }
        }
        mapping_.patterns.push_back(std::move(pattern));
    }

private:
    std::vector<FunctionCandidate> resolve(const FunctionBinding& binding, const std::string& kind,
                                           const std::string& name) {
        decision_ = {kind + " " + name, std::nullopt, "", {}};
        doubts_.clear();
        std::vector<FunctionCandidate> found;
        if (devices_of(binding)) {
            found = !binding.op.empty()             ? of_operator(binding)
                    : !binding.source_file.empty()  ? of_source(binding)
                    : !binding.package_file.empty() ? of_package(binding)
                                                    : of_kernel(binding, locator_.locate(binding));
        }
        if (found.empty() && rules_.strict) {
            throw Error(ErrorCode::not_found,
                        {.what = "the " + kind + " " + name + " has no kernel on the target (" +
                                 rules_.target.text() + ")",
                         .where = binding.where,
                         .why = rejections_text(decision_),
                         .hint = "leave --strict out to go on without it"});
        }
        decision_.because = found.empty()
                                ? "nothing fits the target: " + rejections_text(decision_)
                                : "bound in " + file_of_place(binding.where) + decision_.because;
        for (const std::string& doubt : doubts_) {
            decision_.because += "; " + doubt + ", so that the original stays";
        }
        mapping_.decisions.push_back(std::move(decision_));
        return found;
    }

    // The devices of the target that the binding is for.
    bool devices_of(const FunctionBinding& binding) {
        devices_ = rules_.target.devices();
        if (!binding.device.empty()) {
            const bool there =
                std::find(devices_.begin(), devices_.end(), binding.device) != devices_.end();
            devices_.clear();
            if (there) {
                devices_ = {binding.device};
            } else {
                decision_.rejected.push_back({binding.device, "the target has no such device"});
            }
        }
        return !devices_.empty();
    }

    static FunctionCandidate candidate(const FunctionBinding& binding) {
        FunctionCandidate one;
        one.device = binding.device.empty() ? "any" : binding.device;
        one.mode = binding.mode;
        one.can_torch_compile = true;  // nothing says that it could not
        return one;
    }

    void chosen(const std::string& what, const FunctionCandidate& one) {
        add_chosen(decision_, what, one.device, one.mode);
    }

    // Whether it can be used without Python, by the judgement that `twinkle inspect` shows; which
    // types a model calls it with may still decide.
    void note_verdict(const std::string& what, const kernel::Verdict& verdict,
                      const FunctionBinding& binding) {
        if (verdict.usable != kernel::Usability::needs_python) {
            return;
        }
        const std::string text = kernel::verdict_text(verdict);
        if (rules_.strict) {
            throw Error(ErrorCode::refused, {.what = what + " cannot be used without Python",
                                             .where = binding.where,
                                             .why = text,
                                             .hint = "leave --strict out to go on without it"});
        }
        if (std::find(doubts_.begin(), doubts_.end(), what + " " + text) == doubts_.end()) {
            doubts_.push_back(what + " " + text);
        }
    }

    // Takes over the flags; false, with the rejection noted, where they exclude what it is bound
    // for.
    template <typename Source>
    bool take_flags(const std::string& what, const Source& source, const FunctionBinding& binding,
                    FunctionCandidate& one) {
        one.has_backward = source.has_backward;
        one.can_torch_compile = source.can_torch_compile;
        const char* flag =
            excluding_flag(one.mode, rules_.mode, one.has_backward, one.can_torch_compile);
        if (flag == nullptr) {
            return true;
        }
        const std::string why =
            std::string(flag) + " is false at " + source.file + ":" + std::to_string(source.line);
        if (rules_.strict) {
            throw Error(ErrorCode::malformed,
                        {.what = what + " is bound for " + binding.mode + ", which it excludes",
                         .where = binding.where,
                         .why = why,
                         .hint = "bind it for another mode"});
        }
        decision_.rejected.push_back(
            {what, "it is bound for " + binding.mode + ", which it excludes: " + why});
        return false;
    }

    std::vector<FunctionCandidate> of_source(const FunctionBinding& binding) {
        FunctionCandidate one = candidate(binding);
        one.source = base::read_file(binding.source_file, "Python file", python::kMaxSourceSize);
        one.file = binding.source_file.filename().string();
        one.function = binding.source_function;
        const std::string what = one.file + ": " + one.function;
        const auto found = kernel::read_named({{one.file, one.source}}, one.file, one.function);
        bool served = false;
        if (found.function) {
            served = take_flags(what, *found.function, binding, one);
            note_verdict(what, kernel::judge(found.function->usage, {}), binding);
        } else if (found.layer) {
            served = take_flags(what, *found.layer, binding, one);
            note_verdict(what, kernel::judge(*found.layer, {}), binding);
        } else {
            not_in_file(binding, found);
        }
        if (!served) {
            return {};
        }
        chosen(what, one);
        return {one};
    }

    [[noreturn]] static void not_in_file(const FunctionBinding& binding,
                                         const kernel::NamedSource& found) {
        const std::string file = base::display_path(binding.source_file);
        if (!found.problems.empty()) {
            const kernel::Problem& problem = found.problems.front();
            throw Error(ErrorCode::malformed,
                        {.what = "the Python file of a function cannot be read",
                         .where = file + ":" + std::to_string(problem.line),
                         .why = base::printable(problem.text),
                         .hint = "it is named at " + binding.where});
        }
        std::vector<std::string> names;
        for (const std::string& name : found.names) {
            names.push_back(base::printable(name));
        }
        throw Error(
            ErrorCode::not_found,
            {.what = "there is no function or layer " + binding.source_function + " in " + file,
             .where = binding.where,
             .why = names.empty() ? "it has none" : "there are: " + base::join(names, ", "),
             .hint = base::suggestion(binding.source_function, names)});
    }

    // One candidate per device with a build; `each` completes it from the build, if that serves.
    template <typename Each>
    std::vector<FunctionCandidate> per_device(const FunctionBinding& binding,
                                              const KernelSource& source, const Each& each) {
        std::vector<FunctionCandidate> all;
        const auto take = [&](const std::string& device, const ChosenBuild& build) {
            FunctionCandidate one = candidate(binding);
            one.device = device;
            one.kernel = source.name;
            if (each(build, one)) {
                all.push_back(std::move(one));
            }
        };
        chooser_.choose_each(source, devices_, binding.device, binding.where, rules_.strict,
                             decision_, take);
        return all;
    }

    [[noreturn]] static void missing(const std::string& what, const std::string& name,
                                     const ChosenBuild& build, const FunctionBinding& binding,
                                     const std::vector<std::string>& there) {
        throw Error(
            ErrorCode::not_found,
            {.what = "no " + what + " \"" + base::printable(name) + "\" in " + build.kernel.name,
             .where = binding.where,
             .why = there.empty() ? "it has none" : "there are: " + base::join(there, ", "),
             .hint = base::suggestion(name, there)});
    }

    std::vector<FunctionCandidate> of_kernel(const FunctionBinding& binding,
                                             const KernelSource& source) {
        return per_device(binding, source, [&](const ChosenBuild& build, FunctionCandidate& one) {
            one.function = binding.func_name;
            const std::string what = source.name + ": " + one.function;
            const auto named = [&](const auto& other) { return other.name == binding.func_name; };
            const auto& functions = build.functions.functions;
            const auto function = std::find_if(functions.begin(), functions.end(), named);
            const kernel::LayerSource* layer = build.layers.find(binding.func_name);
            bool served = false;
            if (function != functions.end()) {
                served = take_flags(what, *function, binding, one);
                note_verdict(what, kernel::judge(function->usage, build.python_needs), binding);
            } else if (layer != nullptr) {
                served = take_flags(what, *layer, binding, one);
                note_verdict(what, kernel::judge(*layer, build.python_needs), binding);
            } else {
                std::vector<std::string> there;
                for (const auto& other : functions) {
                    there.push_back(other.name);
                }
                for (const auto& other : build.layers.layers) {
                    there.push_back(other.name);
                }
                missing("function or layer", binding.func_name, build, binding, there);
            }
            if (served) {
                chosen(what, one);
            }
            return served;
        });
    }

    // What a library does not show it may register nevertheless.
    void require_operator(const std::string& name, const ChosenBuild& build,
                          const FunctionBinding& binding) {
        const auto names = [&] {
            std::vector<std::string> there;
            for (const MappedOperator& op : build.kernel.operators) {
                there.push_back(op.name.substr(0, op.name.find('.')));
            }
            return there;
        };
        const auto is_there = [&] {
            const auto there = names();
            return std::find(there.begin(), there.end(), name) != there.end();
        };
        if (is_there()) {
            return;
        }
        chooser_.learn_all_operators(build);
        if (build.operators_complete && !is_there()) {
            missing("operator", name, build, binding, names());
        }
    }

    std::vector<FunctionCandidate> of_operator(const FunctionBinding& binding) {
        const auto colons = binding.op.find("::");
        const std::string space = binding.op.substr(0, colons);
        const std::string name = binding.op.substr(colons + 2);
        if (const auto source = kernel_of_namespace(space, binding)) {
            return per_device(binding, *source,
                              [&](const ChosenBuild& build, FunctionCandidate& one) {
                                  require_operator(name, build, binding);
                                  one.op = build.kernel.op_namespace + "::" + name;
                                  chosen(source->name + ": " + name, one);
                                  return true;
                              });
        }
        if (space != "aten") {
            decision_.because =
                "; no kernel of the manifest has the operator, so that it must be "
                "registered where a model is kernelized";
        }
        FunctionCandidate one = candidate(binding);
        one.op = binding.op;
        chosen("operator " + one.op, one);
        return {one};
    }

    std::vector<FunctionCandidate> of_package(const FunctionBinding& binding) {
        const ChosenBuild* build =
            chooser_.choose_package(binding, devices_, binding.where, decision_);
        if (build == nullptr) {
            return {};
        }
        FunctionCandidate one = candidate(binding);
        const std::string& op = build->kernel.operators.front().name;
        const std::string what = build->kernel.name + ": " + op;
        if (!take_flags(what, build->layers.layers.front(), binding, one)) {
            return {};
        }
        one.device = build->kernel.device;
        one.kernel = build->kernel.name;
        one.op = build->kernel.op_namespace + "::" + op;
        chosen(what, one);
        return {one};
    }

    std::optional<KernelSource> kernel_of_namespace(const std::string& space,
                                                    const FunctionBinding& binding) {
        for (const KernelRequest& request : manifest_.kernels) {
            if (names_kernel(space, request.key)) {
                return locator_.locate(request);
            }
        }
        if (space == pack_namespace) {
            return locator_.locate(binding);
        }
        return std::nullopt;
    }

    // Bindings of one function are candidates of one entry, in the order of the manifest.
    void put(const FunctionBinding& binding, std::vector<FunctionCandidate> found) {
        auto entry = std::find_if(mapping_.functions.begin(), mapping_.functions.end(),
                                  [&](const MappedFunction& other) {
                                      return other.target_module == binding.target_module &&
                                             other.func_name == binding.name;
                                  });
        if (entry == mapping_.functions.end()) {
            entry = mapping_.functions.insert(entry, {binding.target_module, binding.name, {}});
        }
        std::move(found.begin(), found.end(), std::back_inserter(entry->candidates));
    }

    const Manifest& manifest_;
    const LayerRules& rules_;
    KernelLocator& locator_;
    BuildChooser& chooser_;
    Mapping& mapping_;
    Decision decision_;
    std::vector<std::string> devices_;
    std::vector<std::string> doubts_;  // of the binding that is being added
};

}  // namespace

bool names_kernel(const std::string& space, const std::string& kernel) {
    std::string name = kernel.substr(kernel.rfind('/') + 1);
    name = name.substr(0, name.find('@'));
    std::replace(name.begin(), name.end(), '-', '_');
    return name == space;
}

void add_functions(const Manifest& manifest, const LayerRules& rules, KernelLocator& locator,
                   BuildChooser& chooser, Mapping& mapping) {
    FunctionAdder adder(manifest, rules, locator, chooser, mapping);
    for (const FunctionBinding& binding : manifest.functions) {
        adder.add(binding);
    }
    for (const PatternBinding& binding : manifest.patterns) {
        adder.add(binding);
    }
}

}  // namespace twinkle::project
