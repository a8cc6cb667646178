#pragma once
// Python text as a package with one module, called like its file.

#include <map>
#include <string>

namespace twinkle::runtime {

// "fast" for "fast.py"; for what is no plain name "source".
std::string module_name_of(const std::string& file);

// What KernelPackage takes: path → text.
std::map<std::string, std::string> single_file_package(const std::string& file,
                                                       const std::string& text);

}  // namespace twinkle::runtime
