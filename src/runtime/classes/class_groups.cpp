#include "runtime/classes/class_groups.h"

#include <map>
#include <tuple>

namespace twinkle::runtime {

namespace {

class GroupCollector {
public:
    explicit GroupCollector(std::vector<TreeObject>& objects) : objects_(objects) {}

    std::size_t collect(const torch::jit::Module& module) {
        const auto [known, first] = index_.emplace(module._ivalue().get(), objects_.size());
        if (!first) {
            return known->second;
        }
        TreeObject object{module, {}, 0};
        const auto& slots = module._ivalue()->slots();
        for (std::size_t slot = 0; slot < slots.size(); ++slot) {
            if (slots[slot].isModule()) {
                const auto declared = module.type()->getAttribute(slot)->cast<c10::ClassType>();
                const std::size_t child = collect(torch::jit::Module(slots[slot].toObject()));
                object.children.push_back({slot, child, declared != nullptr});
            }
        }
        index_[module._ivalue().get()] = objects_.size();
        objects_.push_back(std::move(object));
        return objects_.size() - 1;
    }

private:
    std::vector<TreeObject>& objects_;
    std::unordered_map<const void*, std::size_t> index_;
};

}  // namespace

ClassGroups::ClassGroups(const torch::jit::Module& root, const Treatments& treatments) {
    GroupCollector(objects).collect(root);
    using Key = std::tuple<const void*, std::size_t, std::vector<std::size_t>>;
    std::map<Key, std::size_t> known;
    for (std::size_t i = 0; i < objects.size(); ++i) {
        TreeObject& object = objects[i];
        const auto treatment = treatments.find(object.module._ivalue().get());
        Key key{
            object.module.type().get(), treatment == treatments.end() ? 0 : treatment->second, {}};
        for (const TreeObject::Child& child : object.children) {
            std::get<2>(key).push_back(child.typed ? objects[child.object].group : 0);
        }
        const bool treated = std::get<1>(key) != 0;
        const auto [group, first] = known.emplace(std::move(key), groups.size());
        if (first) {
            groups.push_back({object.module.type(), {}, treated});
        }
        object.group = group->second;
        groups[object.group].members.push_back(i);
    }
}

}  // namespace twinkle::runtime
