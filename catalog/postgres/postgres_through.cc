#include <fmt/core.h>
#include <rapidjson/document.h>
#include <rapidjson/pointer.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_session_internal.h"
#include "catalog/postgres/postgres_spooled_internal.h"
#include "catalog/sql/select_shape.h"
#include "catalog/sql/sql_text.h"

// Decides whether other connections see what the session sees.
namespace sluice::catalog {
namespace {

// The tables in a plan, and the expressions that it computes.
struct PlanText {
  std::string temporary;  // a temporary table of the session; "": none
  std::set<std::string> functions;
  std::set<std::string> operators;
};

void AddOperators(std::string_view expression, PlanText* text) {
  constexpr std::string_view kCharacters = "+-*/<>=~!@#%^&|`?";
  size_t end = 0;  // of the operator so far
  std::string name;
  for (const SqlToken& token : TokenizeSql(expression, Dialect::kPostgres)) {
    const bool part = token.kind == SqlToken::Kind::kSymbol &&
                      kCharacters.find(expression[token.begin]) != std::string_view::npos;
    if (!name.empty() && (!part || token.begin != end)) {
      text->operators.insert(std::exchange(name, {}));
    }
    if (part) {
      name += expression.substr(token.begin, token.end - token.begin);
    }
    end = token.end;
  }
  if (!name.empty()) {
    text->operators.insert(std::move(name));
  }
}

void AddCalls(std::string_view expression, PlanText* text) {
  for (std::string& name : CalledFunctions(expression, Dialect::kPostgres)) {
    text->functions.insert(std::move(name));
  }
  AddOperators(expression, text);
}

void Walk(const rapidjson::Value& plan, PlanText* text) {
  if (plan.IsArray()) {
    for (const rapidjson::Value& entry : plan.GetArray()) {
      Walk(entry, text);
    }
  } else if (plan.IsString()) {
    AddCalls({plan.GetString(), plan.GetStringLength()}, text);
  } else if (plan.IsObject()) {
    const auto schema = plan.FindMember("Schema");
    const auto relation = plan.FindMember("Relation Name");
    if (schema != plan.MemberEnd() && relation != plan.MemberEnd() &&
        std::string_view(schema->value.GetString()).starts_with("pg_temp")) {
      text->temporary = relation->value.GetString();
    }
    for (const auto& member : plan.GetObject()) {
      Walk(member.value, text);
    }
  }
}

Result<rapidjson::Document> ExplainedPlan(PostgresConnection& session, std::string_view select) {
  constexpr std::string_view kExplain = "EXPLAIN (FORMAT JSON, VERBOSE) ";
  ASSIGN_OR_RETURN(const PostgresResult result,
                   session.Ask(fmt::format("{}{}", kExplain, select), kExplain.size()));
  const std::string_view json = PostgresText(result.get(), 0, 0);
  rapidjson::Document document;
  document.Parse(json.data(), json.size());
  if (document.HasParseError()) {
    return Internal("EXPLAIN gave no plan");
  }
  return document;
}

Result<PlanText> TextOfPlan(PostgresConnection& session, std::string_view select) {
  ASSIGN_OR_RETURN(const rapidjson::Document document, ExplainedPlan(session, select));
  PlanText text;
  Walk(document, &text);
  return text;
}

// Written without parentheses, or dependent on the time at which the session's transaction began.
bool IsClock(std::string_view name) {
  constexpr std::array<std::string_view, 8> kClocks = {
      "now",       "current_date",   "current_time",          "current_timestamp",
      "localtime", "localtimestamp", "transaction_timestamp", "statement_timestamp"};
  return std::find(kClocks.begin(), kClocks.end(), name) != kClocks.end();
}

std::string Names(const std::set<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    list += (list.empty() ? "" : ", ") + QuoteText(name, Dialect::kPostgres);
  }
  return fmt::format("ANY (ARRAY[{}]::pg_catalog.name[])", list);
}

// Describes a function in the plan whose result depends on the session, or the function behind an
// aggregate or an operator. Compares only names, so it may be another function of that name: then
// the rows are read through the session unnecessarily.
Result<std::string> OwnFunction(PostgresConnection& session, const PlanText& text) {
  for (const std::string& name : text.functions) {
    if (name == "current_setting" || name == "set_config" || IsClock(name)) {
      return fmt::format("it calls {}()", name);
    }
  }
  constexpr int kFirstOfUsers = 16'384;
  ASSIGN_OR_RETURN(
      const PostgresResult found,
      session.Ask(fmt::format(
          "SELECT 'calls ' OPERATOR(pg_catalog.||) p.proname OPERATOR(pg_catalog.||) '()'"
          " FROM pg_catalog.pg_proc AS p"
          " WHERE p.proname OPERATOR(pg_catalog.=) {0}"
          " AND p.prokind OPERATOR(pg_catalog.=) 'f' AND ("
          "p.provolatile OPERATOR(pg_catalog.=) 'v' OR"
          " (p.provolatile OPERATOR(pg_catalog.=) 's' AND (p.oid OPERATOR(pg_catalog.>=) {2}"
          // The server's own that need their own back end: pg_backend_pid, pg_my_temp_schema, ...
          " OR p.proparallel OPERATOR(pg_catalog.<>) 's')))"
          " UNION ALL SELECT 'calls ' OPERATOR(pg_catalog.||) p.proname OPERATOR(pg_catalog.||)"
          " '()' FROM pg_catalog.pg_proc AS p, pg_catalog.pg_aggregate AS a,"
          " pg_catalog.pg_proc AS f WHERE p.proname OPERATOR(pg_catalog.=) {0}"
          " AND p.oid OPERATOR(pg_catalog.>=) {2}"
          " AND a.aggfnoid::pg_catalog.oid OPERATOR(pg_catalog.=) p.oid"
          " AND f.oid OPERATOR(pg_catalog.=) ANY (ARRAY[a.aggtransfn, a.aggfinalfn,"
          " a.aggmtransfn, a.aggmfinalfn]::pg_catalog.oid[])"
          " AND f.provolatile OPERATOR(pg_catalog.<>) 'i'"
          " UNION ALL SELECT 'uses the operator ' OPERATOR(pg_catalog.||) o.oprname"
          " FROM pg_catalog.pg_operator AS o, pg_catalog.pg_proc AS f"
          " WHERE o.oprname OPERATOR(pg_catalog.=) {1}"
          " AND o.oid OPERATOR(pg_catalog.>=) {2}"
          " AND f.oid OPERATOR(pg_catalog.=) o.oprcode::pg_catalog.oid"
          " AND f.provolatile OPERATOR(pg_catalog.<>) 'i'"
          // A plan does not show implicit casts.
          " UNION ALL SELECT 'may cast by ' OPERATOR(pg_catalog.||) f.proname"
          " OPERATOR(pg_catalog.||) '()' FROM pg_catalog.pg_cast AS c, pg_catalog.pg_proc AS f"
          " WHERE c.oid OPERATOR(pg_catalog.>=) {2}"
          " AND f.oid OPERATOR(pg_catalog.=) c.castfunc"
          " AND f.provolatile OPERATOR(pg_catalog.<>) 'i'"
          " UNION ALL SELECT 'may check a domain by ' OPERATOR(pg_catalog.||) f.proname"
          " OPERATOR(pg_catalog.||) '()' FROM pg_catalog.pg_constraint AS k,"
          " pg_catalog.pg_depend AS d, pg_catalog.pg_proc AS f"
          " WHERE k.contypid OPERATOR(pg_catalog.<>) 0 AND d.objid OPERATOR(pg_catalog.=) k.oid"
          " AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_constraint'::pg_catalog.regclass"
          " AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass"
          " AND f.oid OPERATOR(pg_catalog.=) d.refobjid"
          " AND f.provolatile OPERATOR(pg_catalog.<>) 'i' ORDER BY 1 LIMIT 1",
          Names(text.functions), Names(text.operators), kFirstOfUsers)));
  if (PQntuples(found.get()) == 0) {
    return std::string();
  }
  return fmt::format("it {}, which is not IMMUTABLE", PostgresText(found.get(), 0, 0));
}

// The effects of the session's open transaction that others do not see yet, or must wait for.
Result<std::string> OwnTransaction(PostgresConnection& session) {
  ASSIGN_OR_RETURN(const PostgresResult state,
                   session.Ask("SELECT pg_catalog.pg_current_xact_id_if_assigned() IS NOT NULL,"
                               " EXISTS (SELECT FROM pg_catalog.pg_locks AS l"
                               " WHERE l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()"
                               " AND l.locktype OPERATOR(pg_catalog.=) 'relation'"
                               " AND l.mode OPERATOR(pg_catalog.<>) 'AccessShareLock'),"
                               " pg_catalog.current_setting('transaction_isolation')"));
  if (PostgresText(state.get(), 0, 0) == "t") {
    return std::string("its transaction has written");
  }
  if (PostgresText(state.get(), 0, 1) == "t") {
    return std::string("its transaction holds locks");
  }
  const std::string_view isolation = PostgresText(state.get(), 0, 2);
  return isolation == "read committed" ? std::string()
                                       : fmt::format("its transaction is {}", isolation);
}

}  // namespace

Result<std::optional<int64_t>> EstimateRows(PostgresConnection& session, std::string_view select) {
  RETURN_IF_ERROR(session.Begin("BEGIN READ ONLY"));
  const Result<rapidjson::Document> plan = ExplainedPlan(session, select);
  session.Rollback();
  if (!plan.ok()) {
    return plan.status().sqlstate() == "57014"
               ? Result<std::optional<int64_t>>(plan.status())
               : Result<std::optional<int64_t>>(std::optional<int64_t>());
  }
  const rapidjson::Value* const rows = rapidjson::Pointer("/0/Plan/Plan Rows").Get(*plan);
  return rows != nullptr && rows->IsNumber()
             ? std::optional<int64_t>(static_cast<int64_t>(rows->GetDouble()))
             : std::nullopt;
}

Result<std::string> ReasonToReadThroughSession(PostgresConnection& session, std::string_view select,
                                               bool has_temporary) {
  if (session.InTransaction()) {
    ASSIGN_OR_RETURN(std::string why, OwnTransaction(session));
    if (!why.empty()) {
      return why;
    }
  }
  RETURN_IF_ERROR(session.Begin("BEGIN READ ONLY"));
  const Result<PlanText> text = TextOfPlan(session, select);
  Result<std::string> function =
      text.ok() ? OwnFunction(session, *text) : Result<std::string>(std::string());
  session.Rollback();
  if (!text.ok() && text.status().sqlstate() == "57014") {
    return text.status();
  }
  if (!text.ok()) {
    return std::string();  // Describe reports the error
  }
  if (!text->temporary.empty()) {
    return fmt::format("it reads the temporary table {}", text->temporary);
  }
  if (!function.ok() || !function->empty() || !has_temporary) {
    return function;
  }
  // Types and functions of the temporary schema, and tables that a function reads.
  const Status nothing = CheckNothingTemporary(session, select);
  if (nothing.ok()) {
    return std::string();
  }
  return nothing.sqlstate() == "0A000" ? Result<std::string>("it reads something temporary")
                                       : nothing;
}

}  // namespace sluice::catalog
