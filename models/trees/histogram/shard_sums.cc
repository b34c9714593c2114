#include "models/trees/histogram/shard_sums.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/model.pb.h"
#include "models/trees/gradient_boosting_internal.h"
#include "models/trees/histogram/followed_shard_internal.h"
#include "models/trees/histogram/number_text.h"
#include "models/trees/histogram/objective.h"
#include "models/trees/histogram/reading.h"
#include "models/trees/histogram/round_metrics.h"
#include "models/trees/histogram/row_share.h"
#include "models/trees/histogram/settings.h"
#include "models/trees/histogram/tree_messages_internal.h"
#include "models/trees/histogram/tree_pass.pb.h"

namespace sluice::models::histogram {
namespace {

// A shard that others have had for so many trees is dropped: it is with them.
constexpr size_t kTreesUntilDropped = 2;

// `rows` must live as long.
GradientBoosting::BatchSource SourceOf(const FeatureBatch& rows) {
  static const FeatureBatch kEnd;
  return {.next = [&rows, ended = false]() mutable -> Result<const FeatureBatch*> {
            return std::exchange(ended, true) ? &kEnd : &rows;
          },
          .rewind = [] { return OkStatus(); },
          .most_kept = 0};
}

class ShardSums final : public PassSums {
 public:
  ShardSums(std::unique_ptr<FeatureTransform> transform, ColumnLayout layout,
            BoostingParameters parameters)
      : transform_(std::move(transform)),
        layout_(std::move(layout)),
        parameters_(std::move(parameters)),
        settings_(SettingsOf(parameters_)),
        objective_(Objective::Make(settings_.objective)),
        threads_(static_cast<size_t>(std::max(1, parameters_.training_threads))) {}

  Result<bool> Begin(const std::string& pass) override;
  bool NeedsRows(int64_t shard) const override {
    return pass_.question() == TreePass::COUNT || !shards_.contains(shard) || pass_.hold_out();
  }
  Status Add(int64_t shard, const FeatureBatch* training, const FeatureBatch* held_out) override;
  std::string Take() override;

 private:
  Result<std::unique_ptr<RowShare>> Bin(const FeatureBatch& rows, uint64_t first_row);
  Status Count(int64_t shard, const FeatureBatch& rows);
  Status AddLabels(int64_t shard, const RowShare& rows, const FeatureBatch* held_out);
  void AddRange(const RowShare& rows);
  void AddErrors(const RowShare& rows);
  Status Check(const TreePass& pass) const;
  void Clear();

  const std::unique_ptr<FeatureTransform> transform_;
  const ColumnLayout layout_;
  const BoostingParameters parameters_;
  const Settings settings_;
  const std::unique_ptr<Objective> objective_;
  Threads threads_;

  std::unique_ptr<CutPoints> cuts_;
  std::string cuts_as_told_;
  std::vector<uint64_t> first_rows_;
  KnownForest forest_;
  std::map<int64_t, FollowedShard> shards_;
  TreePass pass_;

  // The answer so far.
  std::vector<ValueCounts> counts_;
  CountAnswer counted_;
  GradientRange labels_;
  LabelAnswer label_answer_;
  std::vector<GradientRange> ranges_;
  GradientSum total_;
  std::vector<Histogram> sums_;
  std::vector<ErrorSum> errors_;
};

Result<bool> ShardSums::Begin(const std::string& bytes) {
  TreePass pass;
  if (!pass.ParseFromString(bytes)) {
    return InvalidArgument("a pass that is damaged");
  }
  if (!pass.cuts().empty() && pass.cuts() != cuts_as_told_) {
    shards_.clear();  // their bins are of the cuts before
    ASSIGN_OR_RETURN(CutPoints cuts, CutPoints::Read(pass.cuts()));
    if (cuts.columns() != layout_.columns()) {
      return InvalidArgument("a pass that is damaged");
    }
    cuts_ = std::make_unique<CutPoints>(std::move(cuts));
    cuts_as_told_ = pass.cuts();
    first_rows_.assign(pass.first_rows().begin(), pass.first_rows().end());
  }
  const bool follows = cuts_ != nullptr && forest_.complete() >= pass.trees_before();
  if (!follows && pass.question() != TreePass::COUNT) {
    return false;
  }
  RETURN_IF_ERROR(Check(pass));
  if (pass.has_margin()) {
    forest_.margin = pass.margin();
  }
  forest_.trees.resize(std::min<size_t>(forest_.complete(), pass.trees_before()));
  forest_.trees.insert(forest_.trees.end(), pass.trees().begin(), pass.trees().end());
  forest_.round_begin = pass.round_begin();
  forest_.scales.clear();
  for (const LargestDerivatives& range : pass.ranges()) {
    forest_.scales.emplace_back(FromProto(range));
  }
  pass.clear_trees();
  pass_ = std::move(pass);
  // A master that has taken over knows fewer trees than its shards may have followed.
  const size_t complete = forest_.complete();
  std::erase_if(shards_, [&](const auto& shard) {
    return shard.second.trees() > complete || shard.second.trees() + kTreesUntilDropped < complete;
  });
  Clear();
  return true;
}

// Not what no master asks: a process is not ended by it.
Status ShardSums::Check(const TreePass& pass) const {
  const Status damaged = InvalidArgument("a pass that is damaged");
  const bool begins = pass.question() == TreePass::COUNT;
  const bool sums = pass.question() == TreePass::ROOT || pass.question() == TreePass::NODES;
  const bool open = !pass.trees().empty() && pass.trees().rbegin()->values().empty();
  const auto outputs = static_cast<int>(objective_->outputs());
  const bool known =
      std::all_of(pass.metrics().begin(), pass.metrics().end(), [&](const std::string& name) {
        return IsMean(name) && KnowsMetric(name, objective_->outputs());
      });
  if (begins ? pass.trees_size() > 0 || pass.nodes_size() > 0
             : sums != open || !known ||
                   (pass.ranges_size() != outputs && (sums || pass.ranges_size() > 0)) ||
                   pass.round_begin() > pass.trees_before() + uint64_t(pass.trees_size())) {
    return damaged;
  }
  for (int i = 0; i < pass.trees_size(); ++i) {
    const GrownTree& tree = pass.trees(i);
    RETURN_IF_ERROR(CheckTree(tree, *cuts_));
    if (tree.output() >= objective_->outputs() ||
        (tree.values().empty() && i + 1 < pass.trees_size())) {
      return damaged;
    }
  }
  const int32_t nodes = open ? 2 * pass.trees().rbegin()->splits_size() + 1 : 0;
  return std::all_of(pass.nodes().begin(), pass.nodes().end(),
                     [nodes](int32_t node) { return node >= 0 && node < nodes; })
             ? OkStatus()
             : damaged;
}

void ShardSums::Clear() {
  counts_.assign(pass_.question() == TreePass::COUNT ? layout_.columns() : 0, {});
  counted_.Clear();
  labels_ = {};
  label_answer_.Clear();
  ranges_.assign(objective_->outputs(), {});
  total_ = {};
  const size_t nodes =
      pass_.question() == TreePass::ROOT ? 1 : static_cast<size_t>(pass_.nodes_size());
  sums_.resize(nodes);
  for (Histogram& sum : sums_) {
    sum.assign(cuts_->all_bins(), {});
  }
  errors_.assign(static_cast<size_t>(pass_.metrics_size()), {});
}

Result<std::unique_ptr<RowShare>> ShardSums::Bin(const FeatureBatch& rows, uint64_t first_row) {
  const GradientBoosting::BatchSource source = SourceOf(rows);
  RowPieces pieces(source, layout_, parameters_, {});
  return ReadShare(&pieces, {.layout = &layout_,
                             .cuts = cuts_.get(),
                             .objective = objective_.get(),
                             .threads = &threads_,
                             .first_row = first_row,
                             .rows = rows.rows});
}

Status ShardSums::Count(int64_t shard, const FeatureBatch& rows) {
  const GradientBoosting::BatchSource source = SourceOf(rows);
  RowPieces pieces(source, layout_, parameters_, {});
  while (true) {
    ASSIGN_OR_RETURN(const bool more, pieces.Next(RowPieces::Left::kNothing));
    if (!more) {
      break;
    }
    RETURN_IF_ERROR(CheckLabels(pieces.labels(), *objective_, parameters_));
    CountValues(pieces.matrix(), layout_.sparse(), &threads_, &counts_);
    labels_.Merge(MeasureLabels(pieces.labels(), pieces.weights(), *objective_));
    const std::vector<float>& weights = pieces.weights();
    const float most = weights.empty() ? 1.0F : *std::max_element(weights.begin(), weights.end());
    counted_.set_most_weight(std::max(counted_.most_weight(), most));
  }
  RowsOfShard* counted = counted_.add_shards();
  counted->set_shard(shard);
  counted->set_rows(rows.rows);
  return OkStatus();
}

Status ShardSums::AddLabels(int64_t shard, const RowShare& rows, const FeatureBatch* held_out) {
  const GradientSum sum = rows.SumLabels(GradientScale(FromProto(pass_.labels())));
  label_answer_.set_gradient(label_answer_.gradient() + sum.gradient);
  label_answer_.set_hessian(label_answer_.hessian() + sum.hessian);
  if (!pass_.hold_out()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<RowShare> apart, Bin(*held_out, 0));
  RETURN_IF_ERROR(CheckLabels(apart->labels(), *objective_, parameters_));
  RowsHeldOut* one = label_answer_.add_held_out();
  one->set_shard(shard);
  one->set_rows(apart->Write());
  return OkStatus();
}

void ShardSums::AddRange(const RowShare& rows) {
  const std::vector<GradientRange> own = rows.MeasureRange();
  for (size_t i = 0; i < own.size(); ++i) {
    ranges_[i].Merge(own[i]);
  }
}

void ShardSums::AddErrors(const RowShare& rows) {
  constexpr int kBits = 20;  // so that sums have no order
  const auto rounded = [](double x) {
    return std::ldexp(std::nearbyint(std::ldexp(x, kBits)), -kBits);
  };
  for (size_t i = 0; i < errors_.size(); ++i) {
    const ErrorSum own = SumErrors(pass_.metrics(static_cast<int>(i)), settings_.objective,
                                   *objective_, rows, &threads_);
    errors_[i].errors += rounded(own.errors);
    errors_[i].weights += rounded(own.weights);
  }
}

Status ShardSums::Add(int64_t shard, const FeatureBatch* training, const FeatureBatch* held_out) {
  if (pass_.question() == TreePass::COUNT) {
    return Count(shard, *training);
  }
  auto found = shards_.find(shard);
  if (found == shards_.end()) {
    if (shard < 0 || static_cast<size_t>(shard) >= first_rows_.size()) {
      return Internal("a pass over other rows than were counted");
    }
    ASSIGN_OR_RETURN(std::unique_ptr<RowShare> rows,
                     Bin(*training, first_rows_[static_cast<size_t>(shard)]));
    found = shards_.emplace(shard, FollowedShard(settings_, std::move(rows))).first;
  }
  FollowedShard& followed = found->second;
  if (pass_.question() == TreePass::LABELS) {
    return AddLabels(shard, followed.rows(), held_out);
  }
  followed.Follow(forest_);
  switch (pass_.question()) {
    case TreePass::RANGE:
      AddRange(followed.rows());
      break;
    case TreePass::METRICS:
      AddErrors(followed.rows());
      break;
    default: {
      total_.Add(followed.total());
      std::vector<int32_t> nodes(pass_.nodes().begin(), pass_.nodes().end());
      if (pass_.question() == TreePass::ROOT) {
        nodes = {0};
      }
      std::vector<Histogram*> to;
      for (Histogram& sum : sums_) {
        to.push_back(&sum);
      }
      followed.rows().AddHistograms(nodes, to);
    }
  }
  return OkStatus();
}

std::string ShardSums::Take() {
  std::string bytes;
  switch (pass_.question()) {
    case TreePass::COUNT: {
      std::string counts;
      for (const ValueCounts& column : counts_) {
        column.Write(&counts);
      }
      counted_.set_counts(std::move(counts));
      counted_.mutable_labels()->set_gradient(labels_.gradient);
      counted_.mutable_labels()->set_hessian(labels_.hessian);
      bytes = counted_.SerializeAsString();
      break;
    }
    case TreePass::LABELS:
      bytes = label_answer_.SerializeAsString();
      break;
    case TreePass::RANGE:
      for (const GradientRange& range : ranges_) {
        WriteNumber(range, &bytes);
      }
      break;
    case TreePass::METRICS:
      for (const ErrorSum& sum : errors_) {
        WriteNumber(sum, &bytes);
      }
      break;
    default:
      if (pass_.question() == TreePass::ROOT) {
        WriteNumber(total_, &bytes);
      }
      for (const Histogram& sum : sums_) {
        bytes.append(reinterpret_cast<const char*>(sum.data()), sum.size() * sizeof(GradientSum));
      }
  }
  Clear();
  return bytes;
}

}  // namespace

Result<std::unique_ptr<PassSums>> MakeShardSums(const ModelSpec& spec) {
  ASSIGN_OR_RETURN(BoostingParameters parameters, ParametersOf(spec));
  ASSIGN_OR_RETURN(auto transform,
                   FeatureTransform::Make(spec.features(), FeatureTransform::Target::kTrees));
  ASSIGN_OR_RETURN(ColumnLayout layout, ColumnLayout::Make(spec, *transform, parameters));
  return std::unique_ptr<PassSums>(
      std::make_unique<ShardSums>(std::move(transform), std::move(layout), std::move(parameters)));
}

}  // namespace sluice::models::histogram
