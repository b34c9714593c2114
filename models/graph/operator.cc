#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/graph/operator_internal.h"
#include "models/model.pb.h"

namespace sluice::models::graph {
namespace {

const GraphAttribute* Find(const GraphNode& node, std::string_view name) {
  for (const GraphAttribute& attribute : node.attributes()) {
    if (attribute.name() == name) {
      return &attribute;
    }
  }
  return nullptr;
}

}  // namespace

bool Attributes::Has(std::string_view name) const {
  return Find(node_, name) != nullptr;
}

int64_t Attributes::Integer(std::string_view name, int64_t otherwise) const {
  const GraphAttribute* attribute = Find(node_, name);
  return attribute == nullptr || attribute->integers_size() == 0 ? otherwise
                                                                 : attribute->integers(0);
}

float Attributes::Number(std::string_view name, float otherwise) const {
  const GraphAttribute* attribute = Find(node_, name);
  return attribute == nullptr || attribute->numbers_size() == 0 ? otherwise : attribute->numbers(0);
}

std::string Attributes::Text(std::string_view name, std::string_view otherwise) const {
  const GraphAttribute* attribute = Find(node_, name);
  return std::string(attribute == nullptr || attribute->texts_size() == 0 ? otherwise
                                                                          : attribute->texts(0));
}

std::vector<int64_t> Attributes::Integers(std::string_view name) const {
  const GraphAttribute* attribute = Find(node_, name);
  return attribute == nullptr
             ? std::vector<int64_t>{}
             : std::vector<int64_t>(attribute->integers().begin(), attribute->integers().end());
}

std::vector<float> Attributes::Numbers(std::string_view name) const {
  const GraphAttribute* attribute = Find(node_, name);
  return attribute == nullptr
             ? std::vector<float>{}
             : std::vector<float>(attribute->numbers().begin(), attribute->numbers().end());
}

std::vector<std::string> Attributes::Texts(std::string_view name) const {
  const GraphAttribute* attribute = Find(node_, name);
  return attribute == nullptr
             ? std::vector<std::string>{}
             : std::vector<std::string>(attribute->texts().begin(), attribute->texts().end());
}

GradientTarget OperatorContext::Target(size_t k) const {
  if (!Has(k) || !inputs[k]->trained || inputs[k]->gradient == nullptr) {
    return {};
  }
  return {inputs[k]->gradient, std::exchange(inputs[k]->gradient_owner().written, true)};
}

float* OperatorContext::Zeroed(size_t k) const {
  const GradientTarget target = Target(k);
  if (target && !target.add) {
    std::fill_n(target.to, inputs[k]->gradient_count, 0.0F);
  }
  return target.to;
}

Status OperatorContext::Shaped(Shape shape, ElementType type, size_t k) const {
  RETURN_IF_ERROR(graph::CheckShape(shape));
  if (Reads(k)) {
    outputs[k]->shape = std::move(shape);
    outputs[k]->type = type;
  }
  return OkStatus();
}

Result<std::vector<int64_t>> OperatorContext::Known(size_t k, std::string_view what) const {
  const Tensor& tensor = In(k);
  if (tensor.type != ElementType::kInteger) {
    return InvalidArgument(fmt::format("{} must be integers, not {}", what, TypeText(tensor.type)));
  }
  if (!tensor.known) {
    return InvalidArgument(fmt::format("{} must not depend on the rows of a batch", what))
        .Hint("shapes follow from constants and from the shapes of other values");
  }
  return std::vector<int64_t>(tensor.integers, tensor.integers + tensor.count());
}

Status OperatorContext::NeedFloat(size_t k) const {
  if (!Has(k)) {
    return InvalidArgument(fmt::format("input {} is left out", k + 1));
  }
  if (In(k).type != ElementType::kFloat) {
    return InvalidArgument(
        fmt::format("input {} must be numbers, not {}", k + 1, TypeText(In(k).type)));
  }
  return OkStatus();
}

std::span<const OperatorEntry> Operators() {
  static const std::vector<OperatorEntry> entries = [] {
    std::vector<OperatorEntry> all;
    for (const auto list :
         {ElementwiseOperators(), ArithmeticOperators(), LogicOperators(), ProductOperators(),
          ConvolutionOperators(), RecurrentOperators(), NormalisationOperators(),
          ReductionOperators(), ShapeOperators(), MoveOperators(), StridedOperators(),
          GatherOperators(), EmbeddingOperators(), PenaltyOperators()}) {
      all.insert(all.end(), list.begin(), list.end());
    }
    std::sort(all.begin(), all.end(),
              [](const OperatorEntry& a, const OperatorEntry& b) { return a.name < b.name; });
    return all;
  }();
  return entries;
}

const OperatorEntry* FindOperator(std::string_view name) {
  const std::span<const OperatorEntry> entries = Operators();
  const auto found = std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const OperatorEntry& entry, std::string_view wanted) { return entry.name < wanted; });
  return found == entries.end() || found->name != name ? nullptr : &*found;
}

}  // namespace sluice::models::graph
