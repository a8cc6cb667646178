#include "runtime/plan/binding_typos.h"
#include "runtime/graph/format.h"

#include "base/text.h"
#include "runtime/layers/host_attributes.h"
#include "runtime/selection/selection.h"

#include <algorithm>
#include <set>

namespace twinkle::runtime {

namespace {

std::string hint(const std::string& name, const std::vector<std::string>& there,
                 const std::string& what) {
    if (const auto near = base::nearest(name, there)) {
        return "; did you mean " + base::printable(*near) + "?";
    }
    return there.empty() ? ""
                         : "; " + what + ": " + base::printable(there.front()) +
                               (there.size() > 1 ? ", …" : "");
}

std::vector<std::string> attribute_names(const torch::jit::Module& module) {
    const auto& type = module.type();
    std::set<std::string> names;
    for (std::size_t i = 0; i < type->numAttributes(); ++i) {
        names.insert(type->getAttributeName(i));
    }
    for (std::size_t i = 0; i < type->numConstants(); ++i) {
        names.insert(type->getConstantName(i));
    }
    return {names.begin(), names.end()};
}

class Doubts {
public:
    Doubts(const MappedLayer& layer, std::vector<const Site*> bound)
        : layer_(layer), bound_(std::move(bound)) {}

    void add_to(std::vector<std::string>& found) const {
        std::vector<std::string> paths;
        for (const Site* site : bound_) {
            paths.push_back(site->instance.path);
        }
        for (const std::string& pattern : layer_.modules) {
            const bool matches = std::any_of(paths.begin(), paths.end(), [&](const auto& path) {
                return base::glob_match(pattern, path);
            });
            if (!matches) {
                found.push_back(
                    fmt::format("modules = [\"{}\"] of {} matches no instance of its classes{}",
                                base::printable(pattern), layer_.kernel_name,
                                hint(pattern, paths, "they are")));
            }
        }
        for (const auto& [name, value] : layer_.when) {
            check_attribute("when", name, found);
        }
        for (const auto& [name, classes] : layer_.when_submodule) {
            check_attribute("when_submodule", name, found);
        }
    }

private:
    void check_attribute(const char* key, const std::string& name,
                         std::vector<std::string>& found) const {
        const bool there = std::any_of(bound_.begin(), bound_.end(), [&](const Site* one) {
            const LostAttributes& lost = one->as<LayerSite>()->lost;
            return attribute_of(one->instance.module, lost, name).has_value();
        });
        if (!there) {
            found.push_back(fmt::format(
                "{} of {} names {}, which no instance of its classes has{}", key,
                layer_.kernel_name, base::printable(name),
                hint(name, attribute_names(bound_.front()->instance.module), "they have")));
        }
    }

    const MappedLayer& layer_;
    std::vector<const Site*> bound_;
};

}  // namespace

std::vector<std::string> doubtful_conditions(const Mapping& mapping, const Plan& plan) {
    std::vector<std::string> found;
    for (const MappedLayer& layer : mapping.layers) {
        std::vector<const Site*> bound;
        for (const Site& site : plan.sites) {
            if (site.is_layer() && binds(layer, site.instance.class_name)) {
                bound.push_back(&site);
            }
        }
        if (!bound.empty()) {
            Doubts(layer, std::move(bound)).add_to(found);
        }
    }
    return found;
}

}  // namespace twinkle::runtime
