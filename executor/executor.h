#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/row_batch.h"
#include "base/status.h"
#include "elastic/job/training_job.h"

namespace sluice::catalog {
class Catalog;
class DataSource;
struct ModelVersion;
}  // namespace sluice::catalog

namespace sluice::plan {
class Plan;
}

namespace sluice::executor {

class Cluster;

// Receives a statement's answer; each door implements it. What is not overridden is discarded,
// unless it says otherwise. Called from one thread at a time.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  // The columns that are to come as kBytes, in the binary form in which PostgreSQL sends them
  // (ColumnInfo::Wire); of those that a SELECT passes through, before their Header.
  virtual std::vector<bool> InBinary(const Schema& /*schema*/) { return {}; }
  // Before rows, once per row set.
  virtual Status Header(const Schema& /*schema*/) { return OkStatus(); }
  virtual Status Rows(const RowBatch& /*batch*/) { return OkStatus(); }
  virtual void Notice(const std::string& /*message*/) {}  // one line for a person
  virtual void Progress(const elastic::Progress& /*progress*/) {}
  // What COPY TO STDOUT sends, in pieces. By default an error (0A000).
  virtual Status Copied(std::string_view text);
  virtual void Done(const std::string& /*tag*/) {}  // "TRAIN", "PREDICT 16281", "INSERT 0 3"
  // The statement is this job, which continues when its client disconnects. By default sends a
  // notice.
  virtual void OutlivesClient(int64_t job);
};

// Models that were used lately, loaded (executor/scoring/scorer_cache.h); shared by the statements
// of a gateway.
class ScorerCache;
std::shared_ptr<ScorerCache> MakeScorerCache();

struct Context {
  catalog::DataSource& source;  // the user's data, on connections logged in as the user
  catalog::Catalog& catalog;    // models and jobs, for that user
  std::string user;
  std::string statement;  // for the job row
  std::stop_token stop;   // Ctrl-C, CancelRequest, or a client that disconnects
  // Starts the processes of trainings; null: there are none. Outlives the statement.
  Cluster* cluster = nullptr;
  // Turns the outcome of a statement that was stopped into the one to report; empty: unchanged.
  std::function<Status(Status outcome)> stopped_because = {};
  // Called with the number of the statement's job once it has one; may be empty.
  std::function<void(int64_t job)> on_job = {};
  // Called with a description of the snapshot that a prediction or an evaluation in this process
  // reads (DatasetSpec::fingerprint); may be empty.
  std::function<void(const std::string& snapshot)> on_snapshot = {};

  // An existing row for the statement's job; nullopt: the statement creates its own.
  std::optional<int64_t> job = {};

  // What the statement's job is made for, if only one may be (catalog::Job::request).
  std::string request = {};

  // What planning the statement took.
  double planning_seconds = 0;
  // Plans the training again with all classes of the label, if the plan has those of a sample
  // (planner::Options::classes_of_sample); else empty.
  std::function<Result<plan::Plan>()> plan_with_all_classes = {};

  // Folder for checkpoints of jobs that are taken over; nullopt: anywhere; "": not allowed.
  std::optional<std::string> checkpoint_root = {};

  // Folder for files of models (EXPORT, IMPORT); nullopt: anywhere; "": not allowed.
  std::optional<std::string> export_root = {};

  // Where PREDICT and EVALUATE find a model that is loaded already; null: nowhere.
  std::shared_ptr<ScorerCache> scorers = {};

  // The model of a PREDICT or an EVALUATE, as planning found it a moment ago; null: it is found
  // anew.
  std::shared_ptr<const catalog::ModelVersion> model = {};

  // False: the session acts as another role than its login (SET ROLE). Its jobs are not continued
  // by other processes, nor does it continue any: a job's rows are read by its login, and another
  // member of the role would read them with rights of their own.
  bool acts_as_login = true;

  // Memory that the statement may use: the cluster's --memory-limit, or the machine's.
  int64_t memory_bytes() const;
};

// Runs a plan. A plan that trains, or that predicts or evaluates INTO a table, has a job's row; at
// the end it commits its model or table, or leaves nothing behind. Errors are the plan's own; a
// cancelled statement is Cancelled (57014).
Status Execute(const plan::Plan& plan, Context& context, ResultSink& sink);

// The columns of Execute's answer; no columns: no rows. Trains, predicts and changes nothing.
Result<Schema> DescribeResult(const plan::Plan& plan, Context& context);

}  // namespace sluice::executor
