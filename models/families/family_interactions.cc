#include "models/families/family_interactions.h"

#include <string>

namespace sluice::models::families {
namespace {

constexpr char kSmall[] = "normal:0.01";

// To the sums of the vectors and of their squares: each number's vector, multiplied by it.
void AddNumbers(const GraphValue& numbers, int64_t k, GraphValue* sum, GraphValue* squares,
                GraphWriter* writer) {
  const std::string vectors = writer->Parameter("numbers/vectors", {numbers.width, k}, kSmall);
  *sum = writer->Add(*sum, writer->Node("MatMul", {numbers.name, vectors}, k));
  const GraphValue squared = writer->Multiply(numbers, numbers);
  const GraphValue lengths = writer->Node("Mul", {vectors, vectors}, k);
  *squares = writer->Add(*squares, writer->Node("MatMul", {squared.name, lengths.name}, k));
}

}  // namespace

Interactions WriteInteractions(const std::vector<GraphFeature>& features, size_t outputs,
                               const AttributeValues& attributes, Vectors vectors,
                               GraphWriter* writer) {
  const auto width = static_cast<int64_t>(outputs);
  const int64_t k = attributes.Integer("model.k").value_or(16);
  const double l2 = attributes.Number("model.l2").value_or(0);
  Interactions parts;
  std::vector<GraphValue> weights;
  std::vector<GraphValue> rows;
  for (const GraphFeature& feature : features) {
    if (feature.category) {
      const auto row = writer->EmbeddingParts("embedding", feature, {width, k}, kSmall);
      weights.push_back(writer->Penalised(row[0], l2));
      rows.push_back(writer->Penalised(row[1], l2));
    }
  }
  GraphValue sum;
  GraphValue squares;
  if (const auto count = static_cast<int64_t>(rows.size()); count > 0) {
    parts.linear = writer->SumOf(writer->Stacked(writer->Concat(weights, "weights"), count), false);
    parts.vectors = writer->Concat(rows, "vectors");
    const GraphValue stacked = writer->Stacked(parts.vectors, count);
    sum = writer->SumOf(stacked, false);
    squares = writer->SumOf(stacked, true);
  }
  if (const GraphValue numbers = writer->Numbers(features, "numbers")) {
    parts.linear = writer->Add(parts.linear, writer->Dense("linear", numbers, width, "zeros"));
    parts.numbers = writer->Bounded(numbers);
    if (vectors == Vectors::kOfAll || !sum) {
      AddNumbers(parts.numbers, k, &sum, &squares, writer);
    }
  } else if (parts.linear) {
    const std::string bias = writer->Parameter("linear/bias", {width}, "zeros");
    parts.linear = writer->Node("Add", {parts.linear.name, bias}, width);
  }
  if (sum) {
    const GraphValue pairs = writer->Scale(
        writer->Node("Sub", {writer->Multiply(sum, sum).name, squares.name}, k), 0.5F);
    parts.pairs = outputs == 1 ? writer->SumOfRow(pairs)
                               : writer->Dense("pairs", pairs, width, "ones", false);
  }
  return parts;
}

}  // namespace sluice::models::families
