#include "models/families/family_in_batch_softmax.h"

#include <fmt/core.h>

namespace sluice::models::families {

Status WriteInBatchSoftmax(const std::vector<GraphFeature>& features, const std::string& tower,
                           const GraphValue& users, const GraphValue& items, const GraphValue& own,
                           GraphWriter* writer) {
  GraphValue same;
  for (const GraphFeature& feature : features) {
    if (feature.tower == tower && feature.category && !feature.several_ids) {
      const GraphValue ids = writer->Ids(feature);
      const GraphValue equal = writer->Node("Equal", {writer->Column(ids).name, ids.name}, 1);
      same = same ? writer->Node("And", {same.name, equal.name}, 1) : equal;
    }
  }
  if (!same) {
    return InvalidArgument(
               "attribute model.loss says in_batch_softmax, which tells items apart by "
               "a category, and they have none")
        .Hint(fmt::format("COLUMN CATEGORY_HASH(id, 100000) FOR {} makes one", tower));
  }
  const GraphValue all = writer->Node("MatMul", {users.name, writer->Turned(items).name}, 1);
  const std::string never = writer->Scalar(-1e9F);
  const GraphValue others = writer->Node("Where", {same.name, never, all.name}, 1);
  const GraphValue chances = writer->LogSoftmax(writer->Concat({own, others}, "candidates"));
  writer->SetLoss(writer->Multiply(writer->Scale(writer->Slice(chances, 0, 1), -1.0F),
                                   writer->Column(writer->Label())));
  return OkStatus();
}

}  // namespace sluice::models::families
