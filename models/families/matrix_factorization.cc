#include <fmt/core.h>

#include <utility>

#include "models/families/family.h"
#include "models/model.pb.h"

// Matrix factorization: the product of a user's and an item's vectors, plus what each adds by
// itself. The regressor learns ratings; the classifier learns whether a user took an item, weighted
// by model.weight_column if the events are implicit. Source: Koren, Bell and Volinsky, Matrix
// Factorization Techniques for Recommender Systems, 2009, equations 4 and 8.
namespace sluice::models::families {
namespace {

Result<NetworkGraph> BuildMatrixFactorization(const std::vector<GraphFeature>& features,
                                              size_t outputs, const AttributeValues& attributes) {
  constexpr char kSmall[] = "normal:0.01";
  constexpr size_t kSides = 2;
  std::string names;
  for (const GraphFeature& feature : features) {
    names += fmt::format("{}{}{}", names.empty() ? "" : ", ", feature.name,
                         feature.category ? "" : " (a number)");
  }
  if (features.size() != kSides || !features[0].category || !features[1].category) {
    return InvalidArgument(
               fmt::format("matrix factorization has two features, both categories, the users and "
                           "the items; here are {}: {}",
                           features.size(), names))
        .Hint(
            "select those two columns and the label; COLUMN CATEGORY_HASH(column, buckets) makes "
            "a number a category");
  }
  const auto width = static_cast<int64_t>(outputs);
  const int64_t k = attributes.Integer("model.k").value_or(16);
  const double l2 = attributes.Number("model.l2").value_or(0);
  GraphWriter writer;
  // A row of either table: what it adds to each output, then for each output a vector.
  std::vector<GraphValue> rows;
  rows.reserve(features.size());
  for (const GraphFeature& side : features) {
    rows.push_back(
        writer.Penalised(writer.Embedding("embedding", side, width + width * k, kSmall), l2));
  }
  const auto of_each = [&](int64_t begin, int64_t end) {
    return std::pair(writer.Slice(rows[0], begin, end), writer.Slice(rows[1], begin, end));
  };
  const auto [user_adds, item_adds] = of_each(0, width);
  const GraphValue alone = writer.Add(user_adds, item_adds);
  std::vector<GraphValue> together;
  for (int64_t output = 0; output < width; ++output) {
    const auto [user, item] = of_each(width + output * k, width + (output + 1) * k);
    together.push_back(writer.SumOfRow(writer.Multiply(user, item)));
  }
  const GraphValue sum = writer.Add(alone, writer.Concat(together, "products"));
  const std::string bias = writer.Parameter("bias", {width}, "zeros");
  return writer.Take(writer.Node("Add", {sum.name, bias}, width));
}

}  // namespace

Family MatrixFactorization() {
  Family family;
  family.name = "MatrixFactorization";
  family.doc = "matrix factorization of two categories, users and items";
  family.attributes = {EmbeddingWidth("model.k", 16, "numbers of the vector of each value"),
                       Penalty()};
  family.build = BuildMatrixFactorization;
  return family;
}

}  // namespace sluice::models::families
