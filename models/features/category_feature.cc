#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/value.h"
#include "models/features/category_feature_internal.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

constexpr size_t kMaxCrossed = 8;  // combinations of more columns occur too rarely to learn from
// Limit of ids per row in a cross of lists; the product of a few long lists would fill the memory.
constexpr size_t kMaxCrossIds = 4096;

uint64_t Chain(uint64_t hash, uint32_t id) {
  return HashIntegerInline(hash + id);
}

}  // namespace

Result<CategoryFeature::Member> CategoryFeature::MakeMember(const FeaturePlan& plan,
                                                            const Feature& feature, int input,
                                                            const Categorizer& spec) {
  Member member;
  member.input = feature.inputs(input);
  const InputColumn& column = plan.inputs(static_cast<int>(member.input));
  ASSIGN_OR_RETURN(member.categorizer, CellCategorizer::Make(spec, column));
  // In a cross, a vocabulary takes the whole cell; indices, hashes and buckets take its elements.
  const bool whole_cell = feature.inputs_size() > 1 && (spec.kind() == Categorizer::VOCABULARY ||
                                                        spec.kind() == Categorizer::TIME_PART);
  member.tensor = feature.format().kind() != TensorFormat::NONE && !whole_cell;
  return member;
}

Result<CategoryFeature> CategoryFeature::Make(const FeaturePlan& plan, const Feature& feature) {
  CategoryFeature made;
  made.name_ = feature.name();
  made.weighted_ = feature.weighted();
  const Categorizer& spec = feature.categorizer();
  made.cross_ = spec.kind() == Categorizer::CROSS;
  const bool words = feature.format().kind() == TensorFormat::TEXT;
  if (words && (made.cross_ || feature.inputs_size() != 1)) {
    return InvalidArgument("words are read from one column, and cannot be crossed");
  }
  if (words) {
    const InputColumn& column = plan.inputs(static_cast<int>(feature.inputs(0)));
    ASSIGN_OR_RETURN(made.words_, WordFeature::Make(feature, column.name()));
  } else if (feature.format().kind() != TensorFormat::NONE) {
    ASSIGN_OR_RETURN(made.layout_, CellLayout::Make(feature.format()));
  }
  if (!made.cross_) {
    if (feature.inputs_size() != 1) {
      return InvalidArgument(fmt::format("{} inputs, expected 1", feature.inputs_size()));
    }
    ASSIGN_OR_RETURN(Member member, MakeMember(plan, feature, 0, spec));
    made.buckets_ = member.categorizer.buckets();
    made.members_.push_back(std::move(member));
    return made;
  }
  const int inputs = feature.inputs_size();
  if (inputs < 2 || static_cast<size_t>(inputs) > kMaxCrossed || inputs != spec.members_size()) {
    return InvalidArgument(
        fmt::format("a cross of {} columns with {} members: expected 2 to {} of "
                    "each",
                    inputs, spec.members_size(), kMaxCrossed));
  }
  made.buckets_ = spec.buckets();
  if (made.buckets_ == 0 || made.buckets_ == kNoId || spec.null_bucket() < -1 ||
      spec.null_bucket() >= int64_t{spec.buckets()}) {
    return InvalidArgument(
        fmt::format("a cross of {} buckets with NULL in {}", made.buckets_, spec.null_bucket()));
  }
  made.null_id_ = spec.null_bucket() < 0 ? kNoId : static_cast<uint32_t>(spec.null_bucket());
  const bool null_is_last = made.buckets_ > 1 && made.null_id_ == made.buckets_ - 1;
  made.hash_buckets_ = made.buckets_ - (null_is_last ? 1 : 0);
  for (int i = 0; i < inputs; ++i) {
    ASSIGN_OR_RETURN(Member member, MakeMember(plan, feature, i, spec.members(i)));
    made.members_.push_back(std::move(member));
  }
  return made;
}

Status CategoryFeature::ApplyMember(const Member& member, const RowBatch& batch,
                                    IdSlot* slot) const {
  const RowBatch::Column& column = batch.columns[member.input];
  if (member.tensor) {
    return member.categorizer.ApplyTensor(column, batch.rows, layout_, weighted_ && !cross_, slot);
  }
  return member.categorizer.Apply(column, batch.rows, slot);
}

Status CategoryFeature::Apply(const RowBatch& batch, IdSlot* slot,
                              std::vector<IdSlot>* scratch) const {
  if (words_) {
    return words_->Apply(batch.columns[members_.front().input], batch.rows, slot);
  }
  if (!cross_) {
    return ApplyMember(members_.front(), batch, slot);
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    RETURN_IF_ERROR(ApplyMember(members_[i], batch, &(*scratch)[i]));
  }
  return Cross(batch.rows, *scratch, slot);
}

OddCells CategoryFeature::Unknown(const RowBatch& batch, const IdSlot& slot) const {
  OddCells unknown;
  const uint32_t id = members_.front().categorizer.unknown_id();
  if (words_ || cross_ || members_.front().tensor || id == kNoId) {
    return unknown;
  }
  unknown.cells = static_cast<size_t>(std::count(slot.ids.begin(), slot.ids.end(), id));
  for (size_t row = 0; unknown.cells > 0 && unknown.first.empty() && row < batch.rows; ++row) {
    if (slot.Begin(row) < slot.End(row) && slot.ids[slot.Begin(row)] == id) {
      const RowBatch::Column& column = batch.columns[input()];
      unknown.first = FormatValue(column.ValueAt(row), column.type);
    }
  }
  return unknown;
}

Status CategoryFeature::Cross(size_t rows, const std::vector<IdSlot>& ids, IdSlot* slot) const {
  slot->weights.clear();
  slot->ends.clear();
  const bool singles = std::all_of(ids.begin(), ids.begin() + static_cast<int64_t>(members_.size()),
                                   [](const IdSlot& member) { return member.ends.empty(); });
  if (singles) {
    CrossSingles(rows, ids, slot);
    return OkStatus();
  }
  return CrossLists(rows, ids, slot);
}

void CategoryFeature::CrossSingles(size_t rows, const std::vector<IdSlot>& ids,
                                   IdSlot* slot) const {
  slot->ids.resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    uint64_t hash = 0;
    for (size_t i = 0; i < members_.size(); ++i) {
      hash = Chain(hash, ids[i].ids[row]);
    }
    slot->ids[row] = static_cast<uint32_t>(hash % hash_buckets_);
  }
}

// Every combination of one id of each member, as in TensorFlow's crossed column.
Status CategoryFeature::CrossLists(size_t rows, const std::vector<IdSlot>& ids,
                                   IdSlot* slot) const {
  slot->ids.clear();
  slot->ends.resize(rows);
  std::array<size_t, kMaxCrossed> at{};
  const size_t members = members_.size();
  for (size_t row = 0; row < rows; ++row) {
    size_t combinations = 1;
    for (size_t i = 0; i < members; ++i) {
      at[i] = ids[i].Begin(row);
      combinations *= ids[i].End(row) - ids[i].Begin(row);
      if (combinations > kMaxCrossIds) {
        return InvalidArgument(fmt::format("the cross '{}' gives more than {} ids for one row",
                                           name_, kMaxCrossIds))
            .Hint("cross columns with shorter lists");
      }
    }
    if (combinations == 0 && null_id_ != kNoId) {
      slot->ids.push_back(null_id_);
    }
    for (size_t n = 0; n < combinations; ++n) {
      uint64_t hash = 0;
      for (size_t i = 0; i < members; ++i) {
        hash = Chain(hash, ids[i].ids[at[i]]);
      }
      slot->ids.push_back(static_cast<uint32_t>(hash % hash_buckets_));
      for (size_t i = members; i-- > 0;) {  // the last member varies fastest
        if (++at[i] < ids[i].End(row)) {
          break;
        }
        at[i] = ids[i].Begin(row);
      }
    }
    slot->ends[row] = static_cast<uint32_t>(slot->ids.size());
  }
  return OkStatus();
}

}  // namespace sluice::models
