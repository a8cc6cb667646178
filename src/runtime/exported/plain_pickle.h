#pragma once
// The pickle of one object of torch.classes, read as data: numbers, texts, tensors, and lists of
// these. Nothing is called that it names; what is no such data is refused.

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace twinkle::runtime::exported {

enum class PlainKind {
    none,
    boolean,
    integer,
    number,
    text,
    tuple,
    list,
    dict,     // `items`: key, value, key, value, …
    name,     // of a class or function, in `text`; only where a tensor or device needs it
    storage,  // `text` is its record, `integer` its number of elements
    tensor,   // `items`: the storage and the arguments that follow it
    device,
};

struct PlainValue {
    PlainKind kind = PlainKind::none;
    std::int64_t integer = 0;
    double number = 0;
    std::string text{};
    at::ScalarType dtype = at::ScalarType::Undefined;  // of a storage or tensor
    std::vector<std::shared_ptr<const PlainValue>> items{};
};
using Plain = std::shared_ptr<const PlainValue>;

// What the names of all classes of torch.classes begin with.
constexpr std::string_view torch_classes_prefix = "__torch__.torch.classes.";

// A text that is copied counts as a value for each so many bytes, where values are counted.
constexpr std::size_t text_bytes_of_value = 16;

struct PlainObject {
    std::string class_name;  // "__torch__.torch.classes.ns.Class"
    Plain state;             // what its __getstate__ gave
};

// Throws InvalidJson (archive/json_reader.h) for all else than one such object. Values are nested
// as deeply as invalid_pickle (model/valid_pickle.h) lets through, which comes first.
PlainObject read_plain_object(std::string_view pickle);

}  // namespace twinkle::runtime::exported
