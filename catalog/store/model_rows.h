#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/sql/sql_session.h"

namespace sluice::catalog {

class CatalogTables;
class RoleOid;

// The columns read for a version; the second list omits its plan, which may be large.
inline constexpr std::string_view kVersionColumns =
    "schema_name, name, version, live, type, statement, plan, metrics, job, rows_trained,"
    " lineage, weights_sha256, weights_bytes, created_micros";
inline constexpr std::string_view kVersionColumnsWithoutPlan =
    "schema_name, name, version, live, type, statement, NULL, metrics, job, rows_trained,"
    " lineage, weights_sha256, weights_bytes, created_micros";

// "schema.name", or the name alone.
std::string FullModelName(std::string_view schema, std::string_view name);

// What has versions, owners and users: models, and user-defined model types, whose tables are
// {model_types}, {model_type_versions} and {model_type_chunks}.
enum class Versioned { kModels, kModelTypes };

// The rows of models (or model types) and their versions, as one role sees them: what is looked up,
// locked and refused in a session's transaction. Thread-safe; a session is not.
class ModelRows {
 public:
  // `role` is null if the database has no roles: then everything belongs to everyone.
  ModelRows(CatalogTables& tables, std::shared_ptr<RoleOid> role, Versioned what)
      : tables_(tables), role_(std::move(role)), what_(what) {}

  // For messages: "model", "model type".
  std::string_view noun() const { return what_ == Versioned::kModels ? "model" : "model type"; }

  bool has_owners() const { return role_ != nullptr; }

  // Statements name the tables "{models}" and so on; for model types these are replaced.
  Result<SqlRows> Ask(SqlSession& session, std::string_view sql,
                      const std::vector<SqlParameter>& parameters);
  // The calling role's OID is appended to the parameters, if there are roles.
  Result<SqlRows> AskAsRole(SqlSession& session, std::string_view sql,
                            std::vector<SqlParameter> parameters);
  Status Run(SqlSession& session, std::string_view sql,
             const std::vector<SqlParameter>& parameters);
  // A condition that selects the models visible to the caller; the role is the parameter of that
  // number.
  std::string AndSeen(int parameter) const;

  // The live version if none is named. NotFound lists what exists.
  Result<ModelVersion> Find(SqlSession& session, std::string_view schema, std::string_view name,
                            std::optional<int64_t> version);
  // The same version under its current name; nullopt: it was dropped.
  Result<std::optional<ModelVersion>> FindAgain(SqlSession& session, const ModelVersion& model);
  // NotFound, as if it did not exist: the model exists but is hidden from the caller.
  Status CheckSeen(SqlSession& session, std::string_view schema, std::string_view name);
  // 42501: the caller may use the model, and not see how it was made.
  Status CheckInspected(SqlSession& session, std::string_view schema, std::string_view name);
  // Takes statement and lineage out of those versions.
  Status HideUninspected(SqlSession& session, std::vector<ModelVersion>* versions);
  // 42501: the model exists and belongs to another role.
  Status CheckOwned(SqlSession& session, std::string_view schema, std::string_view name);
  // 42501: the database has a schema of that name, in which the caller may not create anything. So
  // no role takes the names of models that another one will look for in its own schema.
  Status CheckMayCreateIn(SqlSession& session, std::string_view schema);
  // 53400: the model, or what its owner stores, has reached the limits of CatalogTables.
  Status CheckRoomFor(SqlSession& session, std::string_view schema, std::string_view name);
  // The model's next version, its row locked until the transaction ends; no row: there is no such
  // model. SQLite's write lock is held in any case.
  Result<SqlRows> Lock(SqlSession& session, std::string_view schema, std::string_view name);
  // NotFound, with a similar name if there is one.
  Status NoModel(SqlSession& session, std::string_view schema, std::string_view name);

 private:
  // Who may see a model type sees all of it.
  bool has_inspectors() const { return has_owners() && what_ == Versioned::kModels; }
  Status NoVersion(SqlSession& session, std::string_view schema, std::string_view name,
                   int64_t version);

  CatalogTables& tables_;
  const std::shared_ptr<RoleOid> role_;  // null: a database without roles
  const Versioned what_;
};

}  // namespace sluice::catalog
