#include "worker/declarations.h"

#include "runtime/kernels/verified_files.h"

namespace twinkle::worker {

const tuning::Declaration& Declarations::of(const MappedKernel& kernel) {
    const auto [known, first] = known_.try_emplace(kernel.build_id());
    if (first) {
        const auto text = runtime::read_verified_file(kernel, tuning::declaration_name);
        if (text && text->size() <= tuning::largest_declaration) {
            known->second =
                tuning::read_declaration(*text, kernel.name + "/" + tuning::declaration_name);
        }
    }
    return known->second;
}

}  // namespace twinkle::worker
