#pragma once
// Labels: what serves the sites of a kernelized model, and why, as a text in the model. It is an
// attribute of the root, which no call reads: it costs nothing, and survives saving and loading
// wherever (freezing keeps it only if it is asked to, as any attribute).

#include <torch/script.h>

#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// The model must be about to be saved: a copy of it in memory that shares its class would lack the
// attribute.
void set_labels(torch::jit::Module& root, const std::string& text);

// Whether models of this class have labels.
bool has_labels(const c10::ClassType& type);
// None: it has no labels, or what it has is no text. From outside: to be parsed with care.
std::optional<std::string> labels_of(const torch::jit::Module& root);

// The names of the attributes that hold them.
std::vector<std::string> label_attributes(const c10::ClassType& type);

}  // namespace twinkle::runtime
