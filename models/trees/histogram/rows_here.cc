#include "models/trees/histogram/rows_here.h"

#include <fmt/core.h>

#include "models/trees/histogram/reading.h"
#include "models/trees/histogram/round_metrics.h"
#include "models/trees/histogram/samples.h"
#include "models/trees/histogram/tree_messages_internal.h"

namespace sluice::models::histogram {

Result<std::vector<ValueCounts>> RowsHere::Count() {
  RETURN_IF_ERROR(pieces_.RequireRows("to train on"));
  std::vector<ValueCounts> counts(training_.layout->columns());
  while (true) {
    ASSIGN_OR_RETURN(const bool more, pieces_.Next(RowPieces::Left::kRows));
    if (!more) {
      return counts;
    }
    RETURN_IF_ERROR(CheckLabels(pieces_.labels(), objective_, *training_.parameters));
    counted_ += pieces_.matrix().rows();
    CountValues(pieces_.matrix(), training_.layout->sparse(), &threads_, &counts);
  }
}

Status RowsHere::Bin(const CutPoints* cuts) {
  cuts_ = cuts;
  pieces_.Restart();
  ShareOptions options{.layout = training_.layout,
                       .cuts = cuts,
                       .objective = &objective_,
                       .threads = &threads_,
                       .base = training_.base,
                       .rows = counted_};
  ASSIGN_OR_RETURN(rows_, ReadShare(&pieces_, options));
  if (!training_.validation->next) {
    return OkStatus();
  }
  RowPieces pieces(*training_.validation, *training_.layout, *training_.parameters, training_.stop);
  RETURN_IF_ERROR(pieces.RequireRows("to validate on"));
  options.rows = 0;
  ASSIGN_OR_RETURN(held_out_, ReadShare(&pieces, options));
  return CheckLabels(held_out_->labels(), objective_, *training_.parameters);
}

void RowsHere::Describe(ForestStart* start) const {
  start->set_rows(counted_);
}

Status RowsHere::GoOn(const ForestStart& start, const CutPoints* cuts) {
  RETURN_IF_ERROR(Count().status());  // their number, and whether their labels can be learnt
  if (counted_ != start.rows()) {
    return Status(Code::kAborted,
                  fmt::format("there were {} training rows, and now there are {}: the source has "
                              "changed since",
                              start.rows(), counted_))
        .SqlState("40001");
  }
  return Bin(cuts);
}

void RowsHere::AddTree(const GrownTree& tree) {
  rows_->AddTree(FromProto(tree), tree.output());
}

void RowsHere::BeginRound(std::span<const GradientRange> ranges) {
  rows_->BeginRound(std::vector<GradientScale>(ranges.begin(), ranges.end()));
}

Result<GradientSum> RowsHere::BeginTree(size_t output, uint64_t name) {
  return rows_->BeginTree(output, RowSample(settings_.rules, name));
}

Result<std::vector<Histogram>> RowsHere::Sum(std::span<const int32_t> nodes) {
  if (training_.stop.stop_requested()) {
    return Cancelled("the training was cancelled");
  }
  std::vector<Histogram> sums(nodes.size(), Histogram(cuts_->all_bins()));
  std::vector<Histogram*> to;
  for (Histogram& sum : sums) {
    to.push_back(&sum);
  }
  rows_->AddHistograms(nodes, to);
  return sums;
}

Result<RoundMetrics> RowsHere::Metrics(const std::vector<std::string>& names) {
  RoundMetrics metrics;
  for (const std::string& name : names) {
    metrics.emplace_back(name,
                         RoundMetric(name, settings_.objective, objective_, *rows_, &threads_));
  }
  return metrics;
}

}  // namespace sluice::models::histogram
