#pragma once
// Reads one class as a layer: its flags, its forward, and the rules of layers that it breaks.

#include "kernel/layers.h"
#include "kernel/package_modules.h"

#include <optional>
#include <string>
#include <vector>

namespace twinkle::kernel {

// The source of an expression on one line; empty for null.
std::string source_text(const PackageModule& module, const python::Expr* expression);

std::vector<Parameter> read_parameters(const PackageModule& module,
                                       const python::Arguments& arguments);

class LayerReader {
public:
    explicit LayerReader(PackageModules& modules) : modules_(modules) {}

    // Nothing if the class neither is an nn.Module nor has a forward of its own to be one.
    std::optional<LayerSource> read(const std::string& name, const Definition& definition);

private:
    // The class, then the classes of the package that it inherits from, as Python looks names up.
    struct Lineage {
        std::vector<Definition> classes;
        std::vector<std::string> bases;  // of the class itself
        bool is_module = false;
        bool is_autograd_function = false;
    };
    Lineage lineage(const Definition& definition);
    void read_members(const Definition& definition, LayerSource& layer);
    void read_assignment(const Definition& definition, const python::Expr& target,
                         const python::Expr* value, LayerSource& layer);
    void read_declaration(const PackageModule& module, const python::AnnAssign& declared,
                          LayerSource& layer);
    void read_precision(const Definition& definition, const python::Expr& target,
                        const python::Expr* value, LayerSource& layer);
    void read_forward(const PackageModule& module, const python::FunctionDef& forward,
                      LayerSource& layer);

    PackageModules& modules_;
    bool has_forward_ = false;
    bool has_flag_backward_ = false;
    bool has_flag_compile_ = false;
    bool has_precision_ = false;
};

}  // namespace twinkle::kernel
