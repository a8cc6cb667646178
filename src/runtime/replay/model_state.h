#pragma once
// What captured runs take for granted of a model that its program still holds, and may change:
// move, write into, replace weights of, set to training.

#include <torch/script.h>

#include <cstdint>
#include <vector>

namespace twinkle::runtime {

class ModelState {
public:
    // Notes the attributes that this code, inlined, reads of it; all, if that cannot be told.
    ModelState(const torch::jit::Module& model, const torch::jit::Graph& code);

    // Whether the model is still as it was. A few nanoseconds for each attribute. Not seen is what
    // is written into weights past their count of writes: by `.data`, by raw pointers, and into
    // those that were made in inference mode. A captured run reads weights where they are, so that
    // this matters to copies of them alone.
    bool is_current() const;
    // One of them that is neither a module nor a value; empty: none.
    const std::string& object() const { return object_; }

private:
    struct Tensor {
        explicit Tensor(const at::Tensor& tensor);
        bool is_same(const at::Tensor& now) const;

        // Not its data, which may be freed; its place is not used again.
        c10::weak_intrusive_ptr<c10::StorageImpl> storage;
        const void* data;
        std::uint32_t version;
    };
    struct Attribute {
        // Alive if its parent, which was compared before, still has it.
        const c10::ivalue::Object* owner;
        std::size_t slot;
        const void* child;  // of a module
        c10::TypePtr type;  // of the child
        c10::IValue value;  // of anything else
        std::vector<Tensor> tensors;
    };
    static bool is_same(const Attribute& was);
    bool add_read(const torch::jit::Graph& code);
    void add_all(const torch::jit::Module& model);
    void add(const c10::ivalue::Object* owner, std::size_t slot, const std::string& name);

    const c10::ivalue::Object* root_;
    c10::TypePtr root_type_;
    std::vector<Attribute> attributes_;
    std::string object_;
};

}  // namespace twinkle::runtime
