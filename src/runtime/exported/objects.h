#pragma once
// Objects of torch.classes that an exported model holds, of which the archive has a pickle, or
// gets.

#include "archive/archive.h"
#include "runtime/exported/program.h"

#include <torch/script.h>

#include <map>
#include <string>

namespace twinkle::runtime::exported {

// "ns.Class" of every object that the program holds or gets → how many.
std::map<std::string, std::size_t> classes_of(const Program& program);

// The class of such an input. Throws as read_objects does.
c10::TypePtr class_of(const InputSpec& input);

// Whether this process has the class "ns.Class".
bool has_class(const std::string& name);

// The objects by path, from their records (path → record). Their classes must be registered in this
// process; their pickles are read as data (plain_pickle.h), and each is made by the __setstate__ of
// its class. Throws Error(not_found) for a class that is not there, Error(refused) for one that
// does more than compute, Error(malformed) for a pickle that holds something else.
std::map<std::string, c10::IValue> read_objects(const archive::Archive& archive,
                                                const Program& program,
                                                const std::map<std::string, std::string>& records);

}  // namespace twinkle::runtime::exported
