#include "catalog/store/sql_model_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "catalog/model_record.h"
#include "catalog/store/catalog_rights.h"
#include "catalog/store/catalog_tables.h"
#include "catalog/store/role_oid.h"

namespace sluice::catalog {
namespace {

// Both databases move a value of this size without trouble, and a chunk more or less costs nothing.
constexpr size_t kChunkBytes = size_t{1} << 20;

constexpr std::string_view kVersionColumns =
    "schema_name, name, version, live, type, statement, plan, metrics, job, rows_trained,"
    " lineage, weights_sha256, weights_bytes, created_micros";
constexpr std::string_view kVersionColumnsWithoutPlan =
    "schema_name, name, version, live, type, statement, NULL, metrics, job, rows_trained,"
    " lineage, weights_sha256, weights_bytes, created_micros";

constexpr const char* kEverybody = "public";
constexpr std::string_view kDamagedState = "XX001";

std::string FullName(std::string_view schema, std::string_view name) {
  return schema.empty() ? std::string(name) : fmt::format("{}.{}", schema, name);
}

class SqlModelStore final : public ModelStore {
 public:
  SqlModelStore(CatalogTables& tables, std::unique_ptr<SqlDatabase> database,
                std::shared_ptr<RoleOid> role)
      : tables_(tables), database_(std::move(database)), role_(std::move(role)) {}

  Result<ModelVersion> Put(ModelVersion model, std::string_view weights,
                           bool must_be_new) override {
    RETURN_IF_ERROR(database_->OpenAnew().status());  // or it would be stored for nobody
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    RETURN_IF_ERROR(tables_.Create(*session));
    ASSIGN_OR_RETURN(const auto transaction,
                     SqlTransaction::Begin(*session, tables_.dialect(), true));
    ASSIGN_OR_RETURN(model.version, NextVersion(*session, model.schema, model.name, must_be_new));
    model.live = true;
    model.created_micros = WallMicros();
    model.weights_sha256 = Sha256Hex(weights);
    model.weights_bytes = static_cast<int64_t>(weights.size());
    RETURN_IF_ERROR(Run(*session,
                        "UPDATE {model_versions} SET live = false"
                        " WHERE schema_name = $1 AND name = $2 AND live",
                        {model.schema, model.name}));
    RETURN_IF_ERROR(InsertVersion(*session, model));
    RETURN_IF_ERROR(InsertChunks(*session, model, weights));
    RETURN_IF_ERROR(transaction->Commit());
    RETURN_IF_ERROR(ReadBack(model).Because(
        fmt::format("version {} of model '{}' was stored, and cannot be read back", model.version,
                    FullName(model.schema, model.name))));
    return model;
  }

  Result<ModelVersion> Find(std::string_view schema, std::string_view name,
                            std::optional<int64_t> version) override {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    ASSIGN_OR_RETURN(const bool exist, tables_.Exist(*session));
    if (!exist) {
      return NoModel(*session, schema, name);
    }
    return FindIn(*session, schema, name, version);
  }

  Result<std::string> LoadWeights(const ModelVersion& model) override {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    Result<std::string> weights = ReadWeights(*session, model);
    if (weights.ok() || weights.status().sqlstate() != kDamagedState) {
      return weights;
    }
    // Somebody else may have renamed or dropped it since it was found.
    ASSIGN_OR_RETURN(const std::optional<ModelVersion> now, FindAgain(*session, model));
    if (!now) {
      return Status(Code::kAborted, fmt::format("model '{}:{}' was dropped while it was in use",
                                                FullName(model.schema, model.name), model.version))
          .SqlState("40001");
    }
    const bool renamed = now->schema != model.schema || now->name != model.name;
    return renamed ? ReadWeights(*session, *now) : weights;
  }

  Result<std::vector<ModelVersion>> List() override {
    return ReadVersions(fmt::format("SELECT {} FROM {{model_versions}} WHERE live{}"
                                    " ORDER BY schema_name, name",
                                    kVersionColumnsWithoutPlan, AndSeen(1)),
                        {});
  }

  Result<std::vector<ModelVersion>> Versions(std::string_view schema,
                                             std::string_view name) override {
    ASSIGN_OR_RETURN(auto versions,
                     ReadVersions(fmt::format("SELECT {} FROM {{model_versions}}"
                                              " WHERE schema_name = $1 AND name = $2"
                                              "{} ORDER BY version",
                                              kVersionColumnsWithoutPlan, AndSeen(3)),
                                  {std::string(schema), std::string(name)}));
    if (versions.empty()) {
      ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
      return NoModel(*session, schema, name);
    }
    return versions;
  }

  Status Promote(std::string_view schema, std::string_view name, int64_t version) override {
    return Change(schema, name, [&](SqlSession& session) -> Status {
      RETURN_IF_ERROR(FindIn(session, schema, name, version).status());
      return MakeLive(session, schema, name, version);
    });
  }

  Status Rollback(std::string_view schema, std::string_view name) override {
    return Change(schema, name, [&](SqlSession& session) -> Status {
      ASSIGN_OR_RETURN(const ModelVersion live, FindIn(session, schema, name, std::nullopt));
      ASSIGN_OR_RETURN(const SqlRows rows,
                       Ask(session,
                           "SELECT max(version) FROM {model_versions}"
                           " WHERE schema_name = $1 AND name = $2 AND version < $3",
                           {std::string(schema), std::string(name), live.version}));
      if (IsNull(rows.at(0).at(0))) {
        return Status(Code::kFailedPrecondition,
                      fmt::format("model '{}' has no version before its live one, {}",
                                  FullName(schema, name), live.version));
      }
      return MakeLive(session, schema, name, IntegerCell(rows[0][0]));
    });
  }

  Status Drop(std::string_view schema, std::string_view name,
              std::optional<int64_t> version) override {
    return Change(schema, name, [&](SqlSession& session) -> Status {
      ASSIGN_OR_RETURN(const ModelVersion found, FindIn(session, schema, name, version));
      std::vector<SqlParameter> which = {std::string(schema), std::string(name)};
      std::string_view only;
      if (version.has_value()) {
        which.emplace_back(*version);
        only = " AND version = $3";
      }
      for (const std::string_view table : {"{model_chunks}", "{model_versions}"}) {
        RETURN_IF_ERROR(
            Run(session,
                fmt::format("DELETE FROM {} WHERE schema_name = $1 AND name = $2{}", table, only),
                which));
      }
      return AfterDrop(session, schema, name, version.has_value() && found.live);
    });
  }

  Status Rename(std::string_view schema, std::string_view name, std::string_view new_schema,
                std::string_view new_name) override {
    return Change(schema, name, [&](SqlSession& session) -> Status {
      RETURN_IF_ERROR(FindIn(session, schema, name, std::nullopt).status());
      const std::vector<SqlParameter> names = {std::string(schema), std::string(name),
                                               std::string(new_schema), std::string(new_name)};
      const std::string_view carried = has_owners() ? ", owner, users" : "";
      // Another row, and not a changed one: the versions refer to it.
      ASSIGN_OR_RETURN(
          const SqlRows made,
          Ask(session,
              fmt::format(
                  "INSERT INTO {{models}} (schema_name, name, next_version{})"
                  " SELECT CAST($3 AS text), CAST($4 AS text), next_version{} FROM {{models}}"
                  " WHERE schema_name = $1 AND name = $2"
                  " ON CONFLICT DO NOTHING RETURNING 1",
                  carried, carried),
              names));
      if (made.empty()) {
        return AlreadyExists(
                   fmt::format("model '{}' already exists", FullName(new_schema, new_name)))
            .Hint("DROP it first, or choose another name");
      }
      for (const std::string_view table : {"{model_chunks}", "{model_versions}"}) {
        RETURN_IF_ERROR(Run(session,
                            fmt::format("UPDATE {} SET schema_name = $3, name = $4"
                                        " WHERE schema_name = $1 AND name = $2",
                                        table),
                            names));
      }
      return Run(session, "DELETE FROM {models} WHERE schema_name = $1 AND name = $2",
                 {std::string(schema), std::string(name)});
    });
  }

  Status CheckMayPut(std::string_view schema, std::string_view name) override {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    ASSIGN_OR_RETURN(const bool exist, tables_.Exist(*session));
    return exist ? CheckOwned(*session, schema, name) : OkStatus();
  }

  Status GrantUsage(std::string_view schema, std::string_view name,
                    const std::vector<std::string>& roles) override {
    return ChangeUsers(schema, name, roles,
                       "array_append(array_remove(users, $3::oid::regrole), $3::oid::regrole)");
  }
  Status RevokeUsage(std::string_view schema, std::string_view name,
                     const std::vector<std::string>& roles) override {
    return ChangeUsers(schema, name, roles, "array_remove(users, $3::oid::regrole)");
  }

 private:
  bool has_owners() const { return role_ != nullptr; }
  // Of models that who asks may see; the role is the parameter of that number, behind the others.
  std::string AndSeen(int parameter) const {
    return has_owners() ? fmt::format(
                              " AND (schema_name, name) IN (SELECT schema_name, name"
                              " FROM {{models}} WHERE {})",
                              SeenBy(fmt::format("${}::oid", parameter)))
                        : "";
  }
  // 42501: the model is there and belongs to somebody else.
  Status CheckOwned(SqlSession& session, std::string_view schema, std::string_view name) {
    if (!has_owners()) {
      return OkStatus();
    }
    ASSIGN_OR_RETURN(const SqlRows rows,
                     AskAsRole(session,
                               fmt::format("SELECT {} FROM {{models}} WHERE schema_name = $1 AND"
                                           " name = $2",
                                           OwnedBy("$3::oid")),
                               {std::string(schema), std::string(name)}));
    if (rows.empty() || IntegerCell(rows[0][0]) != 0) {
      return OkStatus();
    }
    return Status(Code::kPermissionDenied,
                  fmt::format("must be owner of model {}", FullName(schema, name)))
        .SqlState("42501")
        .Hint("its owner may, and the members of that role; or give the model another name");
  }

  Status ChangeUsers(std::string_view schema, std::string_view name,
                     const std::vector<std::string>& roles, std::string_view users) {
    if (!has_owners()) {
      return Unimplemented("this database has no roles, to which the use of a model could be given")
          .Hint("whoever may open the file may use its models");
    }
    return Change(schema, name, [&](SqlSession& session) -> Status {
      RETURN_IF_ERROR(FindIn(session, schema, name, std::nullopt).status());
      for (const std::string& role : roles) {
        int64_t oid = 0;
        if (role != kEverybody) {
          ASSIGN_OR_RETURN(oid, RoleOid(role).Find(session));
        }
        RETURN_IF_ERROR(Run(session,
                            fmt::format("UPDATE {{models}} SET users = {}"
                                        " WHERE schema_name = $1 AND name = $2",
                                        users),
                            {std::string(schema), std::string(name), oid}));
      }
      return OkStatus();
    });
  }

  // The same version, whatever its name is by now.
  Result<std::optional<ModelVersion>> FindAgain(SqlSession& session, const ModelVersion& model) {
    ASSIGN_OR_RETURN(const SqlRows rows,
                     Ask(session,
                         fmt::format("SELECT {} FROM {{model_versions}} WHERE version = $1 AND"
                                     " created_micros = $2 AND weights_sha256 = $3 AND job = $4",
                                     kVersionColumnsWithoutPlan),
                         {model.version, model.created_micros, model.weights_sha256, model.job}));
    return rows.empty() ? std::optional<ModelVersion>() : VersionFromRow(rows[0]);
  }

  Result<std::string> ReadWeights(SqlSession& session, const ModelVersion& model) {
    RETURN_IF_ERROR(CheckChunks(session, model));
    std::string weights;
    weights.reserve(static_cast<size_t>(model.weights_bytes));
    for (int64_t position = 0; std::cmp_less(weights.size(), model.weights_bytes); ++position) {
      ASSIGN_OR_RETURN(const SqlRows rows,
                       Ask(session,
                           "SELECT bytes FROM {model_chunks} WHERE schema_name = $1 AND name = $2"
                           " AND version = $3 AND position = $4",
                           {model.schema, model.name, model.version, position}));
      const std::string chunk = rows.empty() ? "" : TextCell(rows[0][0]);
      if (chunk.empty()) {
        break;  // the checksum tells that something is missing
      }
      weights += chunk;
    }
    const std::string checksum = Sha256Hex(weights);
    if (checksum != model.weights_sha256) {
      return Damaged(
          model, fmt::format("SHA-256 of the {} bytes read is {}, recorded is {} of {} bytes",
                             weights.size(), checksum, model.weights_sha256, model.weights_bytes));
    }
    return weights;
  }

  // A server keeps what it has committed; a file is what its path leads to.
  Status ReadBack(const ModelVersion& model) {
    if (tables_.dialect() == Dialect::kPostgres) {
      return OkStatus();
    }
    ASSIGN_OR_RETURN(const auto session, database_->OpenAnew());
    RETURN_IF_ERROR(FindIn(*session, model.schema, model.name, model.version).status());
    return ReadWeights(*session, model).status();
  }

  Result<SqlRows> Ask(SqlSession& session, std::string_view sql,
                      const std::vector<SqlParameter>& parameters) {
    return session.Query(tables_.Resolve(sql), parameters);
  }
  // The OID of who asks is the last parameter.
  Result<SqlRows> AskAsRole(SqlSession& session, std::string_view sql,
                            std::vector<SqlParameter> parameters) {
    if (has_owners()) {
      ASSIGN_OR_RETURN(const int64_t oid, role_->Find(session));
      parameters.emplace_back(oid);
    }
    return Ask(session, sql, parameters);
  }
  Status Run(SqlSession& session, std::string_view sql,
             const std::vector<SqlParameter>& parameters) {
    return Ask(session, sql, parameters).status();
  }

  // Runs `change` in a transaction that no other change of this model runs beside.
  template <typename Function>
  Status Change(std::string_view schema, std::string_view name, const Function& change) {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    ASSIGN_OR_RETURN(const bool exist, tables_.Exist(*session));
    if (!exist) {
      return NoModel(*session, schema, name);
    }
    ASSIGN_OR_RETURN(const auto transaction,
                     SqlTransaction::Begin(*session, tables_.dialect(), true));
    // First, so that who may not change it is not waited for; and of what they may not see they
    // learn nothing.
    RETURN_IF_ERROR(CheckSeen(*session, schema, name));
    RETURN_IF_ERROR(CheckOwned(*session, schema, name));
    RETURN_IF_ERROR(LockModel(*session, schema, name).status());
    RETURN_IF_ERROR(CheckOwned(*session, schema, name));
    RETURN_IF_ERROR(change(*session));
    return transaction->Commit();
  }

  // The model's row, locked until the transaction ends. SQLite's write lock is held anyway.
  Result<SqlRows> LockModel(SqlSession& session, std::string_view schema, std::string_view name) {
    const bool postgres = tables_.dialect() == Dialect::kPostgres;
    return Ask(session,
               fmt::format("SELECT next_version FROM {{models}}"
                           " WHERE schema_name = $1 AND name = $2{}",
                           postgres ? " FOR UPDATE" : ""),
               {std::string(schema), std::string(name)});
  }

  Result<int64_t> NextVersion(SqlSession& session, const std::string& schema,
                              const std::string& name, bool must_be_new) {
    // A model that is renamed or dropped meanwhile leaves its name to a new one: what was trained
    // for hours is stored all the same.
    constexpr int kAttempts = 3;
    SqlRows rows;
    for (int attempt = 0; attempt < kAttempts && rows.empty(); ++attempt) {
      RETURN_IF_ERROR(
          AskAsRole(session,
                    has_owners() ? "INSERT INTO {models} (schema_name, name, next_version, owner)"
                                   " VALUES ($1, $2, 1, $3::oid) ON CONFLICT DO NOTHING"
                                 : "INSERT INTO {models} (schema_name, name, next_version)"
                                   " VALUES ($1, $2, 1) ON CONFLICT DO NOTHING",
                    {schema, name})
              .status());
      RETURN_IF_ERROR(CheckOwned(session, schema, name));
      ASSIGN_OR_RETURN(rows, LockModel(session, schema, name));
    }
    if (rows.empty()) {
      return Status(Code::kAborted, fmt::format("model '{}' was dropped while it was being stored",
                                                FullName(schema, name)));
    }
    const int64_t version = IntegerCell(rows[0][0]);
    if (must_be_new && version > 1) {
      return AlreadyExists(fmt::format("model '{}' already exists", FullName(schema, name)))
          .Hint("CREATE OR REPLACE MODEL, or INTO, makes a new version of it");
    }
    RETURN_IF_ERROR(Run(session,
                        "UPDATE {models} SET next_version = $3"
                        " WHERE schema_name = $1 AND name = $2",
                        {schema, name, version + 1}));
    return version;
  }

  Status InsertVersion(SqlSession& session, const ModelVersion& model) {
    return Run(session,
               fmt::format("INSERT INTO {{model_versions}} ({}) VALUES ($1, $2, $3, true, $4, $5,"
                           " $6, $7, $8, $9, $10, $11, $12, $13)",
                           kVersionColumns),
               {model.schema, model.name, model.version, model.type, model.statement,
                SqlBytes{model.plan}, MetricsToJson(model.metrics), model.job, model.rows,
                model.lineage.empty() ? "{}" : model.lineage, model.weights_sha256,
                model.weights_bytes, model.created_micros});
  }

  Status InsertChunks(SqlSession& session, const ModelVersion& model, std::string_view weights) {
    for (size_t begin = 0; begin < weights.size(); begin += kChunkBytes) {
      RETURN_IF_ERROR(
          Run(session,
              "INSERT INTO {model_chunks} (schema_name, name, version, position, bytes)"
              " VALUES ($1, $2, $3, $4, $5)",
              {model.schema, model.name, model.version, static_cast<int64_t>(begin / kChunkBytes),
               SqlBytes{weights.substr(begin, kChunkBytes)}}));
    }
    return OkStatus();
  }

  static Status Damaged(const ModelVersion& model, std::string detail) {
    return Status(Code::kFailedPrecondition,
                  fmt::format("the stored weights of model '{}:{}' are damaged",
                              FullName(model.schema, model.name), model.version))
        .SqlState(kDamagedState)
        .Detail(std::move(detail))
        .Hint("train the model again, or restore the table model_chunks from a backup");
  }

  // Before anything is allocated: the chunks are numbered without a gap, and hold as many bytes as
  // the version says.
  Status CheckChunks(SqlSession& session, const ModelVersion& model) {
    ASSIGN_OR_RETURN(const SqlRows rows,
                     Ask(session,
                         "SELECT count(*), coalesce(min(position), 0), coalesce(max(position), -1),"
                         " coalesce(sum(length(bytes)), 0) FROM {model_chunks}"
                         " WHERE schema_name = $1 AND name = $2 AND version = $3",
                         {model.schema, model.name, model.version}));
    const int64_t count = IntegerCell(rows.at(0).at(0));
    const int64_t bytes = IntegerCell(rows[0].at(3));
    const bool whole = IntegerCell(rows[0].at(1)) == 0 && IntegerCell(rows[0].at(2)) == count - 1;
    if (!whole || bytes != model.weights_bytes) {
      return Damaged(model, fmt::format("its {} chunks{} hold {} bytes, recorded are {}", count,
                                        whole ? "" : ", some of which are missing,", bytes,
                                        model.weights_bytes));
    }
    return OkStatus();
  }

  Result<ModelVersion> FindIn(SqlSession& session, std::string_view schema, std::string_view name,
                              std::optional<int64_t> version) {
    std::vector<SqlParameter> parameters = {std::string(schema), std::string(name)};
    if (version.has_value()) {
      parameters.emplace_back(*version);
    }
    ASSIGN_OR_RETURN(
        const SqlRows rows,
        AskAsRole(session,
                  fmt::format(
                      "SELECT {} FROM {{model_versions}} WHERE schema_name = $1 AND name = $2{}{}",
                      kVersionColumns, version.has_value() ? " AND version = $3" : " AND live",
                      AndSeen(version.has_value() ? 4 : 3)),
                  std::move(parameters)));
    if (!rows.empty()) {
      return VersionFromRow(rows[0]);
    }
    return version.has_value() ? NoVersion(session, schema, name, *version)
                               : NoModel(session, schema, name);
  }

  Status CheckSeen(SqlSession& session, std::string_view schema, std::string_view name) {
    if (!has_owners()) {
      return OkStatus();
    }
    ASSIGN_OR_RETURN(
        const SqlRows rows,
        AskAsRole(session, "SELECT FROM {models} WHERE schema_name = $1 AND name = $2" + AndSeen(3),
                  {std::string(schema), std::string(name)}));
    return rows.empty() ? NoModel(session, schema, name) : OkStatus();
  }

  Status NoVersion(SqlSession& session, std::string_view schema, std::string_view name,
                   int64_t version) {
    ASSIGN_OR_RETURN(const SqlRows rows,
                     AskAsRole(session,
                               fmt::format("SELECT version FROM {{model_versions}} WHERE"
                                           " schema_name = $1 AND name = $2{} ORDER BY version",
                                           AndSeen(3)),
                               {std::string(schema), std::string(name)}));
    if (rows.empty()) {
      return NoModel(session, schema, name);
    }
    std::string versions;
    for (const std::vector<Value>& row : rows) {
      versions += fmt::format("{}{}", versions.empty() ? "" : ", ", IntegerCell(row[0]));
    }
    return NotFound(fmt::format("model '{}' has no version {}", FullName(schema, name), version))
        .Hint(fmt::format("its versions are {}", versions));
  }

  Status NoModel(SqlSession& session, std::string_view schema, std::string_view name) {
    Status status = NotFound(fmt::format("there is no model '{}'", FullName(schema, name)));
    ASSIGN_OR_RETURN(const bool exist, tables_.Exist(session));
    if (!exist) {
      return status;
    }
    ASSIGN_OR_RETURN(
        const SqlRows rows,
        AskAsRole(session, "SELECT schema_name, name FROM {models} WHERE true" + AndSeen(1), {}));
    std::vector<std::string> names;
    for (const std::vector<Value>& row : rows) {
      names.push_back(FullName(TextCell(row[0]), TextCell(row[1])));
    }
    if (const auto near = NearestName(FullName(schema, name), names)) {
      status = std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
    }
    return status;
  }

  Status MakeLive(SqlSession& session, std::string_view schema, std::string_view name,
                  int64_t version) {
    return Run(session,
               "UPDATE {model_versions} SET live = (version = $3)"
               " WHERE schema_name = $1 AND name = $2",
               {std::string(schema), std::string(name), version});
  }

  // Without the live version the newest one becomes live; without any the model is gone.
  Status AfterDrop(SqlSession& session, std::string_view schema, std::string_view name,
                   bool was_live) {
    const std::vector<SqlParameter> which = {std::string(schema), std::string(name)};
    ASSIGN_OR_RETURN(const SqlRows rows, Ask(session,
                                             "SELECT max(version) FROM {model_versions}"
                                             " WHERE schema_name = $1 AND name = $2",
                                             which));
    if (IsNull(rows.at(0).at(0))) {
      return Run(session, "DELETE FROM {models} WHERE schema_name = $1 AND name = $2", which);
    }
    return was_live ? MakeLive(session, schema, name, IntegerCell(rows[0][0])) : OkStatus();
  }

  Result<std::vector<ModelVersion>> ReadVersions(std::string_view sql,
                                                 std::vector<SqlParameter> parameters) {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    std::vector<ModelVersion> versions;
    ASSIGN_OR_RETURN(const bool exist, tables_.Exist(*session));
    if (!exist) {
      return versions;
    }
    ASSIGN_OR_RETURN(const SqlRows rows, AskAsRole(*session, sql, std::move(parameters)));
    versions.reserve(rows.size());
    for (const std::vector<Value>& row : rows) {
      versions.push_back(VersionFromRow(row));
    }
    return versions;
  }

  CatalogTables& tables_;
  const std::unique_ptr<SqlDatabase> database_;
  const std::shared_ptr<RoleOid> role_;  // null: a database without roles
};

}  // namespace

std::unique_ptr<ModelStore> MakeModelStore(CatalogTables& tables,
                                           std::unique_ptr<SqlDatabase> database,
                                           std::shared_ptr<RoleOid> role) {
  return std::make_unique<SqlModelStore>(tables, std::move(database), std::move(role));
}

}  // namespace sluice::catalog
