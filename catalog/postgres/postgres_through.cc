#include <fmt/core.h>
#include <rapidjson/document.h>
#include <rapidjson/pointer.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/letter_case.h"
#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_explain_internal.h"
#include "catalog/postgres/postgres_session_internal.h"
#include "catalog/postgres/postgres_spooled_internal.h"
#include "catalog/sql/select_shape.h"
#include "catalog/sql/sql_text.h"

// Decides whether other connections see what the session sees.
namespace sluice::catalog {
namespace {

// The tables in a plan, and what its expressions call. A plan qualifies the names that the
// session's search_path does not find.
struct PlanText {
  std::string temporary;            // a temporary table of the session; "": none
  std::set<std::string> relations;  // schema.name
  std::set<std::string> functions;
  std::set<std::string> operators;
  std::set<std::string> qualified;  // schema.name, of functions and operators
};

// "s"."f"( and OPERATOR(s.+).
void AddQualified(std::string_view expression, PlanText* text) {
  const std::vector<SqlToken> tokens = TokenizeSql(expression, Dialect::kPostgres);
  const auto symbol = [&](size_t i, char c) {
    return i < tokens.size() && tokens[i].kind == SqlToken::Kind::kSymbol &&
           expression[tokens[i].begin] == c;
  };
  const auto is_name = [&](size_t i) {
    return i < tokens.size() && (tokens[i].kind == SqlToken::Kind::kWord ||
                                 tokens[i].kind == SqlToken::Kind::kQuotedName);
  };
  const auto name = [&](size_t i) {
    const std::string_view token =
        expression.substr(tokens[i].begin, tokens[i].end - tokens[i].begin);
    return tokens[i].kind == SqlToken::Kind::kQuotedName
               ? std::string(token.substr(1, token.size() - 2))
               : LowerAscii(token);
  };
  for (size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (!is_name(i) || !symbol(i + 1, '.')) {
      continue;
    }
    if (is_name(i + 2) && symbol(i + 3, '(')) {
      text->qualified.insert(name(i) + "." + name(i + 2));
    } else if (i >= 2 && symbol(i - 1, '(') && is_name(i - 2) && name(i - 2) == "operator") {
      size_t end = i + 2;
      while (end < tokens.size() && !symbol(end, ')')) {
        ++end;
      }
      text->qualified.insert(name(i) + "." +
                             std::string(expression.substr(
                                 tokens[i + 2].begin, tokens[end - 1].end - tokens[i + 2].begin)));
    }
  }
}

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
  AddQualified(expression, text);
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
    if (schema != plan.MemberEnd() && relation != plan.MemberEnd()) {
      const std::string in = schema->value.GetString();
      text->relations.insert(in + "." + relation->value.GetString());
      if (in.starts_with("pg_temp")) {
        text->temporary = relation->value.GetString();
      }
    }
    for (const auto& member : plan.GetObject()) {
      Walk(member.value, text);
    }
  }
}

Result<PlanText> TextOfPlan(PostgresConnection& session, std::string_view select) {
  ASSIGN_OR_RETURN(const rapidjson::Document document, ExplainPostgresSelect(session, select));
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

// As the text of an array.
std::string Array(const std::set<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    list += list.empty() ? "\"" : ",\"";
    for (const char c : name) {
      list += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    list += '"';
  }
  return "{" + list + "}";
}

// What a select calls that is not the same in every session, of the names $1 (functions), $2
// (operators) and $3 (both, qualified) in its plan, which reads the relations $4. A plan shows no
// casts and no checks of domains: those count whose type is the session's own, a superuser's, or
// that of a column. So nobody else's objects change how a select is read. 16384 is the first oid of
// what users made.
constexpr std::string_view kOwnFunction =
    "WITH names AS (SELECT $1::pg_catalog.text[] AS functions, $2::pg_catalog.text[] AS operators,"
    " $3::pg_catalog.text[] AS qualified, $4::pg_catalog.text[] AS relations),"
    " called AS (SELECT p.* FROM names, pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n"
    " ON n.oid OPERATOR(pg_catalog.=) p.pronamespace"
    " WHERE p.proname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (functions) AND"
    " (pg_catalog.pg_function_is_visible(p.oid) OR n.nspname OPERATOR(pg_catalog.||) '.'"
    " OPERATOR(pg_catalog.||) p.proname OPERATOR(pg_catalog.=) ANY (qualified))),"
    " used AS (SELECT o.* FROM names, pg_catalog.pg_operator AS o"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) o.oprnamespace"
    " WHERE o.oprname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (operators)"
    " AND o.oid OPERATOR(pg_catalog.>=) 16384 AND"
    " (pg_catalog.pg_operator_is_visible(o.oid) OR n.nspname OPERATOR(pg_catalog.||) '.'"
    " OPERATOR(pg_catalog.||) o.oprname OPERATOR(pg_catalog.=) ANY (qualified))),"
    " types AS (SELECT y.oid FROM pg_catalog.pg_type AS y JOIN pg_catalog.pg_roles AS r"
    " ON r.oid OPERATOR(pg_catalog.=) y.typowner"
    " WHERE (r.rolsuper OR r.rolname OPERATOR(pg_catalog.=) current_user)"
    " UNION ALL SELECT a.atttypid FROM names, pg_catalog.pg_attribute AS a"
    " JOIN pg_catalog.pg_class AS t ON t.oid OPERATOR(pg_catalog.=) a.attrelid"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) t.relnamespace"
    " WHERE n.nspname OPERATOR(pg_catalog.||) '.' OPERATOR(pg_catalog.||) t.relname"
    " OPERATOR(pg_catalog.=) ANY (relations))"
    " SELECT 'calls ' OPERATOR(pg_catalog.||) p.proname OPERATOR(pg_catalog.||) '()'"
    " FROM called AS p WHERE p.prokind OPERATOR(pg_catalog.=) 'f' AND"
    " (p.provolatile OPERATOR(pg_catalog.=) 'v' OR (p.provolatile OPERATOR(pg_catalog.=) 's' AND"
    // The server's own that need their own back end: pg_backend_pid, pg_my_temp_schema, ...
    " (p.oid OPERATOR(pg_catalog.>=) 16384 OR p.proparallel OPERATOR(pg_catalog.<>) 's')))"
    " UNION ALL SELECT 'calls ' OPERATOR(pg_catalog.||) p.proname OPERATOR(pg_catalog.||) '()'"
    " FROM called AS p JOIN pg_catalog.pg_aggregate AS a"
    " ON a.aggfnoid::pg_catalog.oid OPERATOR(pg_catalog.=) p.oid JOIN pg_catalog.pg_proc AS f"
    " ON f.oid OPERATOR(pg_catalog.=) ANY (ARRAY[a.aggtransfn, a.aggfinalfn, a.aggmtransfn,"
    " a.aggmfinalfn]::pg_catalog.oid[]) WHERE p.oid OPERATOR(pg_catalog.>=) 16384"
    " AND f.provolatile OPERATOR(pg_catalog.<>) 'i'"
    " UNION ALL SELECT 'uses the operator ' OPERATOR(pg_catalog.||) o.oprname"
    " FROM used AS o JOIN pg_catalog.pg_proc AS f"
    " ON f.oid OPERATOR(pg_catalog.=) o.oprcode::pg_catalog.oid"
    " WHERE f.provolatile OPERATOR(pg_catalog.<>) 'i'"
    " UNION ALL SELECT 'may cast by ' OPERATOR(pg_catalog.||) f.proname OPERATOR(pg_catalog.||) "
    "'()'"
    " FROM pg_catalog.pg_cast AS c JOIN pg_catalog.pg_proc AS f"
    " ON f.oid OPERATOR(pg_catalog.=) c.castfunc WHERE c.oid OPERATOR(pg_catalog.>=) 16384"
    " AND f.provolatile OPERATOR(pg_catalog.<>) 'i' AND"
    // Built-in types are a superuser's.
    " (c.castsource OPERATOR(pg_catalog.<) 16384 OR c.castsource IN (SELECT t.oid FROM types AS t))"
    " AND (c.casttarget OPERATOR(pg_catalog.<) 16384 OR c.casttarget IN (SELECT t.oid FROM types AS"
    " t)) UNION ALL SELECT 'may check a domain by ' OPERATOR(pg_catalog.||) f.proname"
    " OPERATOR(pg_catalog.||) '()' FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_depend AS "
    "d"
    " ON d.objid OPERATOR(pg_catalog.=) k.oid"
    " AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_constraint'::pg_catalog.regclass"
    " AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass"
    " JOIN pg_catalog.pg_proc AS f ON f.oid OPERATOR(pg_catalog.=) d.refobjid"
    " WHERE k.contypid IN (SELECT t.oid FROM types AS t)"
    " AND f.provolatile OPERATOR(pg_catalog.<>) 'i' ORDER BY 1 LIMIT 1";

// Describes a function in the plan whose result depends on the session, or the function behind an
// aggregate or an operator. Compares only names, so it may be an overload: then the rows are read
// through the session unnecessarily.
Result<std::string> OwnFunction(PostgresConnection& session, const PlanText& text) {
  for (const std::string& name : text.functions) {
    if (name == "current_setting" || name == "set_config" || IsClock(name)) {
      return fmt::format("it calls {}()", name);
    }
  }
  ASSIGN_OR_RETURN(const PostgresResult found,
                   session.Ask(kOwnFunction, {Array(text.functions), Array(text.operators),
                                              Array(text.qualified), Array(text.relations)}));
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
  const Result<rapidjson::Document> plan =
      ExplainPostgresSelect(session, select, session.reading());
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
