#include "runtime/patterns/output_layouts.h"

#include "runtime/patterns/image_operators.h"

#include <torch/csrc/jit/ir/irparser.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// y with the layout of x: channels last (2 in LibTorch's numbers), if x has that and no other.
jit::Graph& as_laid_out() {
    static const std::shared_ptr<jit::Graph> code = [] {
        auto graph = std::make_shared<jit::Graph>();
        jit::parseIR(R"(graph(%y : Tensor, %x : Tensor):
  %contiguous : int = prim::Constant[value=0]()
  %channels_last : int = prim::Constant[value=2]()
  %four : int = prim::Constant[value=4]()
  %dimensions : int = aten::dim(%y)
  %is_image : bool = aten::eq(%dimensions, %four)
  %is_last : bool = aten::is_contiguous(%x, %channels_last)
  %is_contiguous : bool = aten::is_contiguous(%x, %contiguous)
  %is_other : bool = aten::__not__(%is_contiguous)
  %is_only_last : bool = aten::__and__(%is_last, %is_other)
  %is_moved : bool = aten::__and__(%is_image, %is_only_last)
  %result : Tensor = prim::If(%is_moved)
    block0():
      %last : Tensor = aten::contiguous(%y, %channels_last)
      -> (%last)
    block1():
      -> (%y)
  return (%result))",
                     graph.get());
        return graph;
    }();
    return *code;
}

class OutputLayouts {
public:
    OutputLayouts(const PatternSearch& places, const std::set<std::string>& chosen)
        : graph_(places.graph) {
        for (const PatternSite& site : places.sites) {
            const std::size_t layout = layout_parameter(site);
            if (layout == Formula::npos || !chosen.contains(site.site)) {
                continue;
            }
            const auto& given = site.match.parameters[layout].constant;
            const bool ends = given && given->isInt() &&
                              given->toInt() == static_cast<std::int64_t>(ImageLayout::contiguous);
            for (const std::int32_t node : site.claimed) {
                ends_.emplace(node, ends);
            }
            any_ = any_ || ends;
        }
    }

    void keep() {
        if (!any_) {
            return;
        }
        find_images();
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            follow(static_cast<std::int32_t>(i));
        }
        for (std::size_t i = 0; i < graph_.frames.size(); ++i) {
            if (is_root(i)) {
                keep(static_cast<std::int32_t>(i), graph_.frames[i].graph->return_node(), 0);
            }
        }
    }

private:
    static constexpr int deepest = 50;  // of tuples, lists and dictionaries in each other
    static constexpr std::size_t most_images = 64;

    // What a value was computed from by nothing but operators that pass layouts on.
    struct Origin {
        bool ends_chain = false;   // a place that was made contiguous is on the way
        std::uint64_t images = 0;  // a bit for each of images_
    };

    bool is_root(std::size_t frame) const {
        return graph_.frames[frame].parent == nothing && graph_.frames[frame].graph != nullptr;
    }

    void find_images() {
        for (std::size_t i = 0; i < graph_.frames.size(); ++i) {
            if (!is_root(i)) {
                continue;
            }
            for (jit::Value* input : graph_.frames[i].graph->inputs()) {
                const ValueId id = graph_.value_in(static_cast<std::int32_t>(i), input);
                if (input->type()->kind() == c10::TypeKind::TensorType && id != nothing &&
                    images_.size() < most_images) {
                    origins_[id].images = std::uint64_t{1} << images_.size();
                    images_.push_back(input);
                }
            }
        }
    }

    // What its outputs come from; the nodes before it are done.
    void follow(std::int32_t index) {
        const FlatNode& node = graph_.node(index);
        const auto end = ends_.find(index);
        if (end == ends_.end() && !passes_layout_on(node.op)) {
            return;
        }
        Origin all{.ends_chain = end != ends_.end() && end->second};
        for (const FlatInput& input : node.inputs) {
            take(all, input.value, 0);
        }
        for (const ValueId output : node.outputs) {
            origins_[output] = all;
        }
    }

    void take(Origin& all, ValueId id, int depth) {
        if (id == nothing) {
            return;
        }
        if (const auto known = origins_.find(id); known != origins_.end()) {
            all.ends_chain = all.ends_chain || known->second.ends_chain;
            all.images |= known->second.images;
        }
        const auto parts = graph_.value(id).parts;
        if (parts != nothing && depth < deepest) {
            for (const FlatInput& part : graph_.parts[static_cast<std::size_t>(parts)]) {
                take(all, part.value, depth + 1);
            }
        }
    }

    void keep(std::int32_t frame, jit::Node* user, int depth) {
        for (std::size_t i = 0; i < user->inputs().size() && depth < deepest; ++i) {
            jit::Value* value = user->input(i);
            jit::Node* from = value->node();
            if (from->kind() == c10::prim::TupleConstruct ||
                from->kind() == c10::prim::ListConstruct ||
                from->kind() == c10::prim::DictConstruct) {
                keep(frame, from, depth + 1);
            } else if (value->type()->kind() == c10::TypeKind::TensorType) {
                keep_output(frame, user, i);
            }
        }
    }

    void keep_output(std::int32_t frame, jit::Node* user, std::size_t index) {
        Origin origin;
        take(origin, graph_.value_in(frame, user->input(index)), 0);
        if (!origin.ends_chain) {
            return;
        }
        for (std::size_t i = 0; i < images_.size(); ++i) {
            jit::Graph& graph = *user->owningGraph();
            if ((origin.images >> i & 1U) != 0 && images_[i]->owningGraph() == &graph) {
                const jit::WithInsertPoint before(user);
                const auto laid_out =
                    jit::insertGraph(graph, as_laid_out(), {user->input(index), images_[i]});
                user->replaceInput(index, laid_out.at(0));
            }
        }
    }

    const FlatGraph& graph_;
    bool any_ = false;
    std::unordered_map<std::int32_t, bool> ends_;  // nodes of places with a layout: whether it ends
    std::vector<jit::Value*> images_;              // tensors that the root's methods are given
    std::unordered_map<ValueId, Origin> origins_;
};

}  // namespace

void keep_output_layouts(const PatternSearch& places, const std::set<std::string>& chosen) {
    OutputLayouts(places, chosen).keep();
}

}  // namespace twinkle::runtime
