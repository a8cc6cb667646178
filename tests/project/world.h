#pragma once
// An installed twinkle with a bundled kernel, a preset, a cache and one project.

#include <optional>
#include <string>
#include <string_view>

#include "base/throws.h"
#include "kernel/kernel_folder.h"
#include "project/resolver.h"
#include "target/virtual_machine.h"

namespace twinkle::test {

inline const std::string bundled_pack = "pack/twinkle-pack/build/torch-cpu";

struct World {
    TempFolder folder;
    VirtualMachine machine;
    project::ResolveOptions options;

    World() {
        machine.program = folder / "bin/twinkle";
        machine.variables = {{"HF_HOME", (folder / "hf").string()}};
        write_build(folder, bundled_pack, "twinkle-pack", "cpu");
        folder.write("presets/transformers.toml",
                     "[[layers.Norm]]\nclasses = [\"t.Norm\"]\nmode = \"inference\"\n"
                     "[[layers.Gate]]\nclasses = [\"t.Gate\"]\nwhen_submodule = { a = [\"S\"] }\n");
        folder.write("presets/linear.toml", "");
        folder.write("presets/convolutions.toml", "");
        folder.write("presets/patterns.toml",
                     "[patterns.twice]\npattern = \"formulas.py:twice\"\n"
                     "func_impl = \"formulas.py:twice\"\n");
        folder.write("presets/formulas.py", "def twice(x):\n    return x + x\n");
        std::filesystem::create_directories(folder / "empty");
        options.start = folder / "empty";
        options.target = "torch=2.13,backend=cpu";
        options.kernels_dir = folder / "pack";
        options.presets_dir = folder / "presets";
        options.machine = &machine;
    }
    project::Resolution resolve(std::string_view manifest) {
        folder.write("project/twinkle.toml", manifest);
        options.project = folder / "project";
        return project::resolve(options);
    }
    std::optional<Error> fails(std::string_view manifest) {
        return error_of([&] { resolve(manifest); });
    }

    // A build in the cache, as a snapshot of copies.
    std::string snapshot(const std::string& repository, const std::string& commit) const {
        return "hf/hub/kernels--" + repository + "/snapshots/" + commit;
    }
    void add_ref(const std::string& repository, const std::string& ref, const std::string& commit) {
        folder.write("hf/hub/kernels--" + repository + "/refs/" + ref, commit);
    }
};

}  // namespace twinkle::test
