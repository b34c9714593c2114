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

// What is read of a version; the second leaves its plan out, which may be large.
inline constexpr std::string_view kVersionColumns =
    "schema_name, name, version, live, type, statement, plan, metrics, job, rows_trained,"
    " lineage, weights_sha256, weights_bytes, created_micros";
inline constexpr std::string_view kVersionColumnsWithoutPlan =
    "schema_name, name, version, live, type, statement, NULL, metrics, job, rows_trained,"
    " lineage, weights_sha256, weights_bytes, created_micros";

// "schema.name", or the name alone.
std::string FullModelName(std::string_view schema, std::string_view name);

// What has versions, owners and users: models, and the types that users bring, whose tables are
// {model_types} and its like.
enum class Versioned { kModels, kModelTypes };

// The rows of models (or model types) and their versions, as one role sees them: what is looked up, locked and
// refused in a session's transaction. Thread-safe; a session is not.
class ModelRows {
 public:
  // `role` is null where the database has no roles: everything is everybody's then.
  ModelRows(CatalogTables& tables, std::shared_ptr<RoleOid> role, Versioned what)
      : tables_(tables), role_(std::move(role)), what_(what) {}

  // For messages: "model", "model type".
  std::string_view noun() const { return what_ == Versioned::kModels ? "model" : "model type"; }

  bool has_owners() const { return role_ != nullptr; }

  // Statements that name tables as "{models}", of whichever kind they are.
  Result<SqlRows> Ask(SqlSession& session, std::string_view sql,
                      const std::vector<SqlParameter>& parameters);
  // The OID of who asks is the last parameter, where there are roles.
  Result<SqlRows> AskAsRole(SqlSession& session, std::string_view sql,
                            std::vector<SqlParameter> parameters);
  Status Run(SqlSession& session, std::string_view sql,
             const std::vector<SqlParameter>& parameters);
  // A condition: of models that who asks may see; the role is the parameter of that number.
  std::string AndSeen(int parameter) const;

  // The live version where none is named. NotFound says what there is.
  Result<ModelVersion> Find(SqlSession& session, std::string_view schema, std::string_view name,
                            std::optional<int64_t> version);
  // The same version, whatever its name is by now; nullopt: it was dropped.
  Result<std::optional<ModelVersion>> FindAgain(SqlSession& session, const ModelVersion& model);
  // NotFound, as if it did not exist: the model is there and hidden from who asks.
  Status CheckSeen(SqlSession& session, std::string_view schema, std::string_view name);
  // 42501: the model is there and belongs to somebody else.
  Status CheckOwned(SqlSession& session, std::string_view schema, std::string_view name);
  // The model's next version, its row locked until the transaction ends; no row: there is no such
  // model. SQLite's write lock is held anyway.
  Result<SqlRows> Lock(SqlSession& session, std::string_view schema, std::string_view name);
  // NotFound, with the name that was perhaps meant.
  Status NoModel(SqlSession& session, std::string_view schema, std::string_view name);

 private:
  Status NoVersion(SqlSession& session, std::string_view schema, std::string_view name,
                   int64_t version);

  CatalogTables& tables_;
  const std::shared_ptr<RoleOid> role_;  // null: a database without roles
  const Versioned what_;
};

}  // namespace sluice::catalog
