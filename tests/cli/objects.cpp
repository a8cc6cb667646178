// A class of torch.classes and operators with effects, as the library of a kernel has them.

#include <ATen/ATen.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <string>
#include <tuple>
#include <vector>

namespace {

// Multiplies, and counts how often it did.
struct Scale : torch::CustomClassHolder {
    Scale(at::Tensor by, std::int64_t before) : factor(std::move(by)), calls(before) {}

    at::Tensor apply(const at::Tensor& x, double more) {
        ++calls;
        return x * factor * static_cast<double>(calls) + more;
    }
    std::tuple<at::Tensor, at::Tensor> both(const at::Tensor& x) {
        return {x * factor, x + factor};
    }
    void add(std::int64_t more) { calls += more; }

    at::Tensor factor;
    std::int64_t calls;
};

using State = std::tuple<at::Tensor, std::int64_t, std::vector<std::int64_t>,
                         c10::Dict<std::string, double>, std::optional<std::string>, bool>;

// Everything that a state may hold.
struct Held : torch::CustomClassHolder {
    explicit Held(State all) : state(std::move(all)) {}
    at::Tensor apply(const at::Tensor& x) {
        const auto& [tensor, number, list, table, text, flag] = state;
        double sum = static_cast<double>(number) + (flag ? 1 : 0);
        for (const auto one : list) sum += static_cast<double>(one);
        for (const auto& entry : table)
            sum += entry.value() * static_cast<double>(entry.key().size());
        return x * tensor + sum + (text ? static_cast<double>(text->size()) : 0);
    }
    State state;
};

std::int64_t noted = 0;

TORCH_LIBRARY(objects, m) {
    m.class_<Scale>("Scale")
        .def(torch::init<at::Tensor, std::int64_t>())
        .def("apply", &Scale::apply, "", {torch::arg("x"), torch::arg("more") = 0.0})
        .def("both", &Scale::both)
        .def("add", &Scale::add)
        .def("__obj_flatten__",
             [](const c10::intrusive_ptr<Scale>& self) {
                 return std::make_tuple(std::make_tuple(std::string("factor"), self->factor),
                                        std::make_tuple(std::string("calls"), self->calls));
             })
        .def_pickle(
            [](const c10::intrusive_ptr<Scale>& self) {
                return std::make_tuple(self->factor, self->calls);
            },
            [](const std::tuple<at::Tensor, std::int64_t>& state) {
                return c10::make_intrusive<Scale>(std::get<0>(state), std::get<1>(state));
            });
    m.class_<Held>("Held")
        .def(torch::init([](const at::Tensor& tensor) {
            c10::Dict<std::string, double> table;
            table.insert("a", 0.5);
            table.insert("bc", 2.0);
            return c10::make_intrusive<Held>(State(tensor, -3, {1, 1000, -70000, 5'000'000'000},
                                                   table, std::string("text"), true));
        }))
        .def("apply", &Held::apply)
        .def("__obj_flatten__",
             [](const c10::intrusive_ptr<Held>& self) {
                 return std::make_tuple(
                     std::make_tuple(std::string("tensor"), std::get<0>(self->state)));
             })
        .def_pickle([](const c10::intrusive_ptr<Held>& self) { return self->state; },
                    [](const State& state) { return c10::make_intrusive<Held>(state); });
    m.def("through(__torch__.torch.classes.objects.Scale scale, Tensor x) -> Tensor");
    m.def("noted(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(objects, CompositeExplicitAutograd, m) {
    m.impl("through", [](const c10::intrusive_ptr<Scale>& scale, const at::Tensor& x) {
        return scale->apply(x, 1);
    });
    m.impl("noted", [](const at::Tensor& x) { return x + static_cast<double>(++noted); });
}

}  // namespace
