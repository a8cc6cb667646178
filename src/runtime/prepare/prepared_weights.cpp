#include "runtime/prepare/prepared_weights.h"

#include "base/json.h"
#include "base/text.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/prepare/sent_tensors.h"
#include "runtime/source/layer_compiler.h"
#include "runtime/trial/sandbox.h"
#include "runtime/verify/run_error.h"

#include <algorithm>
#include <set>

namespace twinkle::runtime {

namespace {

using base::Json;

std::string cannot_be_prepared(const std::string& why) {
    return "its weights cannot be prepared: " + why;
}

NamedTensors run_prepare(const torch::jit::Module& instance) {
    const torch::NoGradGuard no_grad;
    const std::string method = prepare_method(*instance.type())->name();
    NamedTensors made;
    for (const auto& entry : instance.get_method(method)({}).toGenericDict()) {
        made[entry.key().toStringRef()] = entry.value().toTensor().detach().contiguous();
    }
    return made;
}

std::size_t bytes_of(const torch::jit::Module& module) {
    std::size_t bytes = 0;
    for (const at::Tensor& one : module.parameters()) {
        bytes += one.nbytes();
    }
    for (const at::Tensor& one : module.buffers()) {
        bytes += one.defined() ? one.nbytes() : 0;  // what is still to be prepared
    }
    return bytes;
}

// Room for what may be made of these weights.
std::size_t room_for(const std::vector<Instance>& instances) {
    constexpr std::size_t each = 1 << 20;
    std::size_t bytes = 0;
    for (const Instance& instance : instances) {
        bytes += 2 * bytes_of(instance.module) + each;
    }
    return bytes;
}

// A copy of the module, with the inner ones themselves, which are this child's own.
torch::jit::Module on_device(const torch::jit::Module& module,
                             const std::optional<at::Device>& device) {
    if (!device) {
        return module;
    }
    torch::jit::Module moved = module.copy();
    for (const torch::jit::Module& part : moved.modules()) {
        const auto object = part._ivalue();
        for (std::size_t i = 0; i < object->slots().size(); ++i) {
            const c10::IValue& slot = object->getSlot(i);
            if (slot.isTensor() && slot.toTensor().defined()) {  // else it is still to be prepared
                object->setSlot(i, slot.toTensor().to(*device));
            }
        }
    }
    return moved;
}

}  // namespace

std::vector<Instance> instances_to_prepare(const torch::jit::Module& model) {
    std::vector<Instance> found;
    std::set<const void*> seen;
    for (const Instance& instance : instances_of(model)) {
        if (prepare_method(*instance.module.type()) != nullptr &&
            seen.insert(instance.module._ivalue().get()).second) {
            found.push_back(instance);
        }
    }
    return found;
}

PreparedWeights prepare_here(const std::vector<Instance>& instances) {
    PreparedWeights result;
    for (const Instance& instance : instances) {
        try {
            result.made[instance.path] = run_prepare(instance.module);
        } catch (const std::exception& error) {
            result.failed[instance.path] = cannot_be_prepared(run_error(error.what()));
        }
    }
    return result;
}

namespace {

// The kernel's file that a method was compiled from.
std::string source_of(torch::jit::Function& method) {
    const auto nodes = torch::jit::toGraphFunction(method).graph()->nodes();
    const auto source =
        nodes.begin() == nodes.end() ? nullptr : nodes.begin()->sourceRange().source();
    return source == nullptr ? "" : source->text_str().str();
}

// Classes have methods of their own, but of one layer.
bool have_same_method(const Instance& one, const Instance& other) {
    torch::jit::Function* method = prepare_method(*one.module.type());
    torch::jit::Function* another = prepare_method(*other.module.type());
    return method == another ||
           (method->name() == another->name() && source_of(*method) == source_of(*another));
}

// What a child says of the instances, one after the other.
class Receiver {
public:
    Receiver(const std::vector<Instance>& instances, const SharedMemory& memory)
        : instances_(instances), memory_(memory) {}

    void take(std::string_view line) {
        const Json json = base::parse_json(line, "prepared weights");
        if (!json.is_object() || done() || json.value("of", Json()) != Json(next)) {
            return;  // foreign code can write here, too
        }
        if (!json.contains("tensors")) {
            return fail(json.value("why", ""));
        }
        const Instance& instance = instances_[next];
        auto tensors = received_tensors(memory_, json["tensors"], *instance.module.type());
        if (!tensors) {
            return fail(tensors.error());
        }
        result.made[instance.path] = *std::move(tensors);
        go_on();
    }

    // The child has ended before its time. All that are left with the same method would take as
    // long, or end in the same way: they are not tried.
    void fail_alike(const std::string& why) {
        for (std::size_t i = next + 1; i < instances_.size(); ++i) {
            if (have_same_method(instances_[i], instances_[next])) {
                result.failed.emplace(instances_[i].path, cannot_be_prepared(base::printable(why)));
            }
        }
        fail(why);
    }

    bool is_given_up(std::size_t index) const {
        return result.failed.contains(instances_[index].path);
    }
    bool done() const { return next == instances_.size(); }

    std::size_t next = 0;  // the first of which nothing is known
    PreparedWeights result;

private:
    void fail(const std::string& why) {
        result.failed[instances_[next].path] = cannot_be_prepared(base::printable(why));
        go_on();
    }

    void go_on() {
        do {
            ++next;
        } while (!done() && is_given_up(next));
    }

    const std::vector<Instance>& instances_;
    const SharedMemory& memory_;
};

}  // namespace

PreparedWeights prepare_in_child(const std::vector<Instance>& instances,
                                 const std::optional<at::Device>& device) {
    const std::size_t room = room_for(instances);
    const SharedMemory memory(room);
    const auto limits =
        device ? SandboxLimits::for_bytes_on_gpu(room) : SandboxLimits::for_bytes(room);
    Receiver receiver(instances, memory);
    while (!receiver.done()) {
        const auto work = [&](const Send& send) {
            TensorSender sender(memory);
            for (std::size_t i = receiver.next; i < instances.size(); ++i) {
                if (receiver.is_given_up(i)) {
                    continue;
                }
                Json line = {{"of", i}};
                try {
                    line["tensors"] =
                        sender.put(run_prepare(on_device(instances[i].module, device)));
                } catch (const std::exception& error) {
                    line["why"] = run_error(error.what());
                }
                send(base::json_line(line));
            }
        };
        const SandboxOutcome outcome =
            run_in_sandbox(limits, work, [&](std::string_view line) { receiver.take(line); });
        if (!receiver.done()) {  // a new child goes on with the others
            receiver.fail_alike(outcome.finished ? "the child process ended without them"
                                                 : outcome.why);
        }
    }
    return std::move(receiver.result);
}

void put_weights(const Instance& instance, const NamedTensors& weights) {
    for (const auto& [name, tensor] : weights) {
        instance.module._ivalue()->setAttr(name, tensor);
    }
}

void forget_preparation(const std::vector<Instance>& instances) {
    for (const Instance& instance : instances) {
        const auto type = instance.module.type();
        if (const auto* method = prepare_method(*type)) {
            remove_method(type, std::string(method->name()));
        }
    }
}

}  // namespace twinkle::runtime
