#include "runtime/patterns/image_layouts.h"

#include "runtime/patterns/image_operators.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace twinkle::runtime {

namespace {

bool tells_sizes(c10::Symbol op) {
    static const std::unordered_set<c10::Symbol> all = aten_symbols({"size", "dim", "numel"});
    return all.contains(op);
}

class Layouts {
public:
    Layouts(PatternSearch& places, const std::set<std::string>& chosen,
            const std::unordered_set<const void*>& layers)
        : graph_(places.graph), layers_(layers) {
        for (PatternSite& site : places.sites) {
            if (!chosen.contains(site.site)) {
                continue;
            }
            const bool has_layout = layout_parameter(site) != Formula::npos;
            for (const std::int32_t node : site.claimed) {
                owners_.emplace(node, has_layout ? &site : nullptr);
            }
            if (has_layout) {
                sites_.push_back(&site);
            }
        }
    }

    void choose() {
        // Instances that share their code share the call.
        std::map<std::string, bool> is_free;
        for (const PatternSite* site : sites_) {
            bool& free = is_free.emplace(site->key, true).first->second;
            free = free && writes_for_any(*site);
        }
        for (const PatternSite* site : sites_) {
            layouts_[site->key] =
                is_free.at(site->key) ? ImageLayout::channels_last : ImageLayout::as_found;
        }
        for (const PatternSite* site : sites_) {
            if (!is_free.at(site->key) && reads_channels_last(*site)) {
                layouts_[site->key] = ImageLayout::contiguous;
            }
        }
        for (PatternSite* site : sites_) {
            site->match.parameters[layout_parameter(*site)].constant =
                c10::IValue(static_cast<std::int64_t>(layouts_.at(site->key)));
        }
    }

private:
    // Operators between two places; more are an answer on the safe side, not a stack that
    // overflows.
    static constexpr int deepest = 1'000;

    struct Deeper {
        explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
        ~Deeper() { --depth_; }
        Deeper(const Deeper&) = delete;
        Deeper& operator=(const Deeper&) = delete;
        int& depth_;
    };

    // The place that a node is part of; null: of another kind. Nothing: of none.
    std::optional<const PatternSite*> owner(std::int32_t node) const {
        const auto known = owners_.find(node);
        return known == owners_.end() ? std::nullopt : std::optional(known->second);
    }

    bool is_in_replaced(std::int32_t frame) const {
        for (std::int32_t at = frame; at != nothing; at = graph_.frame(at).parent) {
            if (layers_.contains(graph_.frame(at).object)) {
                return true;
            }
        }
        return false;
    }

    // Whether it is known to be LibTorch's operator, or maximum pooling, which takes any layout.
    bool stays(std::int32_t node) const {
        static const c10::Symbol pooling = symbol("aten::max_pool2d");
        const FlatNode& one = graph_.node(node);
        return (!owners_.contains(node) || one.op == pooling) && !is_in_replaced(one.frame);
    }

    std::optional<std::vector<std::int64_t>> integers(const FlatInput& given) const {
        if (const c10::IValue* held = graph_.constant_of(given.value)) {
            return held->isIntList() ? std::optional(held->toIntVector()) : std::nullopt;
        }
        const auto parts = graph_.value(given.value).parts;
        if (parts == nothing) {
            return std::nullopt;
        }
        std::vector<std::int64_t> all;
        for (const FlatInput& part : graph_.parts[static_cast<std::size_t>(parts)]) {
            const c10::IValue* held = graph_.constant_of(part.value);
            if (held == nullptr || !held->isInt()) {
                return std::nullopt;
            }
            all.push_back(held->toInt());
        }
        return all;
    }

    // One number of each channel is left, which no layout tells apart.
    bool leaves_no_pixels(const FlatNode& node) const {
        static const c10::Symbol mean = symbol("aten::mean");
        static const c10::Symbol pool = symbol("aten::adaptive_avg_pool2d");
        if (node.inputs.size() < 2 || (node.op != mean && node.op != pool)) {
            return false;
        }
        auto given = integers(node.inputs[1]);
        if (!given) {
            return false;
        }
        if (node.op == pool) {
            return *given == std::vector<std::int64_t>{1, 1};
        }
        for (std::int64_t& dim : *given) {
            dim = dim < 0 ? dim + 4 : dim;
        }
        std::sort(given->begin(), given->end());
        return *given == std::vector<std::int64_t>{2, 3};
    }

    bool takes_any(std::int32_t node) {
        if (const auto of = owner(node); of && *of != nullptr) {
            return true;
        }
        const FlatNode& one = graph_.node(node);
        if (!stays(node)) {
            return false;
        }
        if (tells_sizes(one.op) || leaves_no_pixels(one)) {
            return true;
        }
        return passes_layout_on(one.op) &&
               std::all_of(one.outputs.begin(), one.outputs.end(),
                           [&](ValueId output) { return is_used_by_any(output); });
    }

    // Whether all that use a value take it in any layout; not known, if that takes too long to
    // tell.
    bool is_used_by_any(ValueId id) {
        const auto known = used_by_any_.find(id);
        if (known != used_by_any_.end()) {
            return known->second;
        }
        const Deeper deeper(depth_);
        const FlatValue& value = graph_.value(id);
        const bool all = depth_ < deepest && !value.escapes &&
                         std::all_of(
                             value.users.begin(), value.users.end(),
                             [&](std::int32_t user) { return takes_any(user); });
        return used_by_any_[id] = all;
    }

    bool writes_for_any(const PatternSite& site) {
        return std::all_of(site.claimed.begin(), site.claimed.end(), [&](std::int32_t node) {
            const auto& outputs = graph_.node(node).outputs;
            return std::all_of(outputs.begin(), outputs.end(),
                               [&](ValueId output) { return is_used_by_any(output); });
        });
    }

    bool comes_last(ValueId id) {
        if (id == nothing) {
            return false;
        }
        const auto known = comes_last_.find(id);
        if (known != comes_last_.end()) {
            return known->second;
        }
        const Deeper deeper(depth_);
        return comes_last_[id] = depth_ == deepest || is_made_last(graph_.value(id));
    }

    bool is_made_last(const FlatValue& value) {
        if (value.node == nothing) {
            return value.parts != nothing &&
                   is_any_last(graph_.parts[static_cast<std::size_t>(value.parts)]);
        }
        if (const auto of = owner(value.node); of && *of != nullptr) {
            return layouts_.at((*of)->key) == ImageLayout::channels_last;
        }
        const FlatNode& node = graph_.node(value.node);
        return passes_layout_on(node.op) && is_any_last(node.inputs);
    }

    bool is_any_last(const c10::SmallVector<FlatInput, 4>& all) {
        return std::any_of(all.begin(), all.end(),
                           [&](const FlatInput& one) { return comes_last(one.value); });
    }

    bool reads_channels_last(const PatternSite& site) {
        return std::any_of(site.claimed.begin(), site.claimed.end(), [&](std::int32_t node) {
            return is_any_last(graph_.node(node).inputs);
        });
    }

    const FlatGraph& graph_;
    const std::unordered_set<const void*>& layers_;
    std::vector<PatternSite*> sites_;
    std::unordered_map<std::int32_t, const PatternSite*> owners_;
    std::map<std::string, ImageLayout> layouts_;
    std::unordered_map<ValueId, bool> used_by_any_, comes_last_;
    int depth_ = 0;
};

}  // namespace

void choose_image_layouts(PatternSearch& places, const std::set<std::string>& chosen,
                          const std::unordered_set<const void*>& layers) {
    Layouts(places, chosen, layers).choose();
}

}  // namespace twinkle::runtime
