#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/python/array_exchange.h"
#include "client/python/bindings.h"
#include "client/python/conversion.h"
#include "client/python/expressions.h"
#include "client/python/ir_builder.h"
#include "client/python/schedule_error.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "tensor/gradient.h"
#include "tensor/tensor.h"

namespace loopfleet::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using looptree::Op;
using tensor::Buffer;
using tensor::Expr;
using tensor::Session;
using tensor::Symbol;
using tensor::Tensor;
using tensor::TensorError;
using Kind = TensorError::Kind;
using Shape = Tensor::Shape;

void Translate(const std::exception_ptr& pointer, void* /*payload*/) {
  try {
    std::rethrow_exception(pointer);
  } catch (const TensorError& error) {
    SetPythonError(error);
  }
}

// NumPy's scalars, such as np.float64(3), too: they have no __dlpack__.
bool IsScalar(nb::handle object) {
  return PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr()) ||
         (PyNumber_Check(object.ptr()) != 0 && !nb::hasattr(object, "__dlpack__"));
}

double NumberOf(nb::handle object) {
  const double number = PyFloat_AsDouble(object.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

// ---- arguments ----------------------------------------------------------------------------------

// nullptr: it is of another class. One look-up, where isinstance and cast take two.
template <class T>
const T* TryPointer(nb::handle object) {
  const T* pointer = nullptr;
  return nb::try_cast(object, pointer, false) ? pointer : nullptr;
}

Symbol SymbolOf(nb::handle object) {
  if (const auto* const symbol = TryPointer<Symbol>(object)) return *symbol;
  throw nb::type_error(fmt::format("a Symbol is wanted, not a {}", TypeName(object)).c_str());
}

// f(m, n) or f([m, n]). Graphs are made again and again: iterators would take longer than the rest.
std::vector<Symbol> SymbolsOfArguments(const nb::args& args) {
  const std::size_t count = args.size();
  const auto argument = [&](std::size_t i) {
    return nb::handle(PyTuple_GetItem(args.ptr(), static_cast<Py_ssize_t>(i)));
  };
  std::vector<Symbol> symbols;
  if (count == 1 && TryPointer<Symbol>(argument(0)) == nullptr &&
      nb::hasattr(argument(0), "__iter__")) {
    for (const nb::handle object : argument(0)) symbols.push_back(SymbolOf(object));
    return symbols;
  }
  symbols.reserve(count);
  for (std::size_t i = 0; i < count; ++i) symbols.push_back(SymbolOf(argument(i)));
  return symbols;
}

Shape ShapeOfArguments(const nb::args& args) {
  Shape shape;
  const bool is_one_list =
      args.size() == 1 && (nb::isinstance<nb::list>(args[0]) || nb::isinstance<nb::tuple>(args[0]));
  for (const nb::handle object : is_one_list ? nb::handle(args[0]) : nb::handle(args)) {
    if (!IsWhole(object)) {
      throw nb::type_error(
          fmt::format("sizes are whole numbers, not a {}", TypeName(object)).c_str());
    }
    shape.push_back(WholeOf(object));
  }
  return shape;
}

// The other operand of arithmetic; nullopt: NotImplemented.
std::optional<Tensor> TryOperand(nb::handle object) {
  if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) {
    return Tensor::Constant(NumberOf(object));
  }
  if (const auto* const tensor = TryPointer<Tensor>(object)) return *tensor;
  if (IsScalar(object)) return Tensor::Constant(NumberOf(object));
  return std::nullopt;
}

Tensor OperandOf(nb::handle object) {
  if (std::optional<Tensor> operand = TryOperand(object)) return *std::move(operand);
  throw nb::type_error(
      fmt::format("a Tensor or a number is wanted, not a {}; Tensor(array) makes one of an array",
                  TypeName(object))
          .c_str());
}

nb::object NotImplemented() { return nb::borrow(Py_NotImplemented); }

// ---- tensors ------------------------------------------------------------------------------------

void InitTensor(Tensor* place, const nb::args& args, bool copy) {
  if (args.size() == 0) {
    new (place) Tensor(std::vector<Symbol>());
    return;
  }
  const nb::handle first = args[0];
  if (nb::isinstance<Symbol>(first)) {
    new (place) Tensor(SymbolsOfArguments(args));
  } else if (IsWhole(first)) {
    new (place) Tensor(ShapeOfArguments(args));
  } else if (args.size() > 1) {
    throw nb::type_error("Tensor takes symbols, sizes, or one array");
  } else if (nb::isinstance<Tensor>(first)) {
    const Tensor& other = nb::cast<const Tensor&>(first);
    const std::shared_ptr<Buffer> values = other.buffer();
    new (place)
        Tensor(other.computed_shape(), copy ? Copied(values->data(), values->count()) : values);
  } else if (PyFloat_Check(first.ptr())) {
    Tensor tensor((std::vector<Symbol>()));
    tensor.fill(static_cast<float>(NumberOf(first)));
    new (place) Tensor(tensor);
  } else {
    Values values = FromPython(first, copy);
    new (place) Tensor(values.shape, std::move(values.buffer));
  }
}

void SetValues(Tensor& tensor, nb::handle object, bool copy) {
  if (IsScalar(object)) {
    tensor.fill(static_cast<float>(NumberOf(object)));
    return;
  }
  if (nb::isinstance<Tensor>(object)) {
    const Tensor& other = nb::cast<const Tensor&>(object);
    auto values = other.buffer();
    const Shape shape = other.computed_shape();
    // Memory of the tensors' own never changes while two have it; foreign memory may.
    if (copy && values->is_foreign()) values = Copied(values->data(), values->count());
    tensor.set(shape, std::move(values));
    return;
  }
  Values values = FromPython(object, copy);
  // A vector takes as many elements of any shape.
  const tensor::Node& node = *tensor.node();
  if (node.has_fixed_sizes && node.symbols.size() == 1 && values.shape.size() > 1 &&
      values.buffer->count() == static_cast<std::size_t>(node.bound[0])) {
    values.shape = node.bound;
  }
  tensor.set(values.shape, std::move(values.buffer));
}

int GetTensorBuffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    const Tensor& tensor = *nb::inst_ptr<Tensor>(nb::handle(self));
    std::shared_ptr<Buffer> values = tensor.buffer();
    return GetBufferOf(std::move(values), tensor.computed_shape(), view, flags);
  } catch (const TensorError& error) {
    SetPythonError(error);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return -1;
}

PyType_Slot tensor_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(GetTensorBuffer)},
                              {0, nullptr}};

nb::object NumpyOfTensor(const Tensor& tensor, bool copy) {
  const std::shared_ptr<Buffer> values = tensor.buffer();
  nb::object array = NumpyOf(values, tensor.computed_shape());
  return copy ? array.attr("copy")() : array;
}

nb::object DlpackOf(const Tensor& tensor) {
  const std::shared_ptr<Buffer> values = tensor.buffer();
  std::vector<std::size_t> shape;
  for (const std::int64_t size : tensor.computed_shape())
    shape.push_back(static_cast<std::size_t>(size));
  auto* const kept = new std::shared_ptr<Buffer>(values);
  const nb::capsule owner(
      kept, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<Buffer>*>(pointer); });
  return nb::cast(
      nb::ndarray<float, nb::device::cpu>(values->data(), shape.size(), shape.data(), owner));
}

std::string ReprOf(const Tensor& tensor) {
  std::string dims;
  const std::vector<Symbol>& symbols = tensor.symbolic_shape();
  std::optional<Shape> shape;
  try {
    shape = tensor.shape();
  } catch (const TensorError&) {  // some size is not known yet
  }
  for (std::size_t axis = 0; axis < symbols.size(); ++axis) {
    dims += (axis == 0 ? "" : ", ") + symbols[axis].name();
    if (shape) dims += fmt::format("={}", (*shape)[axis]);
  }
  return fmt::format("Tensor({})", dims);
}

looptree::LoopTree ParsedTree(const std::string& ir) {
  auto tree = looptree::ParseIr(ir);
  if (!tree) throw TensorError(Kind::kSchedule, tree.error().message);
  return *std::move(tree);
}

// False: it is neither a tree nor an IR.
bool TrySetTree(const Tensor& tensor, nb::handle value) {
  if (nb::isinstance<looptree::LoopTree>(value)) {
    tensor.set(nb::cast<const looptree::LoopTree&>(value));
  } else if (nb::isinstance<IrBuilder>(value)) {
    tensor.set(OrRaiseSchedule(nb::cast<const IrBuilder&>(value).Tree()));
  } else {
    return false;
  }
  return true;
}

void SetTree(const Tensor& tensor, nb::handle value) {
  if (TrySetTree(tensor, value)) return;
  throw nb::type_error(
      fmt::format("a schedule is a LoopTree or an IR, not a {}", TypeName(value)).c_str());
}

template <class Class>
void DefineBinary(Class& type, const char* name, const char* reflected, Op op) {
  type.def(
      name,
      [op](const Tensor& a, nb::handle b) -> nb::object {
        const std::optional<Tensor> other = TryOperand(b);
        return other ? nb::cast(a.Binary(op, *other)) : NotImplemented();
      },
      nb::is_operator());
  if (reflected == nullptr) return;
  type.def(
      reflected,
      [op](const Tensor& a, nb::handle b) -> nb::object {
        const std::optional<Tensor> other = TryOperand(b);
        return other ? nb::cast(other->Binary(op, a)) : NotImplemented();
      },
      nb::is_operator());
}

// a < b is b > a.
template <class Class>
void DefineLess(Class& type, const char* name, Op op) {
  type.def(
      name,
      [op](const Tensor& a, nb::handle b) -> nb::object {
        const std::optional<Tensor> other = TryOperand(b);
        return other ? nb::cast(other->Binary(op, a)) : NotImplemented();
      },
      nb::is_operator());
}

template <class Class>
void DefineReduction(Class& type, const char* name, Op op, const char* text) {
  type.def(
      name,
      [op](const Tensor& t, const nb::args& over) {
        return t.Reduce(op, SymbolsOfArguments(over));
      },
      "symbols"_a, text);
}

void BindSymbols(nb::module_& module) {
  nb::class_<Symbol> symbol(module, "Symbol",
                            "The name of a dimension; each is its own, equal only to itself.");
  nb::class_<Expr> expr(module, "Expr",
                        "A whole-number combination of symbols and sizes: what views are made of.");
  symbol
      .def(
          "__init__", [](Symbol* place, const std::string& name) { new (place) Symbol(name); },
          "name"_a)
      .def_prop_ro("name", &Symbol::name)
      .def_prop_ro("id", &Symbol::id)
      .def("__repr__", [](const Symbol& s) { return fmt::format("Symbol{{{}}}", s.name()); })
      .def("__hash__", [](const Symbol& s) { return std::hash<Symbol>()(s); })
      .def(
          "__eq__",
          [](const Symbol& a, nb::handle b) {
            return nb::isinstance<Symbol>(b) && a == nb::cast<Symbol>(b);
          },
          nb::is_operator())
      .def(
          "__ne__",
          [](const Symbol& a, nb::handle b) {
            return !nb::isinstance<Symbol>(b) || !(a == nb::cast<Symbol>(b));
          },
          nb::is_operator());
  expr.def(
          "__init__", [](Expr* place, nb::handle from) { new (place) Expr(ExprOf(from)); },
          "value"_a)
      .def("__repr__", &Expr::ToString);
  using Make = Expr (*)(const Expr&, const Expr&);
  const auto define = [](auto& type, const char* name, Make make, bool is_reflected) {
    type.def(
        name,
        [make, is_reflected](nb::handle self, nb::handle other) -> nb::object {
          const std::optional<Expr> b = TryExpr(other);
          if (!b) return NotImplemented();
          const Expr a = ExprOf(self);
          return nb::cast(is_reflected ? make(*b, a) : make(a, *b));
        },
        nb::is_operator());
  };
  const auto define_all = [&](auto& type) {
    define(type, "__add__", [](const Expr& a, const Expr& b) { return a + b; }, false);
    define(type, "__radd__", [](const Expr& a, const Expr& b) { return a + b; }, true);
    define(type, "__sub__", [](const Expr& a, const Expr& b) { return a - b; }, false);
    define(type, "__rsub__", [](const Expr& a, const Expr& b) { return a - b; }, true);
    define(type, "__mul__", [](const Expr& a, const Expr& b) { return a * b; }, false);
    define(type, "__rmul__", [](const Expr& a, const Expr& b) { return a * b; }, true);
    type.def("__neg__", [](nb::handle self) { return -ExprOf(self); });
    type.def(
        "__floordiv__",
        [](nb::handle self, nb::handle by) -> nb::object {
          if (!IsWhole(by)) return NotImplemented();
          return nb::cast(ExprOf(self).DividedBy(WholeOf(by)));
        },
        nb::is_operator());
  };
  define_all(symbol);
  define_all(expr);
  module.def(
      "Size", [](const Symbol& of) { return tensor::Size(of); }, "symbol"_a,
      "The size of the dim that the symbol names, in the constraints of a view.");
}

void BindSession(nb::module_& module) {
  module.def(
      "set_tensor_errors",
      [](const nb::dict& classes) {
        for (const auto& [name, type] : classes) {
          Kept(nb::cast<std::string>(name).c_str()) = nb::borrow(type);
        }
      },
      "classes"_a, "The exception classes to raise, by name.");
  module.def(
      "set_origin_of",
      [](nb::object function) {
        if (function.is_none()) {
          tensor::SetOriginOf(nullptr);
          return;
        }
        Kept("origin") = std::move(function);
        tensor::SetOriginOf([] { return nb::cast<std::string>(Kept("origin")()); });
      },
      "function"_a.none(), "Called for each tensor that is made; its text goes into messages.");
  module.def(
      "schedules",
      [] {
        std::vector<std::pair<std::string, std::string>> rows;
        for (const auto& [key, schedule] : Session::Of().schedules()) {
          rows.emplace_back(key.ToString(), looptree::IrTextOf(schedule->tree()));
        }
        return rows;
      },
      "(program key, IR text) of each program that a tensor had.");
  module.def(
      "set_schedule", [](const std::string& ir) { Session::Of().SetSchedule(ParsedTree(ir)); },
      "ir"_a, "For all tensors that compute this program, made before or later.");
  module.def(
      "program_key_of",
      [](const std::string& ir) {
        return looptree::ProgramKeyOf(ParsedTree(ir).program()).ToString();
      },
      "ir"_a);
  Session::Of().SetLongRun([](const std::function<void()>& run) {
    const nb::gil_scoped_release unlocked;
    run();
  });
  Session::Of().SetWarn([](const std::string& text) {
    const nb::gil_scoped_acquire lock;
    nb::module_::import_("warnings").attr("warn")(text, nb::borrow(PyExc_RuntimeWarning), 2);
  });
}

}  // namespace

void BindTensors(nb::module_& module) {
  nb::register_exception_translator(Translate);
  BindSymbols(module);
  BindArrays(module);
  nb::class_<Tensor> type(module, "Tensor", nb::type_slots(tensor_slots),
                          nb::is_weak_referenceable(),
                          "A lazy array of float32 with named dimensions. docs/TENSORS.md");
  type.def(
      "__init__", &InitTensor, "args"_a, "copy"_a = true,
      "Tensor(symbol, ...): a leaf without values. Tensor(int, ...): of zeros. Tensor(array): "
      "with a copy of its values, or sharing its memory with copy=False, which needs float32 in "
      "C order; writes to that memory are not noticed. Tensor(3.5): rank 0.");
  type.def(
      "set",
      [](nb::object self, nb::handle value, bool copy) {
        auto& t = nb::cast<Tensor&>(self);
        if (!TrySetTree(t, value)) {
          SetValues(t, value, copy);
        }
        return self;
      },
      "value"_a, "copy"_a = true,
      "Of a leaf: its values, an array or one number for all. Of any other: its schedule. Gives "
      "the tensor.");
  type.def(
      "set_size",
      [](nb::object self, const nb::args& sizes) {
        nb::cast<Tensor&>(self).set_size(ShapeOfArguments(sizes));
        return self;
      },
      "sizes"_a);
  type.def_prop_ro("symbolic_shape", [](const Tensor& t) { return t.symbolic_shape(); });
  type.def_prop_ro("shape", &Tensor::shape,
                   "Sizes; infers them from all that is computed with it.");
  type.def_prop_ro("ndim", &Tensor::ndim);
  type.def_prop_ro("size", &Tensor::size);
  type.def("unify", [](nb::object self) {
    nb::cast<const Tensor&>(self).unify();
    return self;
  });
  type.def("__repr__", &ReprOf);

  DefineBinary(type, "__add__", "__radd__", Op::kAdd);
  DefineBinary(type, "__sub__", "__rsub__", Op::kSubtract);
  DefineBinary(type, "__mul__", "__rmul__", Op::kMultiply);
  DefineBinary(type, "__truediv__", "__rtruediv__", Op::kDivide);
  DefineBinary(type, "__pow__", "__rpow__", Op::kPower);
  DefineBinary(type, "__gt__", nullptr, Op::kGreater);
  DefineBinary(type, "__ge__", nullptr, Op::kGreaterEqual);
  DefineLess(type, "__lt__", Op::kGreater);
  DefineLess(type, "__le__", Op::kGreaterEqual);
  type.def("__neg__", [](const Tensor& t) { return -t; });
  type.def("__pos__", [](const Tensor& t) { return t; });
  type.def("__abs__", [](const Tensor& t) { return t.abs(); });
  type.def("__or__", &Tensor::concat, nb::is_operator());
  for (const auto& [name, op] :
       std::initializer_list<std::pair<const char*, Op>>{{"max", Op::kMax},
                                                         {"min", Op::kMin},
                                                         {"equal", Op::kEqual},
                                                         {"add", Op::kAdd},
                                                         {"sub", Op::kSubtract},
                                                         {"mul", Op::kMultiply},
                                                         {"div", Op::kDivide}}) {
    type.def(
        name, [op = op](const Tensor& a, nb::handle b) { return a.Binary(op, OperandOf(b)); },
        "other"_a);
  }
  for (const auto& [name, op] :
       std::initializer_list<std::pair<const char*, Op>>{{"exp", Op::kExp},
                                                         {"log", Op::kLog},
                                                         {"sqrt", Op::kSqrt},
                                                         {"abs", Op::kAbs},
                                                         {"neg", Op::kNegate},
                                                         {"reciprocal", Op::kReciprocal},
                                                         {"tanh", Op::kTanh},
                                                         {"erf", Op::kErf},
                                                         {"sin", Op::kSin},
                                                         {"cos", Op::kCos},
                                                         {"floor", Op::kFloor},
                                                         {"ceil", Op::kCeil},
                                                         {"round", Op::kRound},
                                                         {"sign", Op::kSign}}) {
    type.def(name, [op = op](const Tensor& t) { return t.Unary(op); });
  }
  DefineReduction(type, "sum", Op::kAdd, "Over these dims; over all without arguments.");
  DefineReduction(type, "prod", Op::kMultiply, "As sum.");
  DefineReduction(type, "max_reduce", Op::kMax, "As sum.");
  DefineReduction(type, "min_reduce", Op::kMin, "As sum.");
  type.def(
      "mean",
      [](const Tensor& t, const nb::args& over) { return t.mean(SymbolsOfArguments(over)); },
      "symbols"_a, "As sum.");
  const auto to = [](const Tensor& t, const nb::args& symbols, nb::handle constraints) {
    if (constraints.is_none()) return t.to(SymbolsOfArguments(symbols));
    return t.to(SymbolsOfArguments(symbols), ConstraintsOf(constraints));
  };
  type.def(
      "to", to, "symbols"_a, "constraints"_a = nb::none(),
      "The same dims under other names, by position; with constraints, a view: each is a pair of "
      "expressions that are equal, of symbols of input, view and sizes. Elements outside read 0.");
  type.def("as_", to, "symbols"_a, "constraints"_a = nb::none());
  type.def(
      "__getitem__",
      [](const Tensor& t, nb::handle key) {
        std::vector<Expr> exprs;
        if (nb::isinstance<nb::tuple>(key)) {
          for (const nb::handle one : key) exprs.push_back(ExprOf(one));
        } else {
          exprs.push_back(ExprOf(key));
        }
        return t[tensor::Index(std::move(exprs))];
      },
      "index"_a, "A view: one expression for each dim.");
  type.def(
      "pad",
      [](const Tensor& t, const Symbol& symbol, std::int64_t before,
         std::optional<std::int64_t> after,
         double outside) { return t.pad(symbol, before, after.value_or(before), outside); },
      "symbol"_a, "before"_a, "after"_a = nb::none(), "outside"_a = 0.0);
  type.def(
      "transpose",
      [](const Tensor& t, const nb::args& symbols) {
        return t.transpose(SymbolsOfArguments(symbols));
      },
      "symbols"_a);
  type.def(
      "flatten",
      [](const Tensor& t, const nb::args& symbols) {
        return t.flatten(SymbolsOfArguments(symbols));
      },
      "symbols"_a, "Neighbouring dims become one; all without arguments.");
  type.def(
      "unflatten",
      [](const Tensor& t, const Symbol& symbol, const nb::args& into) {
        std::vector<std::pair<Symbol, std::int64_t>> dims;
        for (const nb::handle one : into) {
          if (nb::isinstance<nb::tuple>(one) && nb::len(one) == 2) {
            dims.emplace_back(SymbolOf(one[0]), WholeOf(one[1]));
          } else {
            dims.emplace_back(SymbolOf(one), 0);
          }
        }
        return t.unflatten(symbol, dims);
      },
      "symbol"_a, "into"_a, "One dim becomes several: symbols, or (symbol, size).");

  type.def(
      "numpy", &NumpyOfTensor, "copy"_a = false,
      "The values; the array shares the tensor's memory and is read-only, unless it is a copy.");
  type.def(
      "__array__",
      [](const Tensor& t, nb::handle dtype, nb::handle copy) {
        nb::object array = NumpyOfTensor(t, !copy.is_none() && nb::cast<bool>(copy));
        return dtype.is_none() ? array : array.attr("astype")(dtype);
      },
      "dtype"_a = nb::none(), "copy"_a = nb::none());
  type.def(
      "__dlpack__", [](const Tensor& t, const nb::kwargs&) { return DlpackOf(t); }, "kwargs"_a);
  type.def("__dlpack_device__", [](const Tensor&) { return std::make_pair(1, 0); });
  type.def("item", &Tensor::item, "The element of a tensor that has one.");
  type.def("__float__", [](const Tensor& t) { return static_cast<double>(t.item()); });
  type.def("resolve", &Tensor::resolve);
  type.def("compile", [](nb::object self) {
    nb::cast<const Tensor&>(self).compile();
    return self;
  });
  type.def("force_recompute", &Tensor::force_recompute);
  type.def("invalidate", &Tensor::force_recompute);
  type.def("clear_cache", &Tensor::force_recompute);
  type.def("__bool__", [](const Tensor&) -> bool {
    throw nb::type_error(
        "a tensor is neither true nor false; ask float(t), or for the values, t.numpy()");
  });
  type.def("__len__", [](const Tensor& t) {
    if (t.ndim() == 0) throw nb::type_error("a tensor of rank 0 has no length");
    return t.shape()[0];
  });
  type.def("__iter__", [](const Tensor&) -> nb::object {
    throw nb::type_error("a tensor cannot be iterated over; t.numpy() can");
  });
  type.attr("__hash__") =
      nb::borrow(reinterpret_cast<PyObject*>(&PyBaseObject_Type)).attr("__hash__");

  for (const char* const name : {"loop_tree", "schedule"}) {
    type.def_prop_rw(
        name, [](const Tensor& t) { return t.loop_tree(); }, &SetTree, nb::arg().none(),
        "The schedule of its last segment, which all tensors of the same structure share. Takes a "
        "LoopTree or an IR of the same program.");
  }
  type.def_prop_ro(
      "ir", [](const Tensor& t) { return IrBuilder(t.loop_tree()); },
      "The same as an IR: a copy, which set() takes. Its str is Graphviz.");
  type.def_prop_ro(
      "segments",
      [](const Tensor& t) {
        std::vector<looptree::LoopTree> trees;
        for (const auto& schedule : t.segments()) trees.push_back(schedule->tree());
        return trees;
      },
      "The trees of all its kernels, in the order in which they run.");
  type.def_prop_ro("tree_key",
                   [](const Tensor& t) { return looptree::KeyOf(t.loop_tree()).ToString(); });
  type.def_prop_ro("program_key", [](const Tensor& t) { return t.schedule()->key().ToString(); });
  type.def_prop_ro("flops", &Tensor::flops, "Floating-point operations of one evaluation.");
  type.def_prop_ro(
      "scratch_bytes", [](const Tensor& t) { return t.schedule()->Code().scratch_bytes(); },
      "Memory that its kernel uses beside inputs and output; compiles it.");

  module.def(
      "where",
      [](nb::handle condition, nb::handle yes, nb::handle no) {
        return Tensor::Where(OperandOf(condition), OperandOf(yes), OperandOf(no));
      },
      "condition"_a, "yes"_a, "no"_a, "`yes` where the condition is not 0, else `no`.");
  module.def(
      "grad",
      [](const Tensor& loss, const std::vector<Tensor>& of, std::optional<Tensor> seed,
         bool allow_division) {
        return tensor::Grad(loss, of, {.seed = std::move(seed), .allow_division = allow_division});
      },
      "loss"_a, "of"_a, "seed"_a = nb::none(), "allow_division"_a = false,
      "The gradient of ``loss`` with respect to each tensor of the list ``of``: lazy tensors with "
      "their dims. ``seed`` is the adjoint of a loss that has dims; ``allow_division`` lets prod() "
      "divide by its factors. GradientError: there is no such gradient.");
  BindCompiledTensor(module);
  BindSession(module);
}

}  // namespace loopfleet::python
