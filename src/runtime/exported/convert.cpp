#include "runtime/exported/convert.h"

#include "archive/json_reader.h"
#include "base/file.h"
#include "base/text.h"
#include "runtime/exported/call_tree.h"
#include "runtime/exported/flatten.h"
#include "runtime/exported/full_masks.h"
#include "runtime/exported/guards.h"
#include "runtime/exported/module_tree.h"
#include "runtime/exported/node_writer.h"
#include "runtime/exported/objects.h"
#include "runtime/exported/parameters.h"
#include "runtime/exported/read_program.h"
#include "runtime/exported/results.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/api/function_impl.h>

#include <algorithm>

namespace twinkle::runtime::exported {

using namespace archive;
namespace jit = torch::jit;
using Kind = Argument::Kind;

namespace {

// Under which names the archive keeps objects. Of one that the model gets it keeps the example,
// under the name of the input.
std::set<std::string> object_paths(const Program& program) {
    std::set<std::string> paths;
    for (const InputSpec& input : program.inputs) {
        if (input.value.kind == Kind::object) {
            paths.insert(input.target.empty() ? input.value.text : input.target);
        }
    }
    return paths;
}

ModuleTree modules_of(const Archive& archive, const std::string& model, const Program& program) {
    Weights weights = read_weights(archive, chosen_model(archive, model), object_paths(program));
    auto objects = read_objects(archive, program, weights.objects);
    return {program, std::move(weights), std::move(objects)};
}

class Converter {
public:
    Converter(const Archive& archive, const std::string& model)
        : program_(read_program(archive, model)), modules_(modules_of(archive, model, program_)) {}

    jit::Module convert() {
        flatten_regions(program_);
        drop_full_masks(program_);
        const auto root = call_tree(program_, modules_);
        modules_.build(*root);
        write_root(*root);
        return modules_.root();
    }

private:
    // A method of the module of a call, while it is written.
    struct Method {
        const Call& call;
        std::shared_ptr<jit::Graph> graph = std::make_shared<jit::Graph>();
        jit::Value* self = nullptr;
        std::optional<NodeWriter> writer{};
    };

    void begin(Method& method) {
        method.self =
            method.graph->addInput("self")->setType(modules_.module_at(method.call.path).type());
        method.writer.emplace(
            *method.graph, program_.graph, origins_,
            [this, &method](const Argument& value) { return from_outside(method, value); });
    }

    c10::TypePtr type_of(const Argument& value) const {
        switch (value.kind) {
            case Kind::sym_int: return c10::IntType::get();
            case Kind::sym_float: return c10::FloatType::get();
            case Kind::sym_bool: return c10::BoolType::get();
            case Kind::object: return class_of(input_of_object(value.text));
            default: return c10::TensorType::get();
        }
    }

    // Every object is an input of the program.
    const InputSpec& input_of_object(const std::string& value) const {
        const auto input =
            std::find_if(program_.inputs.begin(), program_.inputs.end(), [&](const auto& one) {
                return one.value.kind == Kind::object && one.value.text == value;
            });
        if (input == program_.inputs.end()) {
            throw InvalidJson(base::printable(value) + " is no object that the model has");
        }
        return *input;
    }

    // An attribute, a constant, or a size of a tensor that the method has.
    jit::Value* from_outside(Method& method, const Argument& value) {
        if ((value.kind == Kind::tensor || value.kind == Kind::object) &&
            modules_.is_attribute(value.text)) {
            if (const auto way = modules_.way_to(method.call.path, value.text)) {
                return get(method, *way);
            }
            if (modules_.reaches(method.call.path, value.text)) {
                return method.graph->insertConstant(modules_.tensor_of(value.text));
            }
        }
        if (value.kind == Kind::sym_int) {
            for (const Argument& input : method.call.inputs) {
                if (input.kind != Kind::tensor) {
                    continue;
                }
                if (const auto dimension = dimension_of(program_.graph, input.text, value.text)) {
                    jit::Value* index =
                        method.graph->insertConstant(static_cast<std::int64_t>(*dimension));
                    return method.graph->insert(c10::aten::size,
                                                {method.writer->value(input), index});
                }
            }
        }
        return nullptr;
    }

    static jit::Value* get(Method& method, const std::vector<std::string>& way) {
        jit::Value* value = method.self;
        for (const std::string& name : way) {
            value = method.graph->insertGetAttr(value, name);
        }
        return value;
    }

    void write_steps(Method& method) {
        for (const auto& step : method.call.steps) {
            if (const auto* node = std::get_if<Node*>(&step)) {
                method.writer->write(**node);
            } else {
                write_call(method, *std::get<std::unique_ptr<Call>>(step));
            }
        }
    }

    void write_call(Method& caller, const Call& call) {
        write_method(call);
        const std::string below = caller.call.path.empty() ? "" : caller.call.path + ".";
        std::vector<jit::Value*> inputs{
            get(caller, base::split(call.path.substr(below.size()), '.'))};
        for (const Argument& input : call.inputs) {
            inputs.push_back(caller.writer->value(input));
        }
        jit::Node* node =
            caller.graph->insertNode(caller.graph->create(c10::prim::CallMethod, inputs, 1));
        node->s_(c10::attr::name, call.method);
        const auto& schema =
            modules_.module_at(call.path).type()->getMethod(call.method).getSchema();
        node->output()->setType(schema.returns().at(0).type());
        if (call.outputs.size() == 1) {
            caller.writer->define(call.outputs.front(), node->output());
        } else if (call.outputs.size() > 1) {
            jit::Node* unpack =
                caller.graph->insertNode(caller.graph->createTupleUnpack(node->output()));
            for (std::size_t i = 0; i < call.outputs.size(); ++i) {
                caller.writer->define(call.outputs[i], unpack->output(i));
            }
        }
    }

    void write_method(const Call& call) {
        Method method{call};
        begin(method);
        for (const Argument& input : call.inputs) {
            method.writer->define(input, method.graph->addInput()->setType(type_of(input)));
        }
        write_steps(method);
        std::vector<jit::Value*> outputs;
        for (const Argument& output : call.outputs) {
            outputs.push_back(method.writer->value(output));
        }
        jit::Value* result =
            outputs.empty() ? method.graph->insertNode(method.graph->createNone())->output()
            : outputs.size() == 1
                ? outputs.front()
                : method.graph->insertNode(method.graph->createTuple(outputs))->output();
        finish(method, result);
    }

    jit::Function& finish(Method& method, jit::Value* result) {
        method.graph->registerOutput(result);
        const auto type = modules_.module_at(method.call.path).type();
        jit::Function* function = modules_.unit()->create_function(
            c10::QualifiedName(*type->name(), method.call.method), method.graph);
        type->addMethod(function);
        return *function;
    }

    void write_root(const Call& call) {
        Method method{call};
        begin(method);
        Parameters parameters(program_);
        parameters.write(*method.graph);
        write_guards(*method.graph, program_, parameters.leaves());
        for (const Leaf& leaf : parameters.leaves()) {
            if (leaf.spec->kind == InputSpec::Kind::user) {
                method.writer->define(leaf.spec->value, leaf.value);
            }
        }
        write_steps(method);
        write_mutations(method);
        jit::Value* result =
            write_result(*method.graph, program_, *method.writer, *modules_.unit());
        set_defaults(finish(method, result), parameters.parameters());
    }

    void write_mutations(Method& method) {
        for (const OutputSpec& output : program_.outputs) {
            if (output.kind == OutputSpec::Kind::user) {
                continue;
            }
            Argument changed;
            changed.kind = Kind::tensor;
            changed.text = output.target;
            if (output.kind != OutputSpec::Kind::input_mutation) {
                const auto value = modules_.value_of_target(output.target);
                if (!value) {
                    throw InvalidJson("it changes something that it does not have");
                }
                changed.text = *value;
            }
            method.graph->insert(c10::aten::copy_,
                                 {method.writer->value(changed), method.writer->value(output.value),
                                  method.graph->insertConstant(false)});
        }
    }

    static void set_defaults(jit::Function& function, const std::vector<Parameter>& parameters) {
        const c10::FunctionSchema& schema = function.getSchema();
        std::vector<c10::Argument> arguments = schema.arguments();
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (const auto& value = parameters[i].default_value) {
                const c10::Argument& one = arguments.at(i + 1);
                arguments[i + 1] = c10::Argument(one.name(), one.type(), std::nullopt, value);
            }
        }
        function.setSchema(schema.cloneWithArguments(std::move(arguments)));
    }

    Program program_;
    ModuleTree modules_;
    Origins origins_;
};

}  // namespace

jit::Module convert(const Archive& archive, const std::string& model) {
    try {
        return Converter(archive, model).convert();
    } catch (const InvalidJson& invalid) {
        refuse_archive(archive.file(), invalid.what(), "copy it again, or export the model again");
    } catch (const Error& error) {
        // It names a part of the model: the file belongs to it.
        ErrorDetails details = error.details();
        const std::string file = base::display_path(archive.file());
        if (details.where.find(file) == std::string::npos) {
            details.where = file + (details.where.empty() ? "" : ": " + details.where);
        }
        throw Error(error.code(), details);
    } catch (const c10::Error& error) {
        refuse_archive(archive.file(),
                       "LibTorch does not take it: " + base::printable(error.msg().substr(0, 300)),
                       "copy it again, or export the model again");
    } catch (const jit::ErrorReport&) {
        refuse_archive(archive.file(), "TorchScript does not take it",
                       "copy it again, or export the model again");
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception&) {
        refuse_archive(archive.file(), "its parts contradict each other",
                       "copy it again, or export the model again");
    }
}

}  // namespace twinkle::runtime::exported
