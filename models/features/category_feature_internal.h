#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "models/features/categorizer_internal.h"
#include "models/features/feature_transform.h"
#include "models/features/text_words_internal.h"

namespace sluice::models {

class Feature;
class FeaturePlan;

// A CATEGORY feature: the ids of one column, or of several crossed. Immutable.
class CategoryFeature {
 public:
  static Result<CategoryFeature> Make(const FeaturePlan& plan, const Feature& feature);

  uint32_t buckets() const { return buckets_; }
  size_t members() const { return members_.size(); }
  // `scratch` has members() slots when the feature is a cross.
  Status Apply(const RowBatch& batch, IdSlot* slot, std::vector<IdSlot>* scratch) const;
  // The first column of the feature.
  size_t input() const { return members_.front().input; }
  // Of the ids that Apply has made of a column with one value per row, those of values that have no
  // id of their own. `column` stays empty.
  OddCells Unknown(const RowBatch& batch, const IdSlot& slot) const;

 private:
  struct Member {
    size_t input = 0;
    bool tensor = false;  // the cell holds several ids
    CellCategorizer categorizer;
  };
  static Result<Member> MakeMember(const FeaturePlan& plan, const Feature& feature, int input,
                                   const Categorizer& spec);
  Status ApplyMember(const Member& member, const RowBatch& batch, IdSlot* slot) const;
  Status Cross(size_t rows, const std::vector<IdSlot>& ids, IdSlot* slot) const;
  void CrossSingles(size_t rows, const std::vector<IdSlot>& ids, IdSlot* slot) const;
  Status CrossLists(size_t rows, const std::vector<IdSlot>& ids, IdSlot* slot) const;

  std::string name_;
  bool cross_ = false;
  bool weighted_ = false;
  uint32_t buckets_ = 0;
  uint32_t hash_buckets_ = 0;  // of a cross, without its NULL bucket at the end
  uint32_t null_id_ = kNoId;   // of a cross
  CellLayout layout_;
  std::vector<Member> members_;       // one without cross
  std::optional<WordFeature> words_;  // of a column of free text
};

}  // namespace sluice::models
