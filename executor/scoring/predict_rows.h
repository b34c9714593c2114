#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"

namespace sluice::executor {

class DatasetScan;
class Drift;
class PredictionColumns;
class Scorer;

// The most workers that predict the rows of one select: each has a connection and a thread of its
// own.
size_t MostPredictWorkers();

// What the rows of a PREDICT are made of.
struct PredictedRows {
  const catalog::CopiedColumns& copied;  // the columns that are passed through
  const PredictionColumns& predicted;    // the columns that are added,
  size_t before_predicted;               // after so many of those; the others follow
  const Schema& schema;                  // of all
  Drift& drift;                          // of the rows that are read
};

using RowsCounted = std::function<void(int64_t rows)>;

// Makes the rows of `scan` and writes them in the order of the dataset. The shards of a large
// dataset are read, scored and prepared for `writer` by several workers side by side; the rows, and
// the error if there is one, are the same as with one worker. One thread at a time writes, which
// need not be the caller's; it calls `counted` with the number of rows so far. Ends with Cancelled
// once `stop` is requested. Returns the number of rows. `workers`: nullopt: one, and others once
// they are of use.
Result<int64_t> PredictRows(const DatasetScan& scan, Scorer& scorer, const PredictedRows& rows,
                            catalog::DataSource& source, const std::stop_token& stop,
                            const RowsCounted& counted, catalog::RowWriter& writer,
                            std::optional<size_t> workers = std::nullopt);

}  // namespace sluice::executor
