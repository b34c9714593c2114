#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "catalog/dataset.pb.h"
#include "catalog/postgres/postgres_columns_internal.h"
#include "catalog/postgres/postgres_cut_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_lender_internal.h"
#include "catalog/postgres/postgres_spooled_internal.h"
#include "catalog/postgres/postgres_stage_internal.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::catalog {
namespace {

class PostgresDataset final : public Dataset {
 public:
  // `holder` is inside the transaction that exported the snapshot.
  PostgresDataset(PostgresPool::Lease holder, std::unique_ptr<PostgresStage> stage,
                  DatasetSpec spec)
      : spec_(std::move(spec)), stage_(std::move(stage)), holder_(std::move(holder)) {
    if (spec_.lender().empty()) {
      return;
    }
    Result<std::unique_ptr<PostgresLender>> lender = PostgresLender::Start(holder_, spec_);
    if (lender.ok()) {
      lender_ = *std::move(lender);
    } else {  // readers that get no lock wait for it then
      log::Warn("the snapshot is not lent: {}", lender.status().message());
    }
  }

  ~PostgresDataset() override {
    lender_.reset();
    MutexLock lock(holder_.mutex);
    holder_.connection->Rollback();
  }

  const DatasetSpec& spec() const override { return spec_; }

  bool Lost() override {
    MutexLock lock(holder_.mutex);
    return !holder_.connection->Alive();
  }

  Result<int64_t> CountRows() override {
    MutexLock lock(holder_.mutex);
    ASSIGN_OR_RETURN(const PostgresResult result,
                     holder_.connection->Ask(fmt::format(
                         "SELECT pg_catalog.count(*) FROM (\n{}\n) AS s", spec_.select())));
    return PostgresInteger(result.get(), 0, 0);
  }

 private:
  const DatasetSpec spec_;
  std::unique_ptr<PostgresStage> stage_;
  SnapshotHolder holder_;  // destroyed before the stage, which its transaction locks
  std::unique_ptr<PostgresLender> lender_;  // null: of a stage, which nobody else changes
};

// Begins the snapshot, exports it, and cuts the shards under it.
Status TakeSnapshot(PostgresConnection& holder, const std::optional<TidCut>& cut, double rows,
                    const DatasetOptions& options, DatasetSpec* spec) {
  RETURN_IF_ERROR(holder.Begin(BeginReading("")));
  ASSIGN_OR_RETURN(
      const PostgresResult exported,
      holder.Ask("SELECT pg_catalog.pg_export_snapshot(), pg_catalog.pg_current_snapshot()"));
  spec->set_snapshot(std::string(PostgresText(exported.get(), 0, 0)));
  spec->set_fingerprint(fmt::format("snapshot {}", PostgresText(exported.get(), 0, 1)));
  // The tables must not change until the job has read them: this takes the select's locks.
  RETURN_IF_ERROR(holder.Run("EXPLAIN\n" + spec->select()));
  spec->set_holder(PQbackendPID(holder.handle()));
  if (spec->staging_table().empty()) {
    spec->set_lender(PostgresLender::NewName());
  }
  std::vector<ShardRange> shards(1);
  shards[0].set_estimated_rows(std::llround(rows));
  if (cut.has_value()) {
    ASSIGN_OR_RETURN(shards, CutTids(holder, *cut, options));
    spec->set_cut(DatasetSpec::CTID);
    spec->set_shard_select(cut->shard_select);
  }
  PutShards(std::move(shards), options, spec);
  return OkStatus();
}

// A SELECT that cannot be cut is read as a whole if it is small and only one process reads it.
bool ReadWhole(const SelectPlan& plan, const DatasetOptions& options) {
  return !options.many_processes && !plan.unsteady &&
         plan.rows < static_cast<double>(options.rows_per_shard);
}

}  // namespace

Result<std::unique_ptr<Dataset>> OpenPostgresDataset(PostgresDatabase& database,
                                                     std::string_view select,
                                                     const DatasetOptions& options) {
  if (options.rows_per_shard <= 0) {
    return InvalidArgument(
        fmt::format("rows_per_shard is {}; expected at least 1", options.rows_per_shard));
  }
  if (!database.through_session().empty()) {
    ASSIGN_OR_RETURN(auto spooled, database.Spooled(select, options));
    return MakeSpooledDataset(std::move(spooled), database.url(), options);
  }
  DatasetSpec spec;
  PutSession(database.settings(), &spec);
  ASSIGN_OR_RETURN(PostgresPool::Lease holder, database.TakeFor(spec));
  spec.set_source_url(database.url());
  spec.set_read_ahead(!options.many_processes);
  spec.set_select(std::string(TrimStatement(select, Dialect::kPostgres)));
  ASSIGN_OR_RETURN(const Schema schema, DescribePostgresSelect(*holder, spec.select()));
  PutSchema(schema, &spec);
  ASSIGN_OR_RETURN(SelectPlan plan,
                   PlanPostgresSelect(*holder, spec.select(), schema.columns.size()));
  // If the session's texts cannot be read back, the rows are staged by value and read from the
  // stage. A large training is not affected: it copies no text.
  Status readable;
  if (!options.many_processes || OnlyText(*holder)) {
    readable = CheckReadableAsText(*holder, "its rows cannot be read exactly");
    if (!readable.ok() && readable.sqlstate() != "0A000") {
      return readable;
    }
  }
  std::unique_ptr<PostgresStage> stage;
  if (!readable.ok() || (!plan.cut.has_value() && !ReadWhole(plan, options))) {
    ASSIGN_OR_RETURN(stage, PostgresStage::Create(database, spec.select(), schema));
    if (stage != nullptr) {
      spec.set_select("SELECT * FROM " + stage->table());
      spec.set_staging_table(stage->table());
      spec.set_counted_rows(stage->rows());
      ASSIGN_OR_RETURN(plan, PlanPostgresSelect(*holder, spec.select(), schema.columns.size()));
      plan.rows = static_cast<double>(stage->rows());
      if (plan.cut.has_value()) {
        plan.cut->rows = plan.rows;
      }
    } else if (plan.unsteady) {
      return Status(Code::kPermissionDenied,
                    "the select returns different rows each time it is read, and this role may not "
                    "create the staging table that would fix them")
          .Hint(
              "GRANT USAGE, CREATE ON SCHEMA sluice_stage to the role, or select without random(), "
              "now() "
              "and the like");
    }
  }
  RETURN_IF_ERROR(TakeSnapshot(*holder, plan.cut, plan.rows, options, &spec));
  return std::unique_ptr<Dataset>(
      new PostgresDataset(std::move(holder), std::move(stage), std::move(spec)));
}

Result<std::unique_ptr<Dataset>> HoldPostgresDataset(PostgresDatabase& database,
                                                     const DatasetSpec& spec) {
  if (!spec.spool().empty()) {
    return Status(Code::kUnimplemented, "rows that were read through a session are in no snapshot")
        .SqlState("0A000");
  }
  DatasetSpec held = spec;
  ASSIGN_OR_RETURN(PostgresPool::Lease holder, database.TakeFor(spec));
  const auto begin = [&]() -> Status {
    RETURN_IF_ERROR(SnapshotGone(holder->Begin(BeginReading(spec.snapshot()))));
    return spec.staging_table().empty() ? OkStatus() : KeepStage(*holder, spec.staging_table());
  };
  RETURN_IF_ERROR(begin());
  const Status locked = holder->Run(fmt::format(
      "SET LOCAL lock_timeout = '1s'; EXPLAIN\n{}\n; SET LOCAL lock_timeout = 0", spec.select()));
  if (IsLocked(locked)) {  // a session waits to change a table, for those who have locked it before
    holder->Rollback();
    RETURN_IF_ERROR(begin());
  } else if (!locked.ok()) {
    return locked;
  }
  // A transaction that has imported a snapshot may export it again; the new export lasts as long as
  // this transaction.
  ASSIGN_OR_RETURN(const PostgresResult exported,
                   holder->Ask("SELECT pg_catalog.pg_export_snapshot()"));
  held.set_snapshot(std::string(PostgresText(exported.get(), 0, 0)));
  held.set_holder(PQbackendPID(holder->handle()));
  held.set_lender(locked.ok() && spec.staging_table().empty() ? PostgresLender::NewName() : "");
  return std::unique_ptr<Dataset>(new PostgresDataset(std::move(holder), nullptr, std::move(held)));
}

Result<CutEstimate> EstimatePostgresCut(PostgresDatabase& database, std::string_view select,
                                        const DatasetOptions& options) {
  const std::string through = database.through_session();
  if (const std::optional<int64_t> few = database.few_rows()) {
    return CutEstimate{"through the session: " + through, *few, 1};
  }
  ASSIGN_OR_RETURN(PostgresPool::Lease connection, database.TakeForStatement());
  const std::string trimmed(TrimStatement(select, Dialect::kPostgres));
  ASSIGN_OR_RETURN(const Schema schema, DescribePostgresSelect(*connection, trimmed));
  ASSIGN_OR_RETURN(const SelectPlan plan,
                   PlanPostgresSelect(*connection, trimmed, schema.columns.size()));
  CutEstimate estimate;
  estimate.method = !through.empty()           ? "through the session: " + through
                    : plan.cut.has_value()     ? "ctid ranges"
                    : ReadWhole(plan, options) ? "whole"
                                               : "staged";
  estimate.estimated_rows = std::llround(plan.rows);
  if (estimate.method != "whole") {
    const int64_t rows_per_shard = std::max<int64_t>(options.rows_per_shard, 1);
    estimate.shards =
        std::max<int64_t>(1, (estimate.estimated_rows + rows_per_shard - 1) / rows_per_shard);
  }
  return estimate;
}

}  // namespace sluice::catalog
