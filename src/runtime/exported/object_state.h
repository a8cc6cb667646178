#pragma once
// From plain values to what a __setstate__ takes.

#include "runtime/exported/plain_pickle.h"

#include <ATen/core/ivalue.h>

#include <functional>
#include <string>

namespace twinkle::runtime::exported {

// A value of this type. `bytes_of` gives the bytes of a storage by its name. Throws InvalidJson
// (archive/json_reader.h) where the value is none of that type, or a tensor reaches out of its
// storage.
c10::IValue state_of(const Plain& value, const c10::TypePtr& type,
                     const std::function<std::string(const std::string&)>& bytes_of);

}  // namespace twinkle::runtime::exported
