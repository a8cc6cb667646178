#pragma once
// Chooses one build per kernel and device, reads it once, and writes down why.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernel/build.h"
#include "kernel/versions.h"
#include "project/ask_operators.h"
#include "project/kernel_locator.h"
#include "target/target.h"
#include "twinkle/mapping.h"

namespace twinkle::project {

struct ChosenBuild {
    MappedKernel kernel;
    kernel::LayerList layers;
    kernel::FunctionList functions;
    kernel::PythonNeeds python_needs;  // of its libraries
    std::string package;               // for messages: the folder of layers.py
    bool operators_complete = false;   // false: its libraries may register more
};

class BuildChooser {
public:
    using Read = std::function<kernel::Build(const std::filesystem::path&)>;

    BuildChooser(const target::Target& target, KernelLocator& locator, Mapping& mapping,
                 Read read = kernel::read_build)
        : target_(target), locator_(locator), mapping_(mapping), read_(std::move(read)) {}

    // From here on `ask` is asked for the operators of a build whose package calls some that its
    // libraries do not show.
    void set_operator_source(AskOperators ask) { ask_ = std::move(ask); }

    // None: no build for this device; the decision says why. The first answer for a kernel and
    // device is added to the mapping, with all that the build depends on. Throws Error(not_found)
    // where the build is not on this machine, Error(verification) where it is not the locked one,
    // Error(refused) for dependencies that lead back to themselves.
    const ChosenBuild* choose(const KernelSource& source, const std::string& device);

    // Chooses for what is bound to it; with `strict`, a GPU without a build is an error.
    const ChosenBuild* choose_bound(const KernelSource& source, const std::string& device,
                                    const std::string& where, bool strict);
    // A package that is a kernel by itself, as its only build. None: it is not for the target or
    // for another device than `devices`; the decision says why. `name` is what the manifest calls
    // it.
    const ChosenBuild* choose_package(const RepositoryKeys& package,
                                      const std::vector<std::string>& devices,
                                      const std::string& where, Decision& decision);
    // Sets those of the target's CPU, where they are known: packages are compiled for some.
    void set_cpu_features(std::vector<std::string> features) { features_ = std::move(features); }
    // Asks once for the operators of a chosen build that its libraries do not show: something is
    // looked for among them.
    void learn_all_operators(const ChosenBuild& build);
    // The same for each of these devices; a build for all of them is taken once, for "any", where
    // the binding names no device. Rejects a device without a build, and throws where all are.
    using Take = std::function<void(const std::string& device, const ChosenBuild& build)>;
    void choose_each(const KernelSource& source, const std::vector<std::string>& devices,
                     const std::string& bound_device, const std::string& where, bool strict,
                     Decision& decision, const Take& take);
    // The bound kernels that have no build for this device.
    std::vector<std::string> without_build(const std::string& device) const;

    // Why nothing fits on any of these devices, with every build that there is.
    [[noreturn]] void fail(const KernelSource& source, const std::vector<std::string>& devices,
                           const std::string& where) const;

    const std::vector<std::string>& warnings() const { return warnings_; }

private:
    struct Loaded {
        kernel::Build build;
        kernel::LayerList layers;
        kernel::FunctionList functions;
    };
    std::vector<kernel::VariantChoice> choices(const KernelSource& source,
                                               const std::string& device) const;
    std::filesystem::path folder_of(const KernelSource& source,
                                    const kernel::VariantChoice& choice) const;
    const Loaded& load(const KernelSource& source, const kernel::VariantChoice& choice);
    const LockedVariant* locked_variant(const KernelSource& source,
                                        const kernel::VariantChoice& choice,
                                        const std::filesystem::path& folder);
    void check_files(const KernelSource& source, const LockedVariant& variant,
                     const kernel::Build& build);
    std::string repair_hint(const KernelSource& source) const;
    void learn_operators(ChosenBuild& build);
    const ChosenBuild& add_package(const RepositoryKeys& package, const kernel::Build& build);
    std::vector<std::string> reasons_against(const kernel::Build& build) const;
    void add_dependencies(const KernelSource& source, const kernel::Build& build,
                          const std::string& device);

    const target::Target& target_;
    KernelLocator& locator_;
    Mapping& mapping_;
    Read read_;
    AskOperators ask_;
    std::optional<std::vector<std::string>> features_;
    std::set<std::pair<std::string, std::string>> asked_;  // kernel and device
    std::vector<std::string> chain_;  // the kernels whose dependencies are being chosen
    std::map<std::pair<std::string, std::string>, std::unique_ptr<ChosenBuild>> chosen_;
    std::set<std::pair<std::string, std::string>> unserved_;  // kernel and device
    // Of builds whose packages are for other machines: kernel and device → why.
    std::map<std::pair<std::string, std::string>, std::string> unfit_;
    std::map<std::filesystem::path, Loaded> loaded_;
    std::vector<std::string> warnings_;
};

// A decision's rejections on one line; what was chosen for a device and mode, beside what was
// before.
std::string rejections_text(const Decision& decision);
void add_chosen(Decision& decision, const std::string& what, const std::string& device,
                const std::string& mode);

}  // namespace twinkle::project
