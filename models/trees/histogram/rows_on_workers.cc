#include "models/trees/histogram/rows_on_workers_internal.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "models/trees/histogram/number_text.h"
#include "models/trees/histogram/reading.h"
#include "models/trees/histogram/round_metrics.h"
#include "models/trees/histogram/tree_messages_internal.h"

namespace sluice::models::histogram {
namespace {

Status OfAnotherModel() {
  return Internal("a worker's sums are of another model");
}

template <typename Message>
Result<std::vector<Message>> Parse(const std::vector<std::string>& answers) {
  std::vector<Message> parsed(answers.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!parsed[i].ParseFromString(answers[i])) {
      return OfAnotherModel();
    }
  }
  return parsed;
}

// Takes the sums of a histogram from the front of `bytes`.
bool AddSums(std::string_view* bytes, Histogram* to) {
  const size_t size = to->size() * sizeof(GradientSum);
  if (bytes->size() < size) {
    return false;
  }
  for (GradientSum& sum : *to) {
    GradientSum own;
    ReadNumber(bytes, &own);
    sum.Add(own);
  }
  return true;
}

}  // namespace

// What a worker needs that joins: it only grows. Thread-safe.
class RowsOnWorkers::History {
 public:
  void Append(const std::string& bytes) {
    const MutexLock lock(mutex_);
    bytes_ += bytes;
  }
  size_t size() const {
    const MutexLock lock(mutex_);
    return bytes_.size();
  }
  // Serialised messages one after the other are their merged message.
  std::string With(size_t size, const std::string& further) const {
    const MutexLock lock(mutex_);
    return bytes_.substr(0, size) + further;
  }

 private:
  mutable Mutex mutex_;
  std::string bytes_ GUARDED_BY(mutex_);
};

RowsOnWorkers::RowsOnWorkers(const Training& training, const Objective& objective, Threads* threads,
                             const PassRun& run)
    : training_(training),
      objective_(objective),
      threads_(*threads),
      run_(run),
      history_(std::make_shared<History>()) {}

RowsOnWorkers::~RowsOnWorkers() = default;

Result<std::vector<std::string>> RowsOnWorkers::Ask(TreePass question) {
  if (training_.stop.stop_requested()) {
    return Cancelled("the training was cancelled");
  }
  if (step_.has_margin()) {
    question.set_margin(step_.margin());
  }
  question.set_round_begin(step_.round_begin());
  *question.mutable_ranges() = step_.ranges();
  TreePass last = question;  // besides the history
  question.set_trees_before(trees_told_);
  *question.mutable_trees() = step_.trees();
  if (open_.has_value()) {
    *question.add_trees() = *open_;
    *last.add_trees() = *open_;
  }
  Pass pass;
  pass.step = question.SerializeAsString();
  pass.whole = [history = history_, size = history_->size(), rest = last.SerializeAsString()] {
    return history->With(size, rest);
  };
  trees_told_ = trees_;
  step_.clear_trees();
  return run_(pass);
}

Result<std::vector<ValueCounts>> RowsOnWorkers::Count() {
  TreePass question;
  question.set_question(TreePass::COUNT);
  ASSIGN_OR_RETURN(const std::vector<std::string> answers, Ask(question));
  ASSIGN_OR_RETURN(const std::vector<CountAnswer> parts, Parse<CountAnswer>(answers));
  std::vector<ValueCounts> counts(training_.layout->columns());
  std::map<int64_t, uint64_t> rows;  // of each shard
  for (const CountAnswer& part : parts) {
    labels_.Merge({part.labels().gradient(), part.labels().hessian()});
    most_weight_ = std::max(most_weight_, part.most_weight());
    for (const RowsOfShard& shard : part.shards()) {
      rows[shard.shard()] = shard.rows();
    }
    std::string_view bytes = part.counts();
    for (ValueCounts& column : counts) {
      if (!column.MergeWritten(&bytes)) {
        return OfAnotherModel();
      }
    }
  }
  int64_t next = 0;
  for (const auto& [shard, count] : rows) {
    if (shard != next++) {
      return OfAnotherModel();
    }
    first_rows_.push_back(rows_);
    rows_ += count;
  }
  if (rows_ == 0) {
    return InvalidArgument("no rows to train on: the select is empty").SqlState("02000");
  }
  return counts;
}

Status RowsOnWorkers::Bin(const CutPoints* cuts) {
  cuts_ = cuts;
  TreePass known;
  known.set_cuts(cuts->Write());
  known.mutable_first_rows()->Add(first_rows_.begin(), first_rows_.end());
  history_->Append(known.SerializeAsString());
  TreePass question;
  question.set_question(TreePass::LABELS);
  *question.mutable_labels() = ToProto(labels_);
  question.set_hold_out(training_.holds_out);
  ASSIGN_OR_RETURN(const std::vector<std::string> answers, Ask(question));
  ASSIGN_OR_RETURN(const std::vector<LabelAnswer> parts, Parse<LabelAnswer>(answers));
  for (const LabelAnswer& part : parts) {
    label_sum_.Add({part.gradient(), part.hessian()});
  }
  return training_.validation->next ? ReadHeldOut() : HoldOut(parts);
}

Status RowsOnWorkers::HoldOut(const std::vector<LabelAnswer>& answers) {
  std::map<int64_t, const std::string*> shards;  // in their order
  for (const LabelAnswer& answer : answers) {
    for (const RowsHeldOut& rows : answer.held_out()) {
      shards[rows.shard()] = &rows.rows();
    }
  }
  if (shards.empty()) {
    return OkStatus();
  }
  held_out_ = std::make_unique<RowShare>(cuts_, training_.layout->sparse(), &objective_, &threads_);
  for (const auto& [shard, rows] : shards) {
    if (!held_out_->AppendWritten(*rows)) {
      return OfAnotherModel();
    }
  }
  return held_out_->rows() > 0 ? CheckLabels(held_out_->labels(), objective_, *training_.parameters)
                               : InvalidArgument("no rows to validate on: the select is empty");
}

Status RowsOnWorkers::ReadHeldOut() {
  RowPieces pieces(*training_.validation, *training_.layout, *training_.parameters, training_.stop);
  RETURN_IF_ERROR(pieces.RequireRows("to validate on"));
  ASSIGN_OR_RETURN(held_out_, ReadShare(&pieces, {.layout = training_.layout,
                                                  .cuts = cuts_,
                                                  .objective = &objective_,
                                                  .threads = &threads_}));
  return CheckLabels(held_out_->labels(), objective_, *training_.parameters);
}

void RowsOnWorkers::StartFrom(float margin) {
  step_.set_margin(margin);
}

Result<std::vector<GradientRange>> RowsOnWorkers::MeasureRange() {
  const size_t outputs = objective_.outputs();
  if (const std::optional<GradientRange> bounds = BoundsOf(objective_, most_weight_)) {
    return std::vector<GradientRange>(outputs, *bounds);
  }
  TreePass question;
  question.set_question(TreePass::RANGE);
  ASSIGN_OR_RETURN(const std::vector<std::string> answers, Ask(question));
  std::vector<GradientRange> all(outputs);
  for (const std::string& answer : answers) {
    std::string_view bytes = answer;
    for (GradientRange& range : all) {
      GradientRange own;
      if (!ReadNumber(&bytes, &own)) {
        return OfAnotherModel();
      }
      range.Merge(own);
    }
  }
  return all;
}

void RowsOnWorkers::BeginRound(std::span<const GradientRange> ranges) {
  step_.set_round_begin(trees_);
  step_.clear_ranges();
  for (const GradientRange& range : ranges) {
    *step_.add_ranges() = ToProto(range);
  }
}

Result<GradientSum> RowsOnWorkers::BeginTree(size_t output, uint64_t name) {
  open_.emplace();
  open_->set_output(static_cast<uint32_t>(output));
  open_->set_name(name);
  TreePass question;
  question.set_question(TreePass::ROOT);
  ASSIGN_OR_RETURN(const std::vector<std::string> answers, Ask(question));
  GradientSum total;
  root_.emplace(cuts_->all_bins());
  for (const std::string& answer : answers) {
    std::string_view bytes = answer;
    GradientSum own;
    if (!ReadNumber(&bytes, &own) || !AddSums(&bytes, &*root_)) {
      return OfAnotherModel();
    }
    total.Add(own);
  }
  return total;
}

Result<std::vector<Histogram>> RowsOnWorkers::Sum(std::span<const int32_t> nodes) {
  std::vector<Histogram> sums;
  if (nodes.empty()) {
    return sums;
  }
  if (root_.has_value()) {  // it is the only node yet
    sums.push_back(*std::exchange(root_, std::nullopt));
    return sums;
  }
  TreePass question;
  question.set_question(TreePass::NODES);
  question.mutable_nodes()->Add(nodes.begin(), nodes.end());
  ASSIGN_OR_RETURN(const std::vector<std::string> answers, Ask(std::move(question)));
  sums.assign(nodes.size(), Histogram(cuts_->all_bins()));
  for (const std::string& answer : answers) {
    std::string_view bytes = answer;
    for (Histogram& sum : sums) {
      if (!AddSums(&bytes, &sum)) {
        return OfAnotherModel();
      }
    }
  }
  return sums;
}

void RowsOnWorkers::Split(std::span<const RowShare::NodeSplit> splits) {
  AddSplits(splits, &*open_);
}

void RowsOnWorkers::EndTree(const Tree& tree) {
  AddNodes(tree, &*open_);
  AddTree(*std::exchange(open_, std::nullopt));
  root_.reset();
}

void RowsOnWorkers::AddTree(const GrownTree& tree) {
  TreePass known;
  *known.add_trees() = tree;
  history_->Append(known.SerializeAsString());
  *step_.add_trees() = tree;
  ++trees_;
}

void RowsOnWorkers::Describe(ForestStart* start) const {
  start->mutable_first_rows()->Add(first_rows_.begin(), first_rows_.end());
  start->set_rows(rows_);
  *start->mutable_labels() = ToProto(labels_);
  start->set_most_weight(most_weight_);
}

Status RowsOnWorkers::GoOn(const ForestStart& start, const CutPoints* cuts) {
  first_rows_.assign(start.first_rows().begin(), start.first_rows().end());
  rows_ = start.rows();
  labels_ = FromProto(start.labels());
  most_weight_ = start.most_weight();
  return Bin(cuts);
}

Result<RoundMetrics> RowsOnWorkers::Metrics(const std::vector<std::string>& names) {
  TreePass question;
  question.set_question(TreePass::METRICS);
  for (const std::string& name : names) {
    if (IsMean(name)) {
      question.add_metrics(name);
    }
  }
  RoundMetrics metrics;
  if (question.metrics().empty()) {
    return metrics;
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> answers, Ask(question));
  std::vector<ErrorSum> sums(static_cast<size_t>(question.metrics_size()));
  for (const std::string& answer : answers) {
    std::string_view bytes = answer;
    for (ErrorSum& sum : sums) {
      ErrorSum own;
      if (!ReadNumber(&bytes, &own)) {
        return OfAnotherModel();
      }
      sum.errors += own.errors;
      sum.weights += own.weights;
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const std::string& name = question.metrics(static_cast<int>(i));
    metrics.emplace_back(name, MetricOf(name, sums[i]));
  }
  return metrics;
}

}  // namespace sluice::models::histogram
