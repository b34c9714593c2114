#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "base/row_batch.h"
#include "base/status.h"
#include "elastic/job/training_job.h"

namespace sluice::catalog {
class Catalog;
class DataSource;
}  // namespace sluice::catalog

namespace sluice::plan {
class Plan;
}

namespace sluice::executor {

class Cluster;

// Where a statement's answer goes; each door implements it. Called from one thread at a time.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  virtual Status Header(const Schema& schema) = 0;  // before rows, once per row set
  virtual Status Rows(const RowBatch& batch) = 0;
  virtual void Notice(const std::string& message) = 0;  // one line for a person
  virtual void Progress(const elastic::Progress& progress) = 0;
  virtual void Done(const std::string& tag) = 0;  // "TRAIN", "PREDICT 16281", "INSERT 0 3"
  // The statement is this job, which goes on when its client goes away. A notice where nobody wants
  // to know more of it.
  virtual void OutlivesClient(int64_t job);
};

struct Context {
  catalog::DataSource& source;  // the user's data, on connections logged in as the user
  catalog::Catalog& catalog;    // models and jobs, for that user
  std::string user;
  std::string statement;  // for the job row
  std::stop_token stop;   // Ctrl-C, CancelRequest, a client that went away
  // Where trainings start processes; null: nowhere. Outlives the statement.
  Cluster* cluster = nullptr;
  // Turns the outcome of a statement that was stopped into what it is told as; empty: as it is.
  std::function<Status(Status outcome)> stopped_because = {};
  // Told the number of the statement's job once it has one; empty: nobody wants to know.
  std::function<void(int64_t job)> on_job = {};

  // The row that was made for the statement's job before; nullopt: it makes its own.
  std::optional<int64_t> job = {};

  // Where jobs that are taken over may keep checkpoints; nullopt: anywhere; "": nowhere.
  std::optional<std::string> checkpoint_root = {};

  // What the statement may take: the cluster's --memory-limit, or what the machine has.
  int64_t memory_bytes() const;
};

// Runs a plan. One that trains, predicts, evaluates or explains has a job's row while it runs, and
// commits its model or table at the end or leaves nothing behind. Errors are the plan's own; a
// cancelled statement is Cancelled (57014).
Status Execute(const plan::Plan& plan, Context& context, ResultSink& sink);

// What Execute would answer with; no columns: no rows. Trains, predicts and changes nothing.
Result<Schema> DescribeResult(const plan::Plan& plan, Context& context);

}  // namespace sluice::executor
