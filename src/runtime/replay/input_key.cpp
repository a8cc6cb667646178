#include "runtime/replay/input_key.h"

#include <ATen/ATen.h>

#include <type_traits>

namespace twinkle::runtime {

namespace {

// Every part has a tag and a length, so that different inputs give different keys.
class KeyWriter {
public:
    explicit KeyWriter(c10::DeviceType type) : key_{{}, c10::Device(type, 0), {}} {}

    void value(const c10::IValue& value);
    InputKey take() {
        if (!device_known_) {
            obstacle("no input is a tensor");
        }
        return std::move(key_);
    }

private:
    template <class Number>
    void number(char tag, Number number) {
        static_assert(std::is_trivially_copyable_v<Number>);
        key_.text.push_back(tag);
        key_.text.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    void text(char tag, const std::string& text) {
        number(tag, text.size());
        key_.text += text;
    }
    void obstacle(const std::string& what) {
        if (key_.obstacle.empty()) {
            key_.obstacle = what;
        }
    }
    void numbers(at::IntArrayRef numbers) {
        key_.text.append(reinterpret_cast<const char*>(numbers.data()),
                         numbers.size() * sizeof numbers[0]);
    }
    void tensor(const at::Tensor& tensor);
    void device(const c10::Device& device);

    InputKey key_;
    bool device_known_ = false;
};

void KeyWriter::device(const c10::Device& device) {
    if (device.type() != key_.device.type()) {
        return obstacle("an input is on " + device.str());
    }
    if (device_known_ && device != key_.device) {
        return obstacle("the inputs are on several devices");
    }
    key_.device = device;
    device_known_ = true;
}

void KeyWriter::tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) {
        return key_.text.push_back('u');
    }
    device(tensor.device());
    if (tensor.layout() != at::kStrided || tensor.is_quantized()) {
        return obstacle("an input is sparse, quantized or in another layout of its own");
    }
    number('t', static_cast<int>(tensor.scalar_type()));
    number('@', static_cast<int>(tensor.device().index()));
    number('d', tensor.dim());
    numbers(tensor.sizes());
    // Strides of dimensions of size 1 mean nothing.
    const bool contiguous = tensor.is_contiguous();
    key_.text.push_back(contiguous ? 'c' : 's');
    if (!contiguous) {
        numbers(tensor.strides());
    }
}

void KeyWriter::value(const c10::IValue& value) {
    if (value.isTensor()) {
        tensor(value.toTensor());
    } else if (value.isNone()) {
        key_.text.push_back('n');
    } else if (value.isBool()) {
        number('b', value.toBool());
    } else if (value.isInt()) {
        number('i', value.toInt());
    } else if (value.isDouble()) {
        number('f', value.toDouble());
    } else if (value.isComplexDouble()) {
        number('r', value.toComplexDouble().real());
        number('j', value.toComplexDouble().imag());
    } else if (value.isString()) {
        text('"', value.toStringRef());
    } else if (value.isDevice()) {
        text('D', value.toDevice().str());
    } else if (value.isTuple()) {
        const auto& elements = value.toTupleRef().elements();
        number('(', elements.size());
        for (const c10::IValue& element : elements) {
            this->value(element);
        }
    } else if (value.isList()) {
        const auto elements = value.toListRef();
        number('[', elements.size());
        for (const c10::IValue& element : elements) {
            this->value(element);
        }
    } else if (value.isGenericDict()) {
        const auto dict = value.toGenericDict();
        number('{', dict.size());
        for (const auto& entry : dict) {
            this->value(entry.key());
            this->value(entry.value());
        }
    } else {
        obstacle("an input is a " + value.tagKind() + ", whose value is not known");
    }
}

}  // namespace

InputKey key_of(const Values& inputs, c10::DeviceType type) {
    KeyWriter writer(type);
    for (const c10::IValue& input : inputs) {
        writer.value(input);
    }
    return writer.take();
}

}  // namespace twinkle::runtime
