#include "server/sample/sample.h"

#include <algorithm>
#include <utility>

#include "catalog/data_source.h"
#include "catalog/table_loader.h"

namespace sluice::server {
namespace {

constexpr size_t kRowsPerBatch = 25'000;  // a few megabytes
constexpr size_t kBins = 10'000;          // gives the AUC to four digits

}  // namespace

Result<std::unique_ptr<SampleGenerator>> MakeSample(std::string_view kind, uint64_t seed) {
  if (kind == "census") {
    return MakeCensusSample(seed);
  }
  if (kind == "clicks") {
    return MakeClicksSample(seed);
  }
  return InvalidArgument("no sample '" + std::string(kind) + "'")
      .Hint("there are census and clicks");
}

BayesAuc::BayesAuc() : mass_(kBins), positives_(kBins) {}

void BayesAuc::Add(double probability) {
  const auto bin = std::min(static_cast<size_t>(probability * kBins), kBins - 1);
  mass_[bin] += 1;
  positives_[bin] += probability;
}

double BayesAuc::Value() const {
  double negatives_below = 0;
  double positives = 0;
  double won = 0;
  for (size_t i = 0; i < kBins; ++i) {
    const double negatives = mass_[i] - positives_[i];
    won += positives_[i] * (negatives_below + negatives / 2);
    negatives_below += negatives;
    positives += positives_[i];
  }
  return positives > 0 && negatives_below > 0 ? won / (positives * negatives_below) : 0.5;
}

namespace {

Result<SampleReport> WriteRows(const SampleGenerator& generator, int64_t rows,
                               catalog::TableLoader& loader, const SampleProgress& progress,
                               const std::stop_token& stop) {
  BayesAuc auc;
  double positives = 0;
  RowBatch batch;
  std::vector<double> probabilities;
  for (int64_t first = 0; first < rows;) {
    if (stop.stop_requested()) {
      return Cancelled("cancelled: there is no table");
    }
    const auto count =
        static_cast<size_t>(std::min(rows - first, static_cast<int64_t>(kRowsPerBatch)));
    generator.Fill(first, count, &batch, &probabilities);
    catalog::RefusedRow refused;
    RETURN_IF_ERROR(loader.Write(batch, &refused));
    for (const double probability : probabilities) {
      auc.Add(probability);
      positives += probability;
    }
    first += static_cast<int64_t>(count);
    progress(first);
  }
  RETURN_IF_ERROR(loader.Commit());
  return SampleReport{auc.Value(), positives / static_cast<double>(rows)};
}

}  // namespace

Result<SampleReport> WriteSample(const SampleGenerator& generator, int64_t rows,
                                 const catalog::TableName& table, catalog::DataSource& source,
                                 const SampleProgress& progress, const std::stop_token& stop) {
  RETURN_IF_ERROR(source.BeginStatement("", stop));
  const auto write = [&]() -> Result<SampleReport> {
    ASSIGN_OR_RETURN(const auto loader, source.OpenLoader(table, generator.schema(), true));
    return WriteRows(generator, rows, *loader, progress, stop);
  };
  Result<SampleReport> report = write();
  source.EndStatement();
  return report;
}

}  // namespace sluice::server
