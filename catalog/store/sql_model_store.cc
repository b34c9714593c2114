#include "catalog/store/sql_model_store.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "base/clock.h"
#include "catalog/compiled_types.h"
#include "catalog/model_record.h"
#include "catalog/store/catalog_tables.h"
#include "catalog/store/job_end.h"
#include "catalog/store/model_rows.h"
#include "catalog/store/model_versions.h"
#include "catalog/store/model_weights.h"
#include "catalog/store/role_oid.h"

namespace sluice::catalog {
namespace {

constexpr const char* kEverybody = "public";

class SqlModelStore final : public ModelStore {
 public:
  SqlModelStore(CatalogTables& tables, std::unique_ptr<SqlDatabase> database,
                std::shared_ptr<RoleOid> role, Versioned what)
      : tables_(tables), database_(std::move(database)), rows_(tables, std::move(role), what) {}

  Result<ModelVersion> Put(ModelVersion model, std::string_view weights,
                           bool must_be_new) override {
    return PutAndEnd(std::move(model), weights, must_be_new, {});
  }

  Result<ModelVersion> PutAndEnd(ModelVersion model, std::string_view weights, bool must_be_new,
                                 const EndOfJob& end) override {
    RETURN_IF_ERROR(database_->OpenAnew().status());  // otherwise it would be stored in a file that
                                                      // is gone
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    RETURN_IF_ERROR(tables_.Create(*session));
    ASSIGN_OR_RETURN(const auto transaction,
                     SqlTransaction::Begin(*session, tables_.dialect(), true));
    ASSIGN_OR_RETURN(model.version,
                     NextVersion(rows_, *session, model.schema, model.name, must_be_new));
    model.live = true;
    model.created_micros = WallMicros();
    model.weights_sha256 = Sha256Hex(weights);
    model.weights_bytes = static_cast<int64_t>(weights.size());
    RETURN_IF_ERROR(rows_.Run(*session,
                              "UPDATE {model_versions} SET live = false"
                              " WHERE schema_name = $1 AND name = $2 AND live",
                              {model.schema, model.name}));
    RETURN_IF_ERROR(InsertVersion(rows_, *session, model));
    RETURN_IF_ERROR(InsertWeights(rows_, *session, model, weights));
    if (end) {  // last: until the commit, nobody else can write the job's row
      RETURN_IF_ERROR(EndJob(tables_, *session, end(model)));
    }
    RETURN_IF_ERROR(transaction->Commit());
    RETURN_IF_ERROR(ReadBack(model).Because(
        fmt::format("version {} of {} '{}' was stored, and cannot be read back", model.version,
                    rows_.noun(), FullModelName(model.schema, model.name))));
    return model;
  }

  Result<ModelVersion> FindFor(ModelRight right, std::string_view schema, std::string_view name,
                               std::optional<int64_t> version) override {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    ASSIGN_OR_RETURN(const bool exist, tables_.Exist(*session));
    if (!exist) {
      return rows_.NoModel(*session, schema, name);
    }
    ASSIGN_OR_RETURN(ModelVersion found, rows_.Find(*session, schema, name, version));
    if (right == ModelRight::kInspect) {
      RETURN_IF_ERROR(rows_.CheckInspected(*session, schema, name));
    }
    return found;
  }

  Result<std::string> LoadWeights(const ModelVersion& model) override {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    Result<std::string> weights = ReadWeights(rows_, *session, model);
    if (weights.ok() || weights.status().sqlstate() != kDamagedWeights) {
      return weights;
    }
    // It may have been renamed or dropped since it was found.
    ASSIGN_OR_RETURN(const std::optional<ModelVersion> now, rows_.FindAgain(*session, model));
    if (!now) {
      return Status(Code::kAborted,
                    fmt::format("{} '{}:{}' was dropped while it was in use", rows_.noun(),
                                FullModelName(model.schema, model.name), model.version))
          .SqlState("40001");
    }
    const bool renamed = now->schema != model.schema || now->name != model.name;
    return renamed ? ReadWeights(rows_, *session, *now) : weights;
  }

  Result<std::vector<ModelVersion>> List() override {
    const std::string_view owner =
        rows_.has_owners() ? ", (SELECT m.owner::text FROM {models} AS m WHERE m.schema_name ="
                             " v.schema_name AND m.name = v.name)"
                           : "";
    return ReadVersions(
        fmt::format("SELECT {}{} FROM {{model_versions}} AS v WHERE live AND schema_name <> '{}'{}"
                    " ORDER BY schema_name, name",
                    kVersionColumnsWithoutPlan, owner, kCompiledTypes, rows_.AndSeen(1)),
        {});
  }

  Status KeepLatest(const ModelVersion& used, const KeepLimits& limits) override {
    const int64_t now = WallMicros();
    const Status marked = Change(used.schema, used.name, [&](SqlSession& session) -> Status {
      RETURN_IF_ERROR(rows_.Find(session, used.schema, used.name, used.version).status());
      return rows_.Run(session,
                       "UPDATE {model_versions} SET created_micros = $4"
                       " WHERE schema_name = $1 AND name = $2 AND version = $3",
                       {used.schema, used.name, used.version, now});
    });
    RETURN_IF_ERROR(marked);
    ASSIGN_OR_RETURN(const std::vector<ModelVersion> kept,
                     ReadVersions(fmt::format("SELECT {} FROM {{model_versions}} WHERE"
                                              " schema_name = $1{} ORDER BY created_micros DESC,"
                                              " name",
                                              kVersionColumnsWithoutPlan, rows_.AndSeen(2)),
                                  {used.schema}));
    ASSIGN_OR_RETURN(const std::set<std::string> in_use, FormsInUse());
    int64_t versions = 0;
    int64_t bytes = 0;
    for (const ModelVersion& one : kept) {
      ++versions;
      bytes += one.weights_bytes;
      const bool fits = versions <= limits.versions && bytes <= limits.bytes;
      if (fits || now - one.created_micros < limits.spared_micros || in_use.contains(one.name)) {
        continue;
      }
      Status dropped = Drop(one.schema, one.name, one.version);
      if (!dropped.ok() && dropped.code() != Code::kNotFound) {  // another session was faster
        return dropped;
      }
    }
    return OkStatus();
  }

  Result<std::vector<ModelVersion>> Versions(std::string_view schema,
                                             std::string_view name) override {
    ASSIGN_OR_RETURN(auto versions,
                     ReadVersions(fmt::format("SELECT {} FROM {{model_versions}}"
                                              " WHERE schema_name = $1 AND name = $2"
                                              "{} ORDER BY version",
                                              kVersionColumnsWithoutPlan, rows_.AndSeen(3)),
                                  {std::string(schema), std::string(name)}));
    if (versions.empty()) {
      ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
      return rows_.NoModel(*session, schema, name);
    }
    return versions;
  }

  Status Promote(std::string_view schema, std::string_view name, int64_t version) override {
    return Change(schema, name, [&](SqlSession& session) -> Status {
      RETURN_IF_ERROR(rows_.Find(session, schema, name, version).status());
      return MakeLive(rows_, session, schema, name, version);
    });
  }

  Status Rollback(std::string_view schema, std::string_view name) override {
    return Change(schema, name, [&](SqlSession& session) -> Status {
      ASSIGN_OR_RETURN(const ModelVersion live, rows_.Find(session, schema, name, std::nullopt));
      ASSIGN_OR_RETURN(const SqlRows rows,
                       rows_.Ask(session,
                                 "SELECT max(version) FROM {model_versions}"
                                 " WHERE schema_name = $1 AND name = $2 AND version < $3",
                                 {std::string(schema), std::string(name), live.version}));
      if (IsNull(rows.at(0).at(0))) {
        return Status(Code::kFailedPrecondition,
                      fmt::format("{} '{}' has no version before its live one, {}", rows_.noun(),
                                  FullModelName(schema, name), live.version));
      }
      return MakeLive(rows_, session, schema, name, IntegerCell(rows[0][0]));
    });
  }

  Status Drop(std::string_view schema, std::string_view name,
              std::optional<int64_t> version) override {
    return Change(schema, name, [&](SqlSession& session) -> Status {
      ASSIGN_OR_RETURN(const ModelVersion found, rows_.Find(session, schema, name, version));
      std::vector<SqlParameter> which = {std::string(schema), std::string(name)};
      std::string_view only;
      if (version.has_value()) {
        which.emplace_back(*version);
        only = " AND version = $3";
      }
      for (const std::string_view table : {"{model_chunks}", "{model_versions}"}) {
        RETURN_IF_ERROR(rows_.Run(
            session,
            fmt::format("DELETE FROM {} WHERE schema_name = $1 AND name = $2{}", table, only),
            which));
      }
      return AfterDrop(rows_, session, schema, name, version.has_value() && found.live);
    });
  }

  Status Rename(std::string_view schema, std::string_view name, std::string_view new_schema,
                std::string_view new_name) override {
    return Change(schema, name, [&](SqlSession& session) -> Status {
      RETURN_IF_ERROR(rows_.Find(session, schema, name, std::nullopt).status());
      RETURN_IF_ERROR(rows_.CheckMayCreateIn(session, new_schema));
      const std::vector<SqlParameter> names = {std::string(schema), std::string(name),
                                               std::string(new_schema), std::string(new_name)};
      const std::string_view carried = rows_.has_owners() ? ", owner, users, inspectors" : "";
      // Inserts a new row rather than changing one: the versions refer to it.
      ASSIGN_OR_RETURN(
          const SqlRows made,
          rows_.Ask(session,
                    fmt::format(
                        "INSERT INTO {{models}} (schema_name, name, next_version{})"
                        " SELECT CAST($3 AS text), CAST($4 AS text), next_version{} FROM {{models}}"
                        " WHERE schema_name = $1 AND name = $2"
                        " ON CONFLICT DO NOTHING RETURNING 1",
                        carried, carried),
                    names));
      if (made.empty()) {
        return AlreadyExists(fmt::format("{} '{}' already exists", rows_.noun(),
                                         FullModelName(new_schema, new_name)))
            .Hint("DROP it first, or choose another name");
      }
      for (const std::string_view table : {"{model_chunks}", "{model_versions}"}) {
        RETURN_IF_ERROR(rows_.Run(session,
                                  fmt::format("UPDATE {} SET schema_name = $3, name = $4"
                                              " WHERE schema_name = $1 AND name = $2",
                                              table),
                                  names));
      }
      return rows_.Run(session, "DELETE FROM {models} WHERE schema_name = $1 AND name = $2",
                       {std::string(schema), std::string(name)});
    });
  }

  Status CheckMayPut(std::string_view schema, std::string_view name) override {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    ASSIGN_OR_RETURN(const bool exist, tables_.Exist(*session));
    if (!exist) {
      return OkStatus();
    }
    RETURN_IF_ERROR(rows_.CheckOwned(*session, schema, name));
    ASSIGN_OR_RETURN(
        const SqlRows taken,
        rows_.Ask(*session, "SELECT 1 FROM {models} WHERE schema_name = $1 AND name = $2",
                  {std::string(schema), std::string(name)}));
    RETURN_IF_ERROR(taken.empty() ? rows_.CheckMayCreateIn(*session, schema) : OkStatus());
    return rows_.CheckRoomFor(*session, schema, name);
  }

  Status Grant(std::string_view schema, std::string_view name,
               const std::vector<std::string>& roles, const ModelRights& rights) override {
    return ChangeGrants(schema, name, roles, rights,
                        "array_append(array_remove({0}, $3::oid::regrole), $3::oid::regrole)");
  }
  Status Revoke(std::string_view schema, std::string_view name,
                const std::vector<std::string>& roles, const ModelRights& rights) override {
    return ChangeGrants(schema, name, roles, rights, "array_remove({0}, $3::oid::regrole)");
  }

 private:
  // `change`: of {0}, the column that holds the roles with a right.
  Status ChangeGrants(std::string_view schema, std::string_view name,
                      const std::vector<std::string>& roles, const ModelRights& rights,
                      std::string_view change) {
    if (!rows_.has_owners()) {
      return Unimplemented(
                 fmt::format("this database has no roles that could be granted the use of a {}",
                             rows_.noun()))
          .Hint("everyone who can open the file can use its models");
    }
    return Change(schema, name, [&](SqlSession& session) -> Status {
      RETURN_IF_ERROR(rows_.Find(session, schema, name, std::nullopt).status());
      for (const std::string& role : roles) {
        int64_t oid = 0;
        if (role != kEverybody) {
          ASSIGN_OR_RETURN(oid, RoleOid(role).Find(session));
        }
        for (const auto& [column, changes] :
             {std::pair("users", rights.usage), std::pair("inspectors", rights.inspect)}) {
          if (changes) {
            RETURN_IF_ERROR(
                rows_.Run(session,
                          fmt::format("UPDATE {{models}} SET {} = {}"
                                      " WHERE schema_name = $1 AND name = $2",
                                      column, fmt::format(fmt::runtime(change), column)),
                          {std::string(schema), std::string(name), oid}));
          }
        }
      }
      return OkStatus();
    });
  }

  // A server keeps what it has committed; a file may no longer be the one at its path.
  Status ReadBack(const ModelVersion& model) {
    if (tables_.dialect() == Dialect::kPostgres) {
      return OkStatus();
    }
    ASSIGN_OR_RETURN(const auto session, database_->OpenAnew());
    RETURN_IF_ERROR(rows_.Find(*session, model.schema, model.name, model.version).status());
    return ReadWeights(rows_, *session, model).status();
  }

  // Runs `change` in a transaction, with no concurrent change of this model.
  template <typename Function>
  Status Change(std::string_view schema, std::string_view name, const Function& change) {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    ASSIGN_OR_RETURN(const bool exist, tables_.Exist(*session));
    if (!exist) {
      return rows_.NoModel(*session, schema, name);
    }
    ASSIGN_OR_RETURN(const auto transaction,
                     SqlTransaction::Begin(*session, tables_.dialect(), true));
    // Checked first, so that callers without the right do not wait for the lock, and learn nothing
    // about hidden models.
    RETURN_IF_ERROR(rows_.CheckSeen(*session, schema, name));
    RETURN_IF_ERROR(rows_.CheckOwned(*session, schema, name));
    RETURN_IF_ERROR(rows_.Lock(*session, schema, name).status());
    RETURN_IF_ERROR(rows_.CheckOwned(*session, schema, name));
    RETURN_IF_ERROR(change(*session));
    return transaction->Commit();
  }

  // The keys of the compiled forms that jobs without an end may begin with again.
  Result<std::set<std::string>> FormsInUse() {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    std::set<std::string> keys;
    ASSIGN_OR_RETURN(
        const SqlRows rows,
        session->Query(tables_.Resolve("SELECT name FROM {job_records} WHERE"
                                       " substr(name, 1, CAST($2 AS integer)) = $1"),
                       {std::string(kFormInUse), static_cast<int64_t>(kFormInUse.size())}));
    for (const std::vector<Value>& row : rows) {
      keys.insert(TextCell(row[0]).substr(kFormInUse.size()));
    }
    return keys;
  }

  Result<std::vector<ModelVersion>> ReadVersions(std::string_view sql,
                                                 std::vector<SqlParameter> parameters) {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    std::vector<ModelVersion> versions;
    ASSIGN_OR_RETURN(const bool exist, tables_.Exist(*session));
    if (!exist) {
      return versions;
    }
    ASSIGN_OR_RETURN(const SqlRows rows, rows_.AskAsRole(*session, sql, std::move(parameters)));
    versions.reserve(rows.size());
    for (const std::vector<Value>& row : rows) {
      versions.push_back(VersionFromRow(row));
    }
    RETURN_IF_ERROR(rows_.HideUninspected(*session, &versions));
    return versions;
  }

  CatalogTables& tables_;
  const std::unique_ptr<SqlDatabase> database_;
  ModelRows rows_;
};

}  // namespace

std::unique_ptr<ModelStore> MakeModelStore(CatalogTables& tables,
                                           std::unique_ptr<SqlDatabase> database,
                                           std::shared_ptr<RoleOid> role, Versioned what) {
  return std::make_unique<SqlModelStore>(tables, std::move(database), std::move(role), what);
}

}  // namespace sluice::catalog
