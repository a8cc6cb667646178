#pragma once
// Operators of a model that reach out of its process: files, other processes, the network. The one
// table of them, and what of it a model uses.

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

// What the operator ("aten::save") does outside of the process; nothing: nothing, as far as it is
// known.
std::optional<std::string> io_of_operator(std::string_view name);
// The same of a class of torch.classes ("dist_rpc.WorkerInfo").
std::optional<std::string> io_of_class(std::string_view name);

// Why code that nobody asked to run may not use it; nothing: it may. Only operators and classes of
// LibTorch that are known to compute and nothing else are allowed there.
std::optional<std::string> unfit_for_loading(std::string_view operator_name);
std::optional<std::string> class_unfit_for_loading(std::string_view class_name);

// What the code of a loaded model uses, each once.
std::vector<IoUse> io_of(const torch::jit::Module& model);

// "aten::save (writes a file), …"
std::string io_text(const std::vector<IoUse>& uses);

// Throws Error(refused) for a model that uses any.
void require_no_io(const torch::jit::Module& model, const std::filesystem::path& file);

}  // namespace twinkle::runtime
