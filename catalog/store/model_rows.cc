#include "catalog/store/model_rows.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "catalog/compiled_types.h"
#include "catalog/model_record.h"
#include "catalog/store/catalog_rights.h"
#include "catalog/store/catalog_tables.h"
#include "catalog/store/role_oid.h"

namespace sluice::catalog {

std::string FullModelName(std::string_view schema, std::string_view name) {
  return schema.empty() ? std::string(name) : fmt::format("{}.{}", schema, name);
}

namespace {

Status NeedsInspect(std::string_view schema, std::string_view name) {
  return Status(Code::kPermissionDenied,
                fmt::format("permission denied for the plan and statement of model {}",
                            FullModelName(schema, name)))
      .SqlState("42501")
      .Hint(
          fmt::format("USAGE is PREDICT and EVALUATE, at a gateway; its owner can GRANT INSPECT ON "
                      "MODEL {}",
                      FullModelName(schema, name)));
}

Status LimitReached(std::string message, Versioned what, std::string_view limit) {
  return ResourceExhausted(std::move(message))
      .SqlState("53400")
      .Hint(fmt::format(
          "DROP MODEL{} makes room; the gateway's operator sets the limit (--role-limits "
          "{}=...)",
          what == Versioned::kModels ? "" : " TYPE", limit));
}

}  // namespace

Result<SqlRows> ModelRows::Ask(SqlSession& session, std::string_view sql,
                               const std::vector<SqlParameter>& parameters) {
  if (what_ == Versioned::kModels) {
    return session.Query(tables_.Resolve(sql), parameters);
  }
  std::string of_types(sql);
  for (const auto& [from, to] : {std::pair("{models}", "{model_types}"),
                                 std::pair("{model_versions}", "{model_type_versions}"),
                                 std::pair("{model_chunks}", "{model_type_chunks}")}) {
    for (size_t at = of_types.find(from); at != std::string::npos; at = of_types.find(from)) {
      of_types.replace(at, std::string_view(from).size(), to);
    }
  }
  return session.Query(tables_.Resolve(of_types), parameters);
}

Result<SqlRows> ModelRows::AskAsRole(SqlSession& session, std::string_view sql,
                                     std::vector<SqlParameter> parameters) {
  if (has_owners()) {
    ASSIGN_OR_RETURN(const int64_t oid, role_->Find(session));
    parameters.emplace_back(oid);
  }
  return Ask(session, sql, parameters);
}

Status ModelRows::Run(SqlSession& session, std::string_view sql,
                      const std::vector<SqlParameter>& parameters) {
  return Ask(session, sql, parameters).status();
}

std::string ModelRows::AndSeen(int parameter) const {
  return has_owners() ? fmt::format(
                            " AND (schema_name, name) IN (SELECT schema_name, name"
                            " FROM {{models}} WHERE {})",
                            SeenBy(fmt::format("${}::oid", parameter)))
                      : "";
}

Result<ModelVersion> ModelRows::Find(SqlSession& session, std::string_view schema,
                                     std::string_view name, std::optional<int64_t> version) {
  std::vector<SqlParameter> parameters = {std::string(schema), std::string(name)};
  if (version.has_value()) {
    parameters.emplace_back(*version);
  }
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      AskAsRole(
          session,
          fmt::format("SELECT {} FROM {{model_versions}} WHERE schema_name = $1 AND name = $2{}{}",
                      kVersionColumns, version.has_value() ? " AND version = $3" : " AND live",
                      AndSeen(version.has_value() ? 4 : 3)),
          std::move(parameters)));
  if (!rows.empty()) {
    return VersionFromRow(rows[0]);
  }
  Status missing = version.has_value() ? NoVersion(session, schema, name, *version)
                                       : NoModel(session, schema, name);
  if (missing.code() != Code::kNotFound || version.has_value() || !has_owners()) {
    return missing;
  }
  // A login that row-level security keeps from the versions, as a shell's may be.
  ASSIGN_OR_RETURN(
      const SqlRows seen,
      AskAsRole(session, "SELECT FROM {models} WHERE schema_name = $1 AND name = $2" + AndSeen(3),
                {std::string(schema), std::string(name)}));
  return seen.empty() ? missing : NeedsInspect(schema, name);
}

Result<std::optional<ModelVersion>> ModelRows::FindAgain(SqlSession& session,
                                                         const ModelVersion& model) {
  ASSIGN_OR_RETURN(const SqlRows rows,
                   Ask(session,
                       fmt::format("SELECT {} FROM {{model_versions}} WHERE version = $1 AND"
                                   " created_micros = $2 AND weights_sha256 = $3 AND job = $4",
                                   kVersionColumnsWithoutPlan),
                       {model.version, model.created_micros, model.weights_sha256, model.job}));
  return rows.empty() ? std::optional<ModelVersion>() : VersionFromRow(rows[0]);
}

Status ModelRows::CheckSeen(SqlSession& session, std::string_view schema, std::string_view name) {
  if (!has_owners()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      AskAsRole(session, "SELECT FROM {models} WHERE schema_name = $1 AND name = $2" + AndSeen(3),
                {std::string(schema), std::string(name)}));
  return rows.empty() ? NoModel(session, schema, name) : OkStatus();
}

Status ModelRows::CheckInspected(SqlSession& session, std::string_view schema,
                                 std::string_view name) {
  if (!has_inspectors()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const SqlRows rows,
                   AskAsRole(session,
                             "SELECT FROM {models} WHERE schema_name = $1 AND name = $2 AND " +
                                 InspectedBy("$3::oid"),
                             {std::string(schema), std::string(name)}));
  return rows.empty() ? NeedsInspect(schema, name) : OkStatus();
}

Status ModelRows::HideUninspected(SqlSession& session, std::vector<ModelVersion>* versions) {
  if (!has_inspectors() || versions->empty()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      AskAsRole(session, "SELECT schema_name, name FROM {models} WHERE " + InspectedBy("$1::oid"),
                {}));
  std::set<std::pair<std::string, std::string>> inspected;
  for (const std::vector<Value>& row : rows) {
    inspected.emplace(TextCell(row[0]), TextCell(row[1]));
  }
  for (ModelVersion& version : *versions) {
    if (!inspected.contains({version.schema, version.name})) {
      version.statement.clear();
      version.lineage.clear();
    }
  }
  return OkStatus();
}

Status ModelRows::CheckOwned(SqlSession& session, std::string_view schema, std::string_view name) {
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
                fmt::format("must be owner of {} {}", noun(), FullModelName(schema, name)))
      .SqlState("42501")
      .Hint("its owner may, and the members of that role; or choose another name");
}

Status ModelRows::CheckMayCreateIn(SqlSession& session, std::string_view schema) {
  if (!has_owners() || schema.empty()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const SqlRows rows,
                   AskAsRole(session,
                             "SELECT has_schema_privilege($2::oid, n.oid, 'CREATE') FROM"
                             " pg_namespace AS n WHERE n.nspname = $1",
                             {std::string(schema)}));
  if (rows.empty() || IntegerCell(rows[0][0]) != 0) {
    return OkStatus();
  }
  return Status(Code::kPermissionDenied, fmt::format("permission denied for schema {}", schema))
      .SqlState("42501")
      .Hint(fmt::format("names of {}s in a schema of the database are for roles that may create "
                        "objects there",
                        noun()));
}

Status ModelRows::CheckRoomFor(SqlSession& session, std::string_view schema,
                               std::string_view name) {
  const RoleLimits& limits = tables_.limits();
  if (limits.versions == 0 && limits.bytes == 0) {
    return OkStatus();
  }
  if (has_owners()) {
    ASSIGN_OR_RETURN(const int64_t oid, role_->Find(session));
    ASSIGN_OR_RETURN(const bool limited, IsRoleLimited(session, oid));
    if (!limited) {
      return OkStatus();
    }
  }
  const std::vector<SqlParameter> which = {std::string(schema), std::string(name)};
  ASSIGN_OR_RETURN(
      const SqlRows versions,
      Ask(session, "SELECT count(*) FROM {model_versions} WHERE schema_name = $1 AND name = $2",
          which));
  const int64_t stored_versions = IntegerCell(versions.at(0).at(0));
  if (limits.versions > 0 && stored_versions >= limits.versions) {
    return LimitReached(fmt::format("{} '{}' has {} versions, the limit for one {}", noun(),
                                    FullModelName(schema, name), stored_versions, noun()),
                        what_, "versions");
  }
  // A new one would be the caller's.
  ASSIGN_OR_RETURN(
      const SqlRows bytes,
      has_owners()
          ? AskAsRole(session,
                      "SELECT CAST(coalesce(sum(v.weights_bytes + octet_length(v.statement)"
                      " + octet_length(v.plan)), 0) AS bigint)"
                      " FROM {model_versions} AS v JOIN {models} AS m"
                      " ON m.schema_name = v.schema_name AND m.name = v.name WHERE m.owner ="
                      " coalesce((SELECT o.owner::oid FROM {models} AS o WHERE o.schema_name = $1"
                      " AND o.name = $2), $3::oid)",
                      which)
          : Ask(session,
                "SELECT coalesce(sum(weights_bytes + length(statement) + length(plan)), 0)"
                " FROM {model_versions}",
                {}));
  const int64_t stored_bytes = IntegerCell(bytes.at(0).at(0));
  if (limits.bytes > 0 && stored_bytes >= limits.bytes) {
    return LimitReached(
        fmt::format("{} MiB of {}s are stored{}, the limit is {} MiB", stored_bytes >> 20, noun(),
                    has_owners() ? " for one role" : "", limits.bytes >> 20),
        what_, "stored");
  }
  return OkStatus();
}

Result<SqlRows> ModelRows::Lock(SqlSession& session, std::string_view schema,
                                std::string_view name) {
  const bool postgres = tables_.dialect() == Dialect::kPostgres;
  return Ask(session,
             fmt::format("SELECT next_version FROM {{models}}"
                         " WHERE schema_name = $1 AND name = $2{}",
                         postgres ? " FOR UPDATE" : ""),
             {std::string(schema), std::string(name)});
}

Status ModelRows::NoVersion(SqlSession& session, std::string_view schema, std::string_view name,
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
  return NotFound(
             fmt::format("{} '{}' has no version {}", noun(), FullModelName(schema, name), version))
      .Hint(fmt::format("its versions are {}", versions));
}

Status ModelRows::NoModel(SqlSession& session, std::string_view schema, std::string_view name) {
  Status status = NotFound(fmt::format("there is no {} '{}'", noun(), FullModelName(schema, name)));
  ASSIGN_OR_RETURN(const bool exist, tables_.Exist(session));
  if (!exist) {
    return status;
  }
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      AskAsRole(session,
                fmt::format("SELECT schema_name, name FROM {{models}} WHERE schema_name <> '{}'{}",
                            kCompiledTypes, AndSeen(1)),
                {}));
  std::vector<std::string> names;
  for (const std::vector<Value>& row : rows) {
    names.push_back(FullModelName(TextCell(row[0]), TextCell(row[1])));
  }
  if (const auto near = NearestName(FullModelName(schema, name), names)) {
    status = std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
  }
  return status;
}

}  // namespace sluice::catalog
