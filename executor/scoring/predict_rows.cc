#include "executor/scoring/predict_rows.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "base/machine.h"
#include "elastic/worker/feature_reader.h"
#include "executor/scoring/dataset_scan.h"
#include "executor/scoring/drift.h"
#include "executor/scoring/prediction_columns.h"
#include "executor/scoring/scorer.h"
#include "executor/scoring/shard_turns.h"

namespace sluice::executor {
namespace {

constexpr size_t kMostWorkers = 8;
// For fewer rows a further connection costs more than it gains.
constexpr int64_t kRowsPerWorker = 40'000;
// What a worker keeps of a shard whose turn has not come.
constexpr size_t kMostKeptBytes = size_t{16} << 20;

size_t WorkersFor(const DatasetScan& scan) {
  const int64_t useful = std::min<int64_t>(scan.estimated_rows() / kRowsPerWorker, scan.shards());
  return std::clamp<size_t>(static_cast<size_t>(std::max<int64_t>(useful, 0)), 1,
                            MostPredictWorkers());
}

// What the workers of a statement share.
class Delivery {
 public:
  Delivery(int shards, const RowsCounted& counted, catalog::RowWriter& writer)
      : turns_(shards), counted_(counted), writer_(writer) {}

  ShardTurns& turns() { return turns_; }
  catalog::RowWriter::Prepared Prepare(RowBatch* batch) const { return writer_.Prepare(batch); }
  // Once the statement is stopped, or a worker has failed.
  std::stop_token ended() const { return ended_.get_token(); }
  void End() {
    ended_.request_stop();
    turns_.End();
  }

  // Called by the worker whose turn it is, and by no other:
  Status Write(const RowBatch& batch) { return writer_.Write(batch); }
  Status Write(catalog::RowWriter::Prepared rows) { return writer_.Write(std::move(rows)); }
  void CountRows(int64_t rows) {
    rows_ += rows;
    counted_(rows_);
  }
  void Fail(const Status& why) {
    failure_ = why;
    End();
  }

  // After the workers.
  const Status& failure() const { return failure_; }
  int64_t rows() const { return rows_; }

 private:
  ShardTurns turns_;
  const RowsCounted& counted_;
  catalog::RowWriter& writer_;
  std::stop_source ended_;
  int64_t rows_ = 0;
  Status failure_;
};

// Reads and scores shards on one thread. Rows of a shard whose turn has not come are kept, within
// limits.
class PredictWorker {
 public:
  PredictWorker(Scorer& scorer, const PredictedRows& rows, Delivery& delivery)
      : scorer_(scorer), rows_(rows), predicted_(rows.predicted), delivery_(delivery) {}

  // Before it takes a shard, for which others wait: connects, and takes the locks of its reads.
  Status Prepare(const DatasetScan& scan, bool ahead) {
    elastic::FeatureReader::Options options;
    options.with_label = false;
    options.copied = &rows_.copied;
    ASSIGN_OR_RETURN(reader_, scan.MakeReader(scorer_.transform(), options, ahead));
    return reader_->Prepare();
  }

  // `after`: called after each shard.
  void Run(const std::function<void()>& after) {
    while (const std::optional<elastic::ShardId> shard = delivery_.turns().Take()) {
      const Status status = Guarded("predicting", [&] { return Predict(*shard); });
      if (!delivery_.turns().Await(*shard)) {
        return;
      }
      // Rows that were read before an error are written; an error of writing them comes first.
      const Status delivered = Guarded("predicting", [this] { return DeliverKept(); });
      CountRows();
      if (!delivered.ok() || !status.ok()) {
        delivery_.Fail(delivered.ok() ? status : delivered);
        return;
      }
      delivery_.turns().Pass(*shard);
      after();
    }
  }

 private:
  Status Predict(elastic::ShardId shard) {
    RETURN_IF_ERROR(reader_->Open(shard));
    for (;;) {
      if (delivery_.ended().stop_requested()) {
        return Cancelled("the statement was cancelled");
      }
      ASSIGN_OR_RETURN(const bool more, reader_->Next(scorer_.rows_per_batch()));
      if (!more) {
        return OkStatus();
      }
      RETURN_IF_ERROR(MakeRows());
      if (delivery_.turns().IsTurnOf(shard)) {
        RETURN_IF_ERROR(DeliverKept());
        CountRows();
        RETURN_IF_ERROR(delivery_.Write(batch_));
      } else {
        Keep();
        if (kept_bytes_ >= kMostKeptBytes && delivery_.turns().Await(shard)) {
          RETURN_IF_ERROR(DeliverKept());
        }
      }
    }
  }

  Status MakeRows() {
    batch_.Reset(rows_.schema, DatasetScan::kRowsPerBatch);
    const size_t copied = rows_.copied.columns.size();
    for (size_t c = 0; c < copied; ++c) {
      // Swap buffers, so that the next batch can reuse this one's memory.
      const size_t place = c < rows_.before_predicted ? c : c + predicted_.columns().size();
      std::swap(reader_->copied(c), batch_.columns[place]);
    }
    rows_.drift.Add(*reader_);
    RETURN_IF_ERROR(scorer_.Score(reader_->features(), &scores_));
    predicted_.Fill(scores_, reader_->rows(), &batch_, rows_.before_predicted);
    batch_.rows = reader_->rows();
    return OkStatus();
  }

  void Keep() {
    kept_.push_back(delivery_.Prepare(&batch_));
    kept_bytes_ += catalog::PreparedBytes(kept_.back());
  }

  Status DeliverKept() {
    kept_bytes_ = 0;
    for (catalog::RowWriter::Prepared& rows : std::exchange(kept_, {})) {
      RETURN_IF_ERROR(delivery_.Write(std::move(rows)));
    }
    return OkStatus();
  }

  void CountRows() {
    const int64_t read = reader_->rows_read();
    delivery_.CountRows(read - std::exchange(counted_, read));
  }

  Scorer& scorer_;
  const PredictedRows& rows_;
  PredictionColumns predicted_;  // has memory for one batch
  Delivery& delivery_;
  std::unique_ptr<elastic::FeatureReader> reader_;
  int64_t counted_ = 0;  // of the rows that were read
  std::vector<double> scores_;
  RowBatch batch_;
  std::vector<catalog::RowWriter::Prepared> kept_;  // until the shard's turn
  size_t kept_bytes_ = 0;
};

// The workers of a statement: one, on the caller's thread, and others once it is seen that they are
// of use. A worker that mostly waits for the database would only have more of them wait, and take
// processors from a server on the same machine.
class PredictWorkers {
 public:
  PredictWorkers(const DatasetScan& scan, Scorer& scorer, const PredictedRows& rows,
                 Delivery& delivery)
      : scan_(scan), scorer_(scorer), rows_(rows), delivery_(delivery) {}

  Status Run(std::optional<size_t> workers) {
    PredictWorker first(scorer_, rows_, delivery_);
    RETURN_IF_ERROR(first.Prepare(scan_, true));
    bool decided = workers.has_value() || WorkersFor(scan_) == 1;
    StartOthers(workers.value_or(1));
    const double began = SecondsOf(CLOCK_MONOTONIC);
    const double computed = SecondsOf(CLOCK_THREAD_CPUTIME_ID);
    first.Run([&] {
      const double seconds = SecondsOf(CLOCK_MONOTONIC) - began;
      if (!decided && seconds > kShortestLook &&
          SecondsOf(CLOCK_THREAD_CPUTIME_ID) - computed > kBusyShare * seconds) {
        decided = true;
        StartOthers(WorkersFor(scan_));
      }
    });
    delivery_.turns().AwaitAll();
    if (starting_ > 0) {  // too late: whatever keeps them is not waited for
      delivery_.End();
    }
    threads_.clear();
    return delivery_.failure();
  }

 private:
  static constexpr double kShortestLook = 0.1;  // seconds
  static constexpr double kBusyShare = 0.75;

  static double SecondsOf(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  void StartOthers(size_t workers) {
    const Status started = Guarded("starting workers", [this, workers] {
      for (size_t i = 1; i < workers; ++i) {
        threads_.emplace_back([this] { RunAnother(); });
        ++starting_;
      }
    });
    if (!started.ok()) {
      log::Info("predicting with fewer workers: {}", started.message());
    }
  }

  // On a thread of its own, since the server may take its time for a connection, or refuse it, or
  // another session may wait for a lock: the statement then goes on without this worker.
  void RunAnother() {
    std::unique_ptr<Scorer> scorer;
    std::unique_ptr<PredictWorker> worker;
    const Status started = Guarded("starting a worker", [&]() -> Status {
      ASSIGN_OR_RETURN(scorer, scorer_.Another());
      worker = std::make_unique<PredictWorker>(*scorer, rows_, delivery_);
      return worker->Prepare(scan_, false);
    });
    --starting_;
    if (started.ok()) {
      worker->Run([] {});
    } else if (!delivery_.ended().stop_requested()) {
      log::Info("predicting with a worker less: {}", started.message());
    }
  }

  const DatasetScan& scan_;
  Scorer& scorer_;
  const PredictedRows& rows_;
  Delivery& delivery_;
  std::atomic<int> starting_ = 0;      // threads whose worker is not prepared yet
  std::vector<std::jthread> threads_;  // last: uses the members above
};

// While it exists, the end of the delivery also ends what the statement reads.
class EndsReading {
 public:
  EndsReading(catalog::DataSource& source, const std::stop_token& stop, Delivery& delivery)
      : source_(source), stop_(stop), on_stop_(stop, [&delivery] { delivery.End(); }) {
    source_.HearStop(delivery.ended());
  }
  ~EndsReading() { source_.HearStop(stop_); }
  EndsReading(const EndsReading&) = delete;
  EndsReading& operator=(const EndsReading&) = delete;

 private:
  catalog::DataSource& source_;
  const std::stop_token stop_;
  const std::stop_callback<std::function<void()>> on_stop_;
};

}  // namespace

size_t MostPredictWorkers() {
  return std::clamp<size_t>(MachineProcessors(), 1, kMostWorkers);
}

Result<int64_t> PredictRows(const DatasetScan& scan, Scorer& scorer, const PredictedRows& rows,
                            catalog::DataSource& source, const std::stop_token& stop,
                            const RowsCounted& counted, catalog::RowWriter& writer,
                            std::optional<size_t> workers) {
  Delivery delivery(scan.shards(), counted, writer);
  const EndsReading ends(source, stop, delivery);
  RETURN_IF_ERROR(PredictWorkers(scan, scorer, rows, delivery).Run(workers));
  if (stop.stop_requested()) {
    return Cancelled("the statement was cancelled");
  }
  return delivery.rows();
}

}  // namespace sluice::executor
