#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/sql/table_name.h"

namespace sluice::catalog {
class DataSource;
}

namespace sluice::server {

// Generates the rows of a sample table. Row i depends only on (seed, i), so any part can be
// generated anywhere, in any order. Thread-safe.
class SampleGenerator {
 public:
  virtual ~SampleGenerator() = default;
  virtual const Schema& schema() const = 0;
  // Writes rows [first, first + rows) into `batch`, whose texts point into its arena or to
  // constants, and each row's true probability of the positive class into `probabilities`.
  virtual void Fill(int64_t first, size_t rows, RowBatch* batch,
                    std::vector<double>* probabilities) const = 0;
};

std::unique_ptr<SampleGenerator> MakeCensusSample(uint64_t seed);
std::unique_ptr<SampleGenerator> MakeClicksSample(uint64_t seed);
// By kind ("census", "clicks").
Result<std::unique_ptr<SampleGenerator>> MakeSample(std::string_view kind, uint64_t seed);

// The AUC of a classifier that knows every row's true probability: except by luck, no model can do
// better.
class BayesAuc {
 public:
  BayesAuc();
  void Add(double probability);
  double Value() const;

 private:
  std::vector<double> mass_;       // per bin of probability: rows
  std::vector<double> positives_;  // per bin: expected positive rows
};

struct SampleReport {
  double bayes_auc = 0;
  double positive_share = 0;  // expected
};
using SampleProgress = std::function<void(int64_t rows_done)>;

// Makes `table` with `rows` rows, in one transaction.
Result<SampleReport> WriteSample(const SampleGenerator& generator, int64_t rows,
                                 const catalog::TableName& table, catalog::DataSource& source,
                                 const SampleProgress& progress, const std::stop_token& stop);

}  // namespace sluice::server
