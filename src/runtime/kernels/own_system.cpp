#include "runtime/kernels/own_system.h"

#include "base/text.h"
#include "kernel/variant.h"
#include "runtime/kernels/own_target.h"
#include "twinkle/error.h"

namespace twinkle::runtime {

void require_own_system(const Mapping& mapping) {
    const auto here = own_target().to_map();
    for (const auto& [key, name] : {std::pair("os", "system"), std::pair("cpu", "processor")}) {
        const auto meant = mapping.target.find(key);
        if (meant != mapping.target.end() && meant->second != "none" &&
            meant->second != here.at(key)) {
            throw Error(ErrorCode::refused,
                        {.what = std::string("the mapping is for another ") + name,
                         .where = "",
                         .why = "it was made for " + base::printable(meant->second) +
                                ", this machine has " + here.at(key),
                         .hint = "resolve it on this machine; for a model that another machine "
                                 "runs, give kernelize that --target"});
        }
    }
}

void require_own_system(const MappedKernel& kernel) {
    const auto variant = kernel::parse_variant(kernel.variant);
    const target::Target& here = own_target();
    if (!variant || variant->cpu.empty() || (variant->cpu == here.cpu && variant->os == here.os)) {
        return;
    }
    throw Error(ErrorCode::refused,
                {.what = "the kernel " + base::printable(kernel.name) +
                         " is built for another system or processor",
                 .where = kernel.path.string(),
                 .why = "its build is for " + variant->cpu + " and " + variant->os +
                        "; this machine has " + here.cpu + " and " + here.os,
                 .hint = "`twinkle versions` shows which builds fit this machine"});
}

}  // namespace twinkle::runtime
