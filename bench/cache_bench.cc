// Reads the rows of a training over a large PostgreSQL table, as its first epoch does (from the
// database) and as later ones do (from the local file, for what memory has no room for), and trains
// on them with and without that file. Rounds are interleaved; prints medians.
//
// Usage: cache_bench [rows] [rounds]. SLUICE_TEST_POSTGRES names a server; otherwise one is
// started.
#include <fmt/core.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench/census_rows.h"
#include "bench/measure.h"
#include "bench/must.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/local_job.h"
#include "elastic/worker/shard_rows.h"
#include "models/model.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/support/postgres_server.h"

namespace sluice {
namespace {

class CacheBench {
 public:
  CacheBench(const std::string& url, int64_t rows, int rounds)
      : source_(Must(catalog::OpenDataSource(url))),
        catalog_(Must(catalog::OpenCatalog(url))),
        rows_(static_cast<double>(rows)),
        rounds_(rounds) {
    Must(source_->Execute(fmt::format("CREATE TABLE census AS SELECT {} FROM"
                                      " generate_series(1::bigint, {}) AS s(i)",
                                      CensusColumns(), rows),
                          nullptr, {}));
    Must(source_->Execute("VACUUM ANALYZE census", nullptr, {}));
  }

  void Run(const std::string& model) {
    plan_ = Plan(model);
    catalog::DatasetOptions options;
    options.rows_per_shard = plan_.rows_per_shard();
    options.mixed = plan_.shuffle();
    dataset_ = Must(source_->OpenDataset(plan_.select(), options));
    fmt::print("{}: {} shards, {:.0f} MB of features\n", model, dataset_->spec().shards_size(),
               static_cast<double>(plan_.estimated_spilled_bytes()) / 1e6);
    Reading();
    Training();
  }

 private:
  plan::TrainPlan Plan(const std::string& model) {
    const auto parsed =
        Must(parser::Parse("SELECT * FROM census TO TRAIN " + model + " LABEL income INTO cached"));
    return Must(planner::MakePlan(std::get<parser::TrainStatement>(parsed.at(0)), *source_,
                                  catalog_->models(), {}))
        .train();
  }

  void Reading() {
    const auto network = Must(models::Network::Make(plan_.model()));
    const auto split = Must(elastic::SplitRule::Make(plan_.split()));
    std::vector<double> database, first, later;
    for (int round = 0; round < rounds_; ++round) {
      elastic::ShardLoader::Options options;
      options.keep_rows = true;
      const auto without = Must(elastic::ShardLoader::Make(*source_, dataset_->spec(),
                                                           network->transform(), split, options));
      database.push_back(Seconds([&] { Epoch(*without); }));
      options.spill.emplace();
      options.spill->on_end = [](const std::string& why) { fmt::print("!! {}\n", why); };
      const auto with = Must(elastic::ShardLoader::Make(*source_, dataset_->spec(),
                                                        network->transform(), split, options));
      first.push_back(Seconds([&] { Epoch(*with); }));
      later.push_back(Seconds([&] { Epoch(*with); }));
    }
    Print("reading, from the database", database, Median(database));
    Print("reading and writing the file", first, Median(database));
    Print("reading, from the file", later, Median(database));
  }

  void Epoch(elastic::ShardLoader& loader) const {
    int64_t read = 0;
    for (int shard = 0; shard < dataset_->spec().shards_size(); ++shard) {
      Must(loader.Start(elastic::ShardId(shard)));
      while (!Must(loader.Pump(4096))) {
      }
      const auto rows = loader.Finish();
      read += static_cast<int64_t>(rows->train.rows + rows->validation.rows);
    }
    if (static_cast<double>(read) != rows_) {
      Must(Internal(fmt::format("read {} rows", read)));
    }
  }

  void Training() {
    std::vector<double> database, file;
    std::string bits;
    for (int round = 0; round < rounds_; ++round) {
      for (auto* seconds : {&database, &file}) {
        plan_.set_disk_cache(seconds == &file ? plan::TrainPlan::WHERE_FASTER
                                              : plan::TrainPlan::NO_CACHE);
        seconds->push_back(LaterEpoch(&bits));
      }
    }
    Print("training, from the database", database, Median(database));
    Print("training, from the file", file, Median(database));
  }

  // Seconds of an epoch after the first.
  double LaterEpoch(std::string* bits) const {
    const SteadyClock clock;
    std::vector<TimePoint> ends;
    elastic::EventCallback events;
    events.on_event = [&](const std::string& kind, const std::string& detail) {
      if (kind == "epoch_done") {
        ends.push_back(clock.Now());
      } else if (kind == elastic::kRowsReadAgain) {
        fmt::print("!! {}\n", detail);
      }
    };
    const auto outcome = Must(elastic::TrainInProcess(
        {.plan = plan_, .source = *source_, .dataset = dataset_->spec(), .events = events}));
    const std::string weights = models::SaveWeights(outcome.weights);
    if (ends.size() < 2 || (!bits->empty() && *bits != weights)) {
      Must(Internal("the model differs"));
    }
    *bits = weights;
    return SecondsBetween(ends.front(), ends.back()) / static_cast<double>(ends.size() - 1);
  }

  void Print(const std::string& what, const std::vector<double>& seconds, double of) const {
    const double median = Median(seconds);
    fmt::print("  {:30} {:>7.2f} s an epoch {:>8.2f} M rows/s {:>7.2f} of the database's\n", what,
               median, rows_ / median / 1e6, median / of);
  }

  const std::unique_ptr<catalog::DataSource> source_;
  const std::unique_ptr<catalog::Catalog> catalog_;
  const double rows_;
  const int rounds_;
  plan::TrainPlan plan_;
  std::unique_ptr<catalog::Dataset> dataset_;
};

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 5'000'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  const sluice::testing::PostgresTestDatabase database;
  if (database.url().empty()) {
    fmt::print(stderr, "cache_bench: no PostgreSQL server\n");
    return 1;
  }
  fmt::print("{} rows x 15 columns, medians of {} interleaved rounds\n", rows, rounds);
  sluice::CacheBench bench(database.url(), rows, rounds);
  bench.Run("LinearClassifier WITH train.epoch=3");
  bench.Run("DNNClassifier WITH model.hidden_units=[64, 32], train.batch_size=256, train.epoch=3");
  return 0;
}
