#pragma once
// Operators that reach out of the process of a model: files, other processes, the network. The one
// table of them, and which of them a model uses.

#include <torch/script.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

struct IoUse {
    std::string name;  // "aten::save", "torch.classes.dist_rpc.WorkerInfo"
    std::string does;  // "writes a file"
};

// The effect of an operator ("aten::save") outside of the process; nothing: it has none that is
// known.
std::optional<std::string> io_of_operator(std::string_view name);
// The same for a class of torch.classes ("dist_rpc.WorkerInfo").
std::optional<std::string> io_of_class(std::string_view name);

// Why code that runs unasked, when a model is read, may not use it; nothing: it may. Allowed are
// only operators and classes of LibTorch that are known to compute and nothing else.
std::optional<std::string> unfit_for_loading(std::string_view operator_name);
std::optional<std::string> class_unfit_for_loading(std::string_view class_name);

// All uses in the code of a loaded model, each once.
std::vector<IoUse> io_of(const torch::jit::Module& model);

// "aten::save (writes a file), …"
std::string io_text(const std::vector<IoUse>& uses);

// Throws Error(refused) if the model uses any.
void require_no_io(const torch::jit::Module& model, const std::filesystem::path& file);

}  // namespace twinkle::runtime
