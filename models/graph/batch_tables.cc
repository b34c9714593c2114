#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/graph/batch_tables_internal.h"
#include "models/graph/graph_tables.h"
#include "models/networks/initialize.h"

namespace sluice::models::graph {
namespace {

constexpr int64_t kMaxStampsTogether = 1 << 25;  // 256 MiB; beyond, the ids of a batch are hashed

int64_t FirstRowOf(const GraphTable& table, size_t input) {
  return table.first_rows().empty() ? 0 : table.first_rows(static_cast<int>(input));
}

}  // namespace

Status BatchTables::AddAll() {
  int64_t stamps = kMaxStampsTogether;
  for (const GraphTable& own : run_->graph().tables()) {
    RETURN_IF_ERROR(CheckInitializer(own.initializer(), fmt::format("table '{}'", own.name())));
    RETURN_IF_ERROR(AddInputs(own));
    EmbeddingTable table;
    table.name = own.name();
    table.rows = own.rows();
    table.dimension = own.dimension();
    table.wide = own.wide();
    table.initializer = own.initializer();
    tables_.push_back(std::move(table));
    values_.push_back(run_->Find(ValueOf(own)));
    stamps -= numberings_.emplace_back(own.rows(), stamps).stamps();
  }
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (values_[t] != nullptr) {
      values_[t]->reads = &reads_[t];
    }
  }
  return OkStatus();
}

Status BatchTables::AddInputs(const GraphTable& table) {
  std::vector<size_t>& inputs = table_inputs_.emplace_back();
  TableReads& reads = reads_.emplace_back();
  for (const std::string& name : table.inputs()) {
    const std::optional<size_t> input = inputs_->Find(name);
    SLUICE_CHECK(input.has_value(), "GraphRun::Make has seen that there is such an input");
    const int64_t first = FirstRowOf(table, inputs.size());
    const int64_t values = inputs_->SlotOf(*input).buckets;
    if (values > table.rows() - first) {
      return InvalidArgument(fmt::format("table '{}' has {} rows, its feature '{}' has {} values{}",
                                         table.name(), table.rows(), name, values,
                                         first == 0 ? "" : fmt::format(" from row {}", first)))
          .Hint("features say how many values they have: buckets");
    }
    inputs.push_back(*input);
    reads.inputs.push_back(run_->Find(name));
  }
  reads.uses.resize(inputs.size());
  return OkStatus();
}

size_t BatchTables::bytes_per_row() const {
  constexpr size_t kOfAnId = 4;  // the id, its position, its place among the rows, and their number
  size_t floats = 0;
  for (size_t t = 0; t < tables_.size(); ++t) {  // each id may need a row of its own
    floats += table_inputs_[t].size() * (tables_[t].dimension + kOfAnId);
  }
  return floats * sizeof(float);
}

void BatchTables::CollectIds(const FeatureBatch& batch, ParameterView* view) {
  view->tables.resize(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    const GraphTable& table = run_->graph().tables(static_cast<int>(t));
    RowSet& set = view->tables[t];
    size_t occurrences = 0;
    for (const size_t input : table_inputs_[t]) {
      occurrences += inputs_->IdsOf(input, batch).size();
    }
    set.ids.clear();
    set.positions.resize(occurrences);
    numberings_[t].Start(occurrences);
    uint32_t* positions = set.positions.data();
    for (size_t k = 0; k < table_inputs_[t].size(); ++k) {
      const std::vector<uint32_t>& ids = inputs_->IdsOf(table_inputs_[t][k], batch);
      numberings_[t].Number(ids, FirstRowOf(table, k), &set.ids, positions);
      positions += ids.size();
    }
  }
}

void BatchTables::Place(const FeatureBatch& batch, const ParameterView& view) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (values_[t] == nullptr) {
      continue;
    }
    // Rows are never written.
    values_[t]->numbers = const_cast<float*>(view.tables[t].values.data());
    std::span<const uint32_t> positions = view.tables[t].positions;
    for (size_t k = 0; k < table_inputs_[t].size(); ++k) {
      const size_t input = table_inputs_[t][k];
      const size_t count = inputs_->IdsOf(input, batch).size();
      reads_[t].uses[k] = inputs_->UseOf(input, batch, positions.first(count));
      positions = positions.subspan(count);
    }
  }
}

void BatchTables::PlaceGradient(const ParameterView& view, Gradient* gradient) {
  gradient->tables.resize(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    std::vector<float>& own = gradient->tables[t];
    own.resize(view.tables[t].ids.size() * tables_[t].dimension);
    if (values_[t] != nullptr) {
      values_[t]->gradient = own.data();
      values_[t]->gradient_count = own.size();
    }
  }
}

void BatchTables::ClearUnreached(Gradient* gradient) const {
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (values_[t] == nullptr || !values_[t]->written) {
      std::fill(gradient->tables[t].begin(), gradient->tables[t].end(), 0.0F);
    }
  }
}

void BatchTables::ForgetGradient() {
  for (Tensor* tensor : values_) {
    if (tensor != nullptr) {
      tensor->written = false;
    }
  }
}

}  // namespace sluice::models::graph
