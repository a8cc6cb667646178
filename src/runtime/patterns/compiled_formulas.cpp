#include "runtime/patterns/compiled_formulas.h"

#include "runtime/source/single_file.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

namespace twinkle::runtime {

namespace {

struct CompiledFile {
    std::string file, source;
    std::shared_ptr<Compilation> compilation;
    std::map<std::string, CompiledFormula> formulas;
};

class CompiledFiles {
public:
    CompiledFormula get(const std::string& file, const std::string& source,
                        const std::string& name) {
        const std::lock_guard lock(mutex_);
        CompiledFile& in = opened(file, source);
        const auto known = in.formulas.find(name);
        if (known != in.formulas.end()) {
            return known->second;
        }
        auto formula = compile_formula(*in.compilation, module_name_of(file), name);
        return in.formulas
            .emplace(name,
                     formula ? CompiledFormula(std::make_shared<const Formula>(std::move(*formula)))
                             : tl::make_unexpected(formula.error()))
            .first->second;
    }

private:
    static constexpr std::size_t most = 16;  // of them the last ones used

    CompiledFile& opened(const std::string& file, const std::string& source) {
        const auto known = std::find_if(files_.begin(), files_.end(), [&](const auto& one) {
            return one->file == file && one->source == source;
        });
        if (known != files_.end()) {
            std::rotate(files_.begin(), known, known + 1);
            return *files_.front();
        }
        auto made = std::make_unique<CompiledFile>();
        made->file = file;
        made->source = source;
        made->compilation = std::make_shared<Compilation>(
            std::make_shared<KernelPackage>(single_file_package(file, source)),
            std::make_shared<torch::jit::CompilationUnit>(), false);
        files_.push_front(std::move(made));
        files_.resize(std::min(files_.size(), most));
        return *files_.front();
    }

    std::mutex mutex_;
    std::deque<std::unique_ptr<CompiledFile>> files_;
};

}  // namespace

CompiledFormula compiled_formula(const std::string& file, const std::string& source,
                                 const std::string& name) {
    static auto& files = *new CompiledFiles;
    return files.get(file, source, name);
}

}  // namespace twinkle::runtime
