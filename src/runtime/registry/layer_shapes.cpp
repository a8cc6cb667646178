#include "runtime/registry/layer_shapes.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

bool same_conditions(const LayerShape& a, const LayerShape& b) {
    return a.conditions == b.conditions && a.bound.kernel_name == b.bound.kernel_name &&
           a.bound.modules == b.bound.modules && a.bound.when == b.bound.when &&
           a.bound.when_submodule == b.bound.when_submodule &&
           a.bound.attributes == b.bound.attributes;
}

bool same_instances(const LayerShape& a, const LayerShape& b) {
    return same_conditions(a, b) && a.bound.classes == b.bound.classes;
}

LayerShape shape_of(const std::string& kernel_name, std::size_t call = 0) {
    LayerShape shape;
    shape.bound.kernel_name = kernel_name;
    shape.call = call;
    return shape;
}

class Shapes {
public:
    Shapes(const Registrations& registrations, const std::vector<project::LayerBinding>& presets)
        : registrations_(registrations), presets_(presets) {}

    std::vector<LayerShape> all() {
        for (const bool any_device : {false, true}) {
            for (const RegisteredLayer& layer : registrations_.layers) {
                if (layer.kernel.device.empty() == any_device) {
                    add(layer);
                }
            }
        }
        for (const ExternalLayer& external : registrations_.external) {
            const bool registered =
                std::any_of(shapes_.begin(), shapes_.end(), [&](const LayerShape& shape) {
                    return shape.bound.kernel_name == external.kernel_name;
                });
            if (!registered) {
                auto bare = registered_classes(external.kernel_name);
                std::move(bare.begin(), bare.end(), std::back_inserter(shapes_));
            }
        }
        return in_order();
    }

private:
    // Merges classes that were given to one kernel name one by one into one shape.
    std::vector<LayerShape> in_order() {
        std::stable_sort(shapes_.begin(), shapes_.end(),
                         [](const auto& a, const auto& b) { return a.call > b.call; });
        std::vector<LayerShape> ordered;
        for (LayerShape& shape : shapes_) {
            const bool joins = !ordered.empty() && shape.call > 0 &&
                               same_conditions(ordered.back(), shape) &&
                               ordered.back().kernels == shape.kernels;
            if (joins) {
                auto& classes = ordered.back().bound.classes;
                classes.insert(classes.end(), shape.bound.classes.begin(),
                               shape.bound.classes.end());
            } else {
                ordered.push_back(std::move(shape));
            }
        }
        return ordered;
    }

    // The classes that the program gave to a kernel name.
    std::vector<LayerShape> registered_classes(const std::string& kernel_name) const {
        std::vector<LayerShape> shapes;
        for (const ExternalLayer& external : registrations_.external) {
            if (external.kernel_name != kernel_name) {
                continue;
            }
            LayerShape one = shape_of(kernel_name, external.call);
            one.bound.classes = {external.class_name};
            if (external.condition) {
                one.conditions = {&external.condition};
            }
            shapes.push_back(std::move(one));
        }
        return shapes;
    }

    // Adds those of the presets.
    std::vector<LayerShape> known_classes(const std::string& kernel_name) const {
        auto shapes = registered_classes(kernel_name);
        for (const project::LayerBinding& preset : presets_) {
            if (preset.kernel_name != kernel_name || preset.classes.empty()) {
                continue;
            }
            LayerShape shape = shape_of(kernel_name);
            shape.bound.classes = preset.classes;
            shape.bound.when = preset.when;
            shape.bound.when_submodule = preset.when_submodule;
            shape.bound.attributes = preset.attributes;
            shapes.push_back(std::move(shape));
        }
        if (shapes.empty()) {
            shapes.push_back(shape_of(kernel_name));  // binds nothing, which is reported
        }
        return shapes;
    }

    std::vector<LayerShape> shapes_for(const RegisteredLayer& layer) const {
        if (layer.kernel.classes.empty()) {
            return known_classes(layer.kernel.kernel_name);
        }
        LayerShape shape = shape_of(layer.kernel.kernel_name, layer.call);
        shape.bound.classes = layer.kernel.classes;
        return {std::move(shape)};
    }

    void add(const RegisteredLayer& registered) {
        const LayerKernel& layer = registered.kernel;
        for (LayerShape& shape : shapes_for(registered)) {
            const auto take = [](auto& to, const auto& from) {
                if (!from.empty()) {
                    to = from;
                }
            };
            take(shape.bound.modules, layer.modules);
            take(shape.bound.when, layer.when);
            take(shape.bound.when_submodule, layer.when_submodule);
            take(shape.bound.attributes, layer.attributes);
            if (layer.condition) {
                shape.conditions.push_back(&layer.condition);
            }
            shape.kernels = {&layer};
            merge(std::move(shape));
        }
    }

    void merge(LayerShape shape) {
        const auto found = std::find_if(shapes_.begin(), shapes_.end(), [&](const auto& other) {
            return same_instances(other, shape);
        });
        if (found == shapes_.end()) {
            shapes_.push_back(std::move(shape));
        } else {
            found->kernels.insert(found->kernels.end(), shape.kernels.begin(), shape.kernels.end());
            found->call = std::max(found->call, shape.call);
        }
    }

    const Registrations& registrations_;
    const std::vector<project::LayerBinding>& presets_;
    std::vector<LayerShape> shapes_;
};

}  // namespace

std::vector<LayerShape> layer_shapes(const Registrations& registrations,
                                     const std::vector<project::LayerBinding>& presets) {
    return Shapes(registrations, presets).all();
}

}  // namespace twinkle::runtime
