#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "models/graph/graph_inputs_internal.h"
#include "models/graph/graph_run_internal.h"
#include "models/model.h"
#include "models/networks/id_numbering.h"

namespace sluice::models::graph {

// The tables of a graph, and the rows of them that a batch needs. Not thread-safe.
class BatchTables {
 public:
  // Both outlive it.
  BatchTables(GraphRun* run, GraphInputs* inputs) : run_(run), inputs_(inputs) {}
  // Takes the tables from the graph. Fails if one has no place for the values of its features.
  Status AddAll();

  const std::vector<EmbeddingTable>& tables() const { return tables_; }
  // Of a row of a batch with one id of each feature: ids, positions, and values of the tables'
  // rows.
  size_t bytes_per_row() const;

  // Numbers the rows that the batch needs.
  void CollectIds(const FeatureBatch& batch, ParameterView* view);
  // Before Forward: the values of these rows, and who reads which.
  void Place(const FeatureBatch& batch, const ParameterView& view);
  // Before Backward, and after it: gradients that none has reached are 0.
  void PlaceGradient(const ParameterView& view, Gradient* gradient);
  void ClearUnreached(Gradient* gradient) const;
  // Where no Backward comes: none is reached.
  void ForgetGradient();

 private:
  Status AddInputs(const GraphTable& table);

  GraphRun* run_;
  GraphInputs* inputs_;
  // By table.
  std::vector<EmbeddingTable> tables_;
  std::vector<Tensor*> values_;  // nullptr: not read by any node
  std::vector<std::vector<size_t>> table_inputs_;
  std::vector<TableReads> reads_;
  std::vector<IdNumbering> numberings_;
};

}  // namespace sluice::models::graph
