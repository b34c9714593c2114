#include "catalog/store/model_versions.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "catalog/model_record.h"
#include "catalog/store/model_rows.h"

namespace sluice::catalog {

Result<int64_t> NextVersion(ModelRows& models, SqlSession& session, const std::string& schema,
                            const std::string& name, bool must_be_new) {
  // If the model is renamed or dropped meanwhile, its name is free for a new model, so that the
  // result of hours of training is stored nevertheless.
  constexpr int kAttempts = 3;
  SqlRows rows;
  for (int attempt = 0; attempt < kAttempts && rows.empty(); ++attempt) {
    ASSIGN_OR_RETURN(
        const SqlRows made,
        models.AskAsRole(session,
                         models.has_owners()
                             ? "INSERT INTO {models} (schema_name, name, next_version, owner)"
                               " VALUES ($1, $2, 1, $3::oid) ON CONFLICT DO NOTHING RETURNING 1"
                             : "INSERT INTO {models} (schema_name, name, next_version)"
                               " VALUES ($1, $2, 1) ON CONFLICT DO NOTHING RETURNING 1",
                         {schema, name}));
    if (!made.empty()) {
      RETURN_IF_ERROR(models.CheckMayCreateIn(session, schema));
    }
    RETURN_IF_ERROR(models.CheckOwned(session, schema, name));
    ASSIGN_OR_RETURN(rows, models.Lock(session, schema, name));
  }
  if (rows.empty()) {
    return Status(Code::kAborted, fmt::format("{} '{}' was dropped while it was being stored",
                                              models.noun(), FullModelName(schema, name)));
  }
  const int64_t version = IntegerCell(rows[0][0]);
  if (must_be_new && version > 1) {
    Status exists = AlreadyExists(
        fmt::format("{} '{}' already exists", models.noun(), FullModelName(schema, name)));
    return std::move(exists).Hint(
        models.noun() == "model" ? "CREATE OR REPLACE MODEL, or INTO, makes a new version of it"
                                 : "CREATE OR REPLACE MODEL TYPE makes a new version of it");
  }
  RETURN_IF_ERROR(models.Run(session,
                             "UPDATE {models} SET next_version = $3"
                             " WHERE schema_name = $1 AND name = $2",
                             {schema, name, version + 1}));
  return version;
}

Status InsertVersion(ModelRows& models, SqlSession& session, const ModelVersion& model) {
  return models.Run(
      session,
      fmt::format("INSERT INTO {{model_versions}} ({}) VALUES ($1, $2, $3, true, $4, $5,"
                  " $6, $7, $8, $9, $10, $11, $12, $13)",
                  kVersionColumns),
      {model.schema, model.name, model.version, model.type, model.statement, SqlBytes{model.plan},
       MetricsToJson(model.metrics), model.job, model.rows,
       model.lineage.empty() ? "{}" : model.lineage, model.weights_sha256, model.weights_bytes,
       model.created_micros});
}

Status MakeLive(ModelRows& models, SqlSession& session, std::string_view schema,
                std::string_view name, int64_t version) {
  return models.Run(session,
                    "UPDATE {model_versions} SET live = (version = $3)"
                    " WHERE schema_name = $1 AND name = $2",
                    {std::string(schema), std::string(name), version});
}

Status AfterDrop(ModelRows& models, SqlSession& session, std::string_view schema,
                 std::string_view name, bool was_live) {
  const std::vector<SqlParameter> which = {std::string(schema), std::string(name)};
  ASSIGN_OR_RETURN(const SqlRows rows, models.Ask(session,
                                                  "SELECT max(version) FROM {model_versions}"
                                                  " WHERE schema_name = $1 AND name = $2",
                                                  which));
  if (IsNull(rows.at(0).at(0))) {
    return models.Run(session, "DELETE FROM {models} WHERE schema_name = $1 AND name = $2", which);
  }
  return was_live ? MakeLive(models, session, schema, name, IntegerCell(rows[0][0])) : OkStatus();
}

}  // namespace sluice::catalog
