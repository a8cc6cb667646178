#include "runtime/exported/object_state.h"

#include "archive/json_reader.h"
#include "base/text.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>

namespace twinkle::runtime::exported {

using archive::InvalidJson;

namespace {

constexpr std::size_t most_state_values = 10'000'000;
constexpr std::size_t most_state_dimensions = 64;

[[noreturn]] void misfit(const std::string& what) {
    throw InvalidJson("the state of the object " + what);
}

// Where its elements lie must be within so many bytes.
void require_inside(const std::vector<std::int64_t>& sizes,
                    const std::vector<std::int64_t>& strides, std::int64_t offset,
                    std::size_t itemsize, std::size_t bytes) {
    __extension__ using Wide = __int128;
    Wide last = offset;
    Wide elements = 1;
    bool sound =
        offset >= 0 && sizes.size() == strides.size() && sizes.size() <= most_state_dimensions;
    for (std::size_t i = 0; sound && i < sizes.size(); ++i) {
        last += (Wide(sizes[i]) - 1) * strides[i];
        elements *= sizes[i];
        sound = sizes[i] >= 0 && strides[i] >= 0 && last <= Wide(INT64_MAX) &&
                elements <= Wide(INT64_MAX);
    }
    if (!sound || (elements > 0 && (last + 1) * Wide(itemsize) > Wide(bytes))) {
        misfit("holds a tensor that reaches out of its record");
    }
}

class StateMaker {
public:
    explicit StateMaker(const std::function<std::string(const std::string&)>& bytes_of)
        : bytes_of_(bytes_of) {}

    c10::IValue make(const Plain& value, const c10::TypePtr& type) {
        count(1);
        switch (type->kind()) {
            case c10::TypeKind::OptionalType:
                return value->kind == PlainKind::none
                           ? c10::IValue()
                           : make(value, type->expectRef<c10::OptionalType>().getElementType());
            case c10::TypeKind::NoneType: return require(value, PlainKind::none), c10::IValue();
            case c10::TypeKind::TensorType: return tensor(value);
            case c10::TypeKind::IntType: return require(value, PlainKind::integer), value->integer;
            case c10::TypeKind::BoolType:
                return require(value, PlainKind::boolean), value->integer != 0;
            case c10::TypeKind::FloatType: return require(value, PlainKind::number), value->number;
            case c10::TypeKind::StringType: return text(value);
            case c10::TypeKind::DeviceObjType: return device(value);
            case c10::TypeKind::TupleType: return tuple(value, type->expectRef<c10::TupleType>());
            case c10::TypeKind::ListType: return list(value, type->expectRef<c10::ListType>());
            case c10::TypeKind::DictType: return dict(value, type->expectRef<c10::DictType>());
            default: misfit("is of a type that is not plain: " + type->repr_str());
        }
    }

private:
    void count(std::size_t values) {
        made_ += values;
        if (made_ > most_state_values) {  // the same value may stand in many places
            misfit("holds more values than any sane one");
        }
    }

    static void require(const Plain& value, PlainKind kind) {
        if (value->kind != kind) {
            misfit("does not fit to __setstate__ of its class");
        }
    }

    // In its first place it is as large as in the pickle.
    c10::IValue text(const Plain& value) {
        require(value, PlainKind::text);
        if (!texts_.insert(value.get()).second) {
            count(value->text.size() / text_bytes_of_value);
        }
        return value->text;
    }

    static c10::IValue device(const Plain& value) {
        require(value, PlainKind::device);
        if (value->text != "cpu") {
            misfit("is on another device than the CPU");
        }
        return c10::Device(c10::kCPU);
    }

    c10::IValue tuple(const Plain& value, const c10::TupleType& type) {
        require(value, PlainKind::tuple);
        if (value->items.size() != type.elements().size()) {
            misfit("has another number of values than __setstate__ takes");
        }
        std::vector<c10::IValue> elements;
        for (std::size_t i = 0; i < value->items.size(); ++i) {
            elements.push_back(make(value->items[i], type.elements()[i]));
        }
        return c10::ivalue::Tuple::create(std::move(elements));
    }

    c10::IValue list(const Plain& value, const c10::ListType& type) {
        require(value, PlainKind::list);
        c10::impl::GenericList made(type.getElementType());
        for (const Plain& item : value->items) {
            made.push_back(make(item, type.getElementType()));
        }
        return made;
    }

    c10::IValue dict(const Plain& value, const c10::DictType& type) {
        require(value, PlainKind::dict);
        c10::impl::GenericDict made(type.getKeyType(), type.getValueType());
        for (std::size_t i = 0; i + 1 < value->items.size(); i += 2) {
            made.insert_or_assign(make(value->items[i], type.getKeyType()),
                                  make(value->items[i + 1], type.getValueType()));
        }
        return made;
    }

    static std::vector<std::int64_t> integers(const Plain& value) {
        require(value, PlainKind::tuple);
        if (value->items.size() > most_state_dimensions) {
            misfit("holds a tensor of more dimensions than any sane one");
        }
        std::vector<std::int64_t> found;
        for (const Plain& item : value->items) {
            require(item, PlainKind::integer);
            found.push_back(item->integer);
        }
        return found;
    }

    // LibTorch finds records up to a zero byte, and without regard to case.
    static std::string as_found(const std::string& record) {
        std::string name = record.substr(0, record.find('\0'));
        std::transform(name.begin(), name.end(), name.begin(), [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
        return name;
    }

    const at::Storage& storage_of(const PlainValue& plain) {
        auto& storage = storages_[as_found(plain.text)];
        if (!storage) {
            const std::string bytes = bytes_of_(plain.text);
            const at::Tensor memory =
                at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
            if (!bytes.empty()) {
                std::memcpy(memory.data_ptr(), bytes.data(), bytes.size());
            }
            storage = memory.storage();
        }
        return storage;
    }

    // (storage, offset, sizes, strides, quantizer or requires_grad, …)
    at::Tensor tensor(const Plain& value) {
        require(value, PlainKind::tensor);
        const auto& items = value->items;
        const PlainValue& plain = *items[0];
        require(items[1], PlainKind::integer);
        const auto sizes = integers(items[2]);
        const auto strides = integers(items[3]);
        const at::Storage& storage = storage_of(plain);
        require_inside(sizes, strides, items[1]->integer, c10::elementSize(plain.dtype),
                       storage.nbytes());
        at::Tensor made = c10::isQIntType(plain.dtype) ? quantized(plain.dtype, sizes, items[4])
                                                       : at::empty({0}, plain.dtype);
        made.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
        made.unsafeGetTensorImpl()->set_storage_offset(items[1]->integer);
        made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
        return made;
    }

    // (scheme, scale, zero point), or with tensors of these and the axis.
    at::Tensor quantized(at::ScalarType dtype, const std::vector<std::int64_t>& sizes,
                         const Plain& quantizer) {
        require(quantizer, PlainKind::tuple);
        const auto& items = quantizer->items;
        const std::string scheme =
            !items.empty() && items[0]->kind == PlainKind::name ? items[0]->text : "";
        if (scheme == "torch.per_tensor_affine" && items.size() == 3) {
            require(items[1], PlainKind::number);
            require(items[2], PlainKind::integer);
            return at::_empty_affine_quantized({0}, at::TensorOptions().dtype(dtype),
                                               items[1]->number, items[2]->integer);
        }
        if (scheme == "torch.per_channel_affine" && items.size() == 4) {
            require(items[3], PlainKind::integer);
            const std::int64_t axis = items[3]->integer;
            const at::Tensor scales = tensor(items[1]);
            const at::Tensor zero_points = tensor(items[2]);
            if (axis < 0 || axis >= static_cast<std::int64_t>(sizes.size()) || scales.dim() != 1 ||
                scales.numel() != sizes[static_cast<std::size_t>(axis)] ||
                zero_points.sizes() != scales.sizes() || !scales.is_floating_point()) {
                misfit("holds a quantized tensor whose channels and scales differ in number");
            }
            count(static_cast<std::size_t>(scales.numel()));  // each tensor has its own scales
            std::vector<std::int64_t> none(sizes.size(), 0);  // the memory is given later
            none[static_cast<std::size_t>(axis)] = scales.numel();
            return at::_empty_per_channel_affine_quantized(none, scales, zero_points, axis,
                                                           at::TensorOptions().dtype(dtype));
        }
        misfit("holds a tensor that is quantized in another way than per tensor or channel");
    }

    const std::function<std::string(const std::string&)>& bytes_of_;
    std::map<std::string, at::Storage> storages_;
    std::unordered_set<const PlainValue*> texts_;
    std::size_t made_ = 0;
};

}  // namespace

c10::IValue state_of(const Plain& value, const c10::TypePtr& type,
                     const std::function<std::string(const std::string&)>& bytes_of) {
    return StateMaker(bytes_of).make(value, type);
}

}  // namespace twinkle::runtime::exported
