#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/model.pb.h"
#include "models/trees/gradient_boosting_internal.h"

namespace sluice::models {
namespace {

// libxgboost keeps a histogram per column and node: more columns would not fit in memory.
constexpr size_t kMaxColumns = 1 << 20;

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

}  // namespace

std::string ArrayInterface(const void* data, size_t rows, size_t columns, std::string_view type) {
  const std::string shape =
      columns == 0 ? fmt::format("[{}]", rows) : fmt::format("[{},{}]", rows, columns);
  return fmt::format(R"({{"data":[{},true],"shape":{},"typestr":"{}","version":3}})",
                     reinterpret_cast<uintptr_t>(data), shape, type);
}

Result<ColumnLayout> ColumnLayout::Make(const ModelSpec& spec, const FeatureTransform& transform,
                                        const BoostingParameters& parameters) {
  const bool linear = parameters.booster == BoostingParameters::Booster::kLinear;
  const FeaturePlan& plan = spec.features();
  const auto feature = [&plan](size_t position) -> const Feature& {
    return plan.features(static_cast<int>(position));
  };
  ColumnLayout layout;
  layout.dense_width_ = transform.dense_width();
  for (const Feature& one : plan.features()) {
    layout.names_.push_back(one.name());
  }
  layout.owners_.resize(layout.dense_width_);
  for (const DenseColumn& column : transform.dense_columns()) {
    std::fill_n(layout.owners_.begin() + static_cast<std::ptrdiff_t>(column.offset), column.width,
                static_cast<uint32_t>(column.feature));
    const Feature& own = feature(column.feature);
    const Unit unit = own.centred() ? Unit{own.offset(), own.scale()} : Unit();
    layout.units_.resize(layout.dense_width_);
    std::fill_n(layout.units_.begin() + static_cast<std::ptrdiff_t>(column.offset), column.width,
                unit);
    if (parameters.missing) {
      const double missing = (*parameters.missing - unit.offset) * unit.scale;
      layout.missing_.resize(layout.dense_width_);
      std::fill_n(layout.missing_.begin() + static_cast<std::ptrdiff_t>(column.offset),
                  column.width, static_cast<float>(missing));
    }
  }
  for (const SlotColumn& column : transform.slots()) {
    Slot slot;
    slot.column = layout.owners_.size();
    slot.buckets = column.buckets;
    slot.feature = feature(column.feature).name();
    slot.expanded = linear || feature(column.feature).format().kind() != TensorFormat::NONE;
    const Categorizer::Kind kind = feature(column.feature).categorizer().kind();
    slot.ordered = kind == Categorizer::BUCKET || kind == Categorizer::TIME_PART;
    const size_t width = slot.expanded ? column.buckets : 1;
    if (layout.owners_.size() + width > kMaxColumns) {
      return InvalidArgument(fmt::format("{} would need {} columns for '{}', the limit is {}",
                                         spec.type(), width, slot.feature, kMaxColumns))
          .Hint("use fewer buckets: CATEGORY_HASH(column, 1000)");
    }
    layout.sparse_ = layout.sparse_ || slot.expanded;
    layout.owners_.insert(layout.owners_.end(), width, static_cast<uint32_t>(column.feature));
    layout.slots_.push_back(std::move(slot));
  }
  if (layout.owners_.empty()) {
    return InvalidArgument(fmt::format("{} needs a feature", spec.type()))
        .Hint("select a column in addition to the label");
  }
  return layout;
}

Status RowMatrix::Fill(const FeatureBatch& batch) {
  rows_ = 0;
  values_.clear();
  row_ends_.clear();
  columns_.clear();
  return Append(batch);
}

Status RowMatrix::Append(const FeatureBatch& batch) {
  return layout_->sparse() ? AppendSparse(batch) : AppendDense(batch);
}

Status RowMatrix::AppendDense(const FeatureBatch& batch) {
  const size_t width = layout_->columns();
  const size_t first = values_.size();
  values_.resize(first + batch.rows * width);
  float* to = values_.data() + first;
  for (size_t r = 0; r < batch.rows; ++r) {
    const float* from = batch.dense.data() + r * batch.dense_width;
    for (size_t c = 0; c < batch.dense_width; ++c) {
      to[r * width + c] = layout_->IsMissing(c, from[c]) ? kMissing : from[c];
    }
  }
  for (size_t s = 0; s < batch.slots.size(); ++s) {
    const IdSlot& slot = batch.slots[s];
    const ColumnLayout::Slot& own = layout_->slots()[s];
    for (size_t r = 0; r < batch.rows; ++r) {
      const size_t begin = slot.Begin(r);
      const size_t count = slot.End(r) - begin;
      if (count > 1) {
        return InvalidArgument(
                   fmt::format("feature '{}' has {} categories in one row", own.feature, count))
            .Hint("declare it as SPARSE in COLUMN");
      }
      to[r * width + own.column] = count == 0 ? kMissing : static_cast<float>(slot.ids[begin]);
    }
  }
  rows_ += batch.rows;
  return OkStatus();
}

Status RowMatrix::AppendSparse(const FeatureBatch& batch) {
  if (row_ends_.empty()) {
    row_ends_.push_back(0);
  }
  for (size_t r = 0; r < batch.rows; ++r) {
    row_.clear();
    const float* dense = batch.dense.data() + r * batch.dense_width;
    for (size_t c = 0; c < batch.dense_width; ++c) {
      if (!layout_->IsMissing(c, dense[c])) {
        row_.emplace_back(static_cast<uint32_t>(c), dense[c]);
      }
    }
    for (size_t s = 0; s < batch.slots.size(); ++s) {
      const IdSlot& slot = batch.slots[s];
      const ColumnLayout::Slot& own = layout_->slots()[s];
      for (size_t i = slot.Begin(r); i < slot.End(r); ++i) {
        const auto base = static_cast<uint32_t>(own.column);
        if (own.expanded) {
          row_.emplace_back(base + slot.ids[i], slot.weights.empty() ? 1.0f : slot.weights[i]);
        } else {
          row_.emplace_back(base, static_cast<float>(slot.ids[i]));
        }
      }
    }
    // libxgboost requires each column once, in order; values of a repeated id are added.
    std::sort(row_.begin(), row_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [column, value] : row_) {
      if (columns_.size() > row_ends_.back() && columns_.back() == column) {
        values_.back() += value;
      } else {
        columns_.push_back(column);
        values_.push_back(value);
      }
    }
    row_ends_.push_back(columns_.size());
  }
  rows_ += batch.rows;
  return OkStatus();
}

void RowMatrix::PackPlaces(NumberPacker* packer) const {
  std::vector<uint32_t> sizes(rows_);
  for (size_t r = 0; r < rows_; ++r) {
    sizes[r] = static_cast<uint32_t>(row_ends_[r + 1] - row_ends_[r]);
  }
  packer->Add(sizes.data(), rows_);
  packer->Add(columns_.data(), columns_.size());
}

void RowMatrix::Pack(NumberPacker* packer) const {
  if (layout_->sparse()) {
    PackPlaces(packer);
    packer->Add(values_.data(), values_.size());
    return;
  }
  for (size_t c = 0; c < layout_->columns(); ++c) {
    packer->Add(values_.data() + c, rows_, layout_->columns());
  }
}

void RowMatrix::PackPresence(NumberPacker* packer) const {
  if (layout_->sparse()) {
    PackPlaces(packer);
    const std::vector<float> present(values_.size());
    packer->Add(present.data(), present.size());
    return;
  }
  std::vector<float> present(rows_);
  for (size_t c = 0; c < layout_->columns(); ++c) {
    for (size_t r = 0; r < rows_; ++r) {
      present[r] = std::isnan(values_[r * layout_->columns() + c]) ? kMissing : 0;
    }
    packer->Add(present.data(), rows_);
  }
}

void RowMatrix::Unpack(size_t rows, NumberReader* reader) {
  rows_ = rows;
  if (!layout_->sparse()) {
    values_.resize(rows * layout_->columns());
    for (size_t c = 0; c < layout_->columns(); ++c) {
      reader->Read(values_.data() + c, rows, layout_->columns());
    }
    return;
  }
  std::vector<uint32_t> sizes(rows);
  reader->Read(sizes.data(), rows);
  row_ends_.assign(1, 0);
  for (const uint32_t size : sizes) {
    row_ends_.push_back(row_ends_.back() + size);
  }
  columns_.resize(row_ends_.back());
  values_.resize(row_ends_.back());
  reader->Read(columns_.data(), columns_.size());
  reader->Read(values_.data(), values_.size());
}

std::string RowMatrix::DenseInterface() const {
  return ArrayInterface(values_.data(), rows_, layout_->columns(), "<f4");
}
std::string RowMatrix::RowEndsInterface() const {
  return VectorInterface(row_ends_, "<u8");
}
std::string RowMatrix::ColumnsInterface() const {
  return VectorInterface(columns_, "<u4");
}
std::string RowMatrix::ValuesInterface() const {
  return VectorInterface(values_, "<f4");
}

Status QueryGroups::Add(const FeatureBatch& batch) {
  if (batch.groups.size() != batch.rows) {
    return InvalidArgument("a ranking needs the query of every row")
        .Hint("say WITH group_column='query_id'");
  }
  for (size_t r = 0; r < batch.rows; ++r) {
    ASSIGN_OR_RETURN(const bool begins, order_.Begins(batch.groups[r]));
    if (begins) {
      sizes_.push_back(0);
      if (!batch.weights.empty()) {
        weights_.push_back(batch.weights[r]);
      }
    }
    ++sizes_.back();
  }
  return OkStatus();
}

}  // namespace sluice::models
