#include "models/trees/histogram/row_share.h"

#include <algorithm>
#include <numeric>

#include "models/trees/histogram/number_text.h"

namespace sluice::models::histogram {
namespace {

constexpr size_t kBlock = 256;         // rows whose derivatives are computed together
constexpr size_t kRowsPerTask = 8192;  // a multiple of it
// Partial histograms of all threads, at most.
constexpr size_t kMostPartialBytes = 128U << 20U;

// take(value, weight) for each row.
template <typename Take>
void EachLabel(std::span<const float> labels, std::span<const float> weights,
               const Objective& objective, Take take) {
  for (size_t r = 0; r < labels.size(); ++r) {
    const double weight = weights.empty() ? 1 : static_cast<double>(weights[r]);
    take(objective.ToMean(labels[r]).value_or(0), weight * objective.WeightInMean(labels[r]));
  }
}

}  // namespace

GradientRange MeasureLabels(std::span<const float> labels, std::span<const float> weights,
                            const Objective& objective) {
  GradientRange range;
  EachLabel(labels, weights, objective, [&](double value, double weight) {
    range.Merge({std::fabs(value * weight), weight});
  });
  return range;
}

std::optional<GradientRange> BoundsOf(const Objective& objective, float weight) {
  const std::optional<GradientRange> bounds = objective.Bounds();
  if (!bounds.has_value()) {
    return std::nullopt;
  }
  const auto most = static_cast<double>(weight);
  return GradientRange{bounds->gradient * most, bounds->hessian * most};
}

RowShare::RowShare(const CutPoints* cuts, bool sparse, const Objective* objective, Threads* threads,
                   uint64_t first_row)
    : cuts_(cuts),
      objective_(objective),
      threads_(threads),
      first_row_(first_row),
      bins_(cuts, sparse) {}

void RowShare::Reserve(size_t rows) {
  bins_.Reserve(rows);
  labels_.reserve(rows);
}

void RowShare::Append(const RowMatrix& rows, std::span<const float> labels,
                      std::span<const float> weights, std::span<const float> margins) {
  bins_.Append(rows, threads_);
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  weights_.insert(weights_.end(), weights.begin(), weights.end());
  margins_.insert(margins_.end(), margins.begin(), margins.end());
}

std::string RowShare::Write() const {
  std::string bytes;
  WriteNumbers(labels_, &bytes);
  WriteNumbers(weights_, &bytes);
  bins_.Write(&bytes);
  return bytes;
}

bool RowShare::AppendWritten(std::string_view bytes) {
  return AppendNumbers(&bytes, &labels_) && AppendNumbers(&bytes, &weights_) &&
         bins_.AppendWritten(bytes) && labels_.size() == bins_.rows() &&
         (weights_.empty() || weights_.size() == bins_.rows());
}

template <typename Take>
void RowShare::Derive(Take take) const {
  const size_t outputs = objective_->outputs();
  threads_->RunPieces(rows(), kRowsPerTask, [&](size_t begin, size_t end, size_t) {
    std::vector<double> gradients(kBlock * outputs), hessians(kBlock * outputs);
    for (size_t first = begin; first < end; first += kBlock) {
      const size_t count = std::min(kBlock, end - first);
      objective_->Derive(labels_.data() + first, margins_.data() + first * outputs, count,
                         gradients.data(), hessians.data());
      if (!weights_.empty()) {
        for (size_t i = 0; i < count * outputs; ++i) {
          const auto weight = static_cast<double>(weights_[first + i / outputs]);
          gradients[i] *= weight;
          hessians[i] *= weight;
        }
      }
      take(first, count, gradients.data(), hessians.data());
    }
  });
}

GradientSum RowShare::SumLabels(const GradientScale& scale) const {
  GradientSum sum;
  EachLabel(labels_, weights_, *objective_, [&](double value, double weight) {
    sum.Add(GradientScale::Unpack(scale.Pack(value * weight, weight)));
  });
  return sum;
}

float RowShare::MostWeight() const {
  return weights_.empty() ? 1.0F : *std::max_element(weights_.begin(), weights_.end());
}

std::vector<GradientRange> RowShare::MeasureRange() const {
  const size_t outputs = objective_->outputs();
  if (const std::optional<GradientRange> bounds = BoundsOf(*objective_, MostWeight())) {
    return std::vector<GradientRange>(outputs, *bounds);
  }
  std::vector<GradientRange> all(outputs);
  Mutex mutex;
  Derive([&](size_t, size_t count, const double* gradients, const double* hessians) {
    std::vector<GradientRange> own(outputs);
    for (size_t i = 0; i < count * outputs; ++i) {
      own[i % outputs].Merge({std::fabs(gradients[i]), hessians[i]});
    }
    const MutexLock lock(mutex);
    for (size_t k = 0; k < outputs; ++k) {
      all[k].Merge(own[k]);
    }
  });
  return all;
}

void RowShare::BeginRound(std::span<const GradientScale> scales) {
  const size_t outputs = objective_->outputs();
  words_.resize(rows() * outputs);
  Derive([&](size_t first, size_t count, const double* gradients, const double* hessians) {
    for (size_t k = 0; k < outputs; ++k) {
      uint64_t* words = words_.data() + k * rows() + first;
      for (size_t i = 0; i < count; ++i) {
        words[i] = scales[k].Pack(gradients[i * outputs + k], hessians[i * outputs + k]);
      }
    }
  });
}

GradientSum RowShare::BeginTree(size_t output, const RowSample& sample) {
  output_ = output;
  order_.resize(rows());
  if (sample.all()) {
    std::iota(order_.begin(), order_.end(), 0);
  } else {
    size_t chosen = 0;
    for (size_t row = 0; row < rows(); ++row) {
      order_[chosen] = static_cast<uint32_t>(row);
      chosen += sample.Has(first_row_ + row) ? 1 : 0;
    }
    order_.resize(chosen);
  }
  parted_.resize(order_.size());
  places_.assign(1, {0, order_.size()});
  last_.clear();
  const uint64_t* words = words_.data() + output_ * rows();
  GradientSum total;
  Mutex mutex;
  threads_->RunPieces(order_.size(), kRowsPerTask, [&](size_t begin, size_t end, size_t) {
    GradientSum own;
    for (size_t i = begin; i < end; ++i) {
      own.Add(GradientScale::Unpack(words[order_[i]]));
    }
    const MutexLock lock(mutex);
    total.Add(own);
  });
  return total;
}

void RowShare::AddHistograms(std::span<const int32_t> nodes,
                             std::span<Histogram* const> sums) const {
  const uint64_t* words = words_.data() + output_ * rows();
  if (threads_->count() == 1) {
    for (size_t n = 0; n < nodes.size(); ++n) {
      bins_.AddTo(RowsOf(nodes[n]), words, sums[n]);
    }
    return;
  }
  const size_t bytes = cuts_->all_bins() * sizeof(GradientSum) * threads_->count();
  const size_t together = std::max<size_t>(1, kMostPartialBytes / std::max<size_t>(1, bytes));
  for (size_t first = 0; first < nodes.size(); first += together) {
    const size_t count = std::min(together, nodes.size() - first);
    std::vector<std::vector<Histogram>> partial(threads_->count(), std::vector<Histogram>(count));
    std::vector<std::pair<size_t, size_t>> tasks;  // node, first row
    for (size_t n = 0; n < count; ++n) {
      for (size_t row = 0; row < RowsOf(nodes[first + n]).size(); row += kRowsPerTask) {
        tasks.emplace_back(n, row);
      }
    }
    threads_->Run(tasks.size(), [&](size_t i, size_t thread) {
      const auto [n, row] = tasks[i];
      const std::span<const uint32_t> all = RowsOf(nodes[first + n]);
      Histogram& own = partial[thread][n];
      own.resize(cuts_->all_bins());
      bins_.AddTo(all.subspan(row, std::min(kRowsPerTask, all.size() - row)), words, &own);
    });
    threads_->Run(count, [&](size_t n, size_t) {
      for (const std::vector<Histogram>& own : partial) {
        AddTo(own[n], sums[first + n]);
      }
    });
  }
}

void RowShare::Split(std::span<const NodeSplit> splits) {
  std::vector<NodeSplit> parted;
  for (const NodeSplit& split : splits) {
    places_.resize(std::max(places_.size(), static_cast<size_t>(split.left) + 2));
    (split.last ? last_ : parted).push_back(split);
  }
  Part(parted);
}

void RowShare::Part(std::span<const NodeSplit> splits) {
  struct Task {
    size_t split, begin, end;
    size_t left = 0;    // how many go left
    size_t before = 0;  // and of those, in earlier tasks of the node
  };
  std::vector<Task> tasks;
  std::vector<std::vector<uint8_t>> sides;
  for (size_t s = 0; s < splits.size(); ++s) {
    const Places places = places_[static_cast<size_t>(splits[s].node)];
    for (size_t begin = places.begin; begin < places.end; begin += kRowsPerTask) {
      tasks.push_back({s, begin, std::min(places.end, begin + kRowsPerTask)});
    }
    sides.push_back(splits[s].rule.Sides(cuts_->bins(splits[s].rule.column)));
  }
  threads_->Run(tasks.size(), [&](size_t i, size_t) {
    Task& task = tasks[i];
    // Those that go left to the front, the others behind them; both keep their order.
    uint32_t rights[kRowsPerTask];
    uint32_t* to = parted_.data() + task.begin;
    size_t left = 0, right = 0;
    bins_.EachSide({order_.data() + task.begin, task.end - task.begin},
                   splits[task.split].rule.column, sides[task.split],
                   [&](uint32_t row, size_t goes_left) {
                     to[left] = row;
                     rights[right] = row;
                     left += goes_left;
                     right += 1 - goes_left;
                   });
    std::copy_n(rights, right, to + left);
    task.left = left;
  });
  std::vector<size_t> left(splits.size(), 0);
  for (Task& task : tasks) {
    task.before = left[task.split];
    left[task.split] += task.left;
  }
  threads_->Run(tasks.size(), [&](size_t i, size_t) {
    const Task& task = tasks[i];
    const Places& places = places_[static_cast<size_t>(splits[task.split].node)];
    const uint32_t* from = parted_.data() + task.begin;
    const size_t rights_before = task.begin - places.begin - task.before;
    std::copy_n(from, task.left, order_.data() + places.begin + task.before);
    std::copy_n(from + task.left, task.end - task.begin - task.left,
                order_.data() + places.begin + left[task.split] + rights_before);
  });
  for (size_t s = 0; s < splits.size(); ++s) {
    const auto child = static_cast<size_t>(splits[s].left);
    const Places places = places_[static_cast<size_t>(splits[s].node)];
    places_[child] = {places.begin, places.begin + left[s]};
    places_[child + 1] = {places.begin + left[s], places.end};
  }
}

std::vector<std::vector<uint8_t>> RowShare::SidesOf(const Tree& tree) const {
  std::vector<std::vector<uint8_t>> sides;
  for (const Tree::Node& node : tree.nodes) {
    sides.push_back(node.left < 0 ? std::vector<uint8_t>()
                                  : node.split.Sides(cuts_->bins(node.split.column)));
  }
  return sides;
}

float RowShare::LeafOf(const Tree& tree, const std::vector<std::vector<uint8_t>>& sides,
                       size_t row) const {
  size_t node = 0;
  while (tree.nodes[node].left >= 0) {
    const uint32_t bin = bins_.BinOf(row, tree.nodes[node].split.column);
    node = static_cast<size_t>(tree.nodes[node].left) + (sides[node][bin] != 0 ? 0 : 1);
  }
  return tree.nodes[node].value;
}

void RowShare::EndTree(const Tree& tree) {
  const size_t outputs = objective_->outputs();
  if (order_.size() < rows()) {  // rows that the tree was not grown on
    AddTree(tree, output_);
    return;
  }
  const auto value_of = [&](int32_t node) { return tree.nodes[static_cast<size_t>(node)].value; };
  std::vector<int32_t> leaves;
  for (size_t n = 0; n < tree.nodes.size(); ++n) {
    if (tree.nodes[n].left < 0) {
      leaves.push_back(static_cast<int32_t>(n));
    }
  }
  threads_->Run(leaves.size(), [&](size_t i, size_t) {
    const float value = value_of(leaves[i]);
    for (const uint32_t row : RowsOf(leaves[i])) {
      margins_[row * outputs + output_] += value;
    }
  });
  threads_->Run(last_.size(), [&](size_t i, size_t) {
    const NodeSplit& split = last_[i];
    const float values[] = {value_of(split.left + 1), value_of(split.left)};
    bins_.EachSide(
        RowsOf(split.node), split.rule.column, split.rule.Sides(cuts_->bins(split.rule.column)),
        [&](uint32_t row, size_t left) { margins_[row * outputs + output_] += values[left]; });
  });
}

void RowShare::AddTree(const Tree& tree, size_t output) {
  const size_t outputs = objective_->outputs();
  const std::vector<std::vector<uint8_t>> sides = SidesOf(tree);
  threads_->RunPieces(rows(), kRowsPerTask, [&](size_t begin, size_t end, size_t) {
    for (size_t row = begin; row < end; ++row) {
      margins_[row * outputs + output] += LeafOf(tree, sides, row);
    }
  });
}

}  // namespace sluice::models::histogram
