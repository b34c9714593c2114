#include "server/statements/prepared_statements.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/value.h"
#include "catalog/data_source.h"
#include "catalog/sql/sql_text.h"
#include "executor/executor.h"
#include "server/pgwire/sql/column_types.h"
#include "server/pgwire/sql/prepared_text.h"
#include "server/pgwire/sql/router.h"
#include "server/pgwire/sql/sql_words_internal.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"

namespace sluice::server {
namespace {

// The first row of a select, as texts with their types.
class ComputedArguments final : public catalog::RowReceiver {
 public:
  explicit ComputedArguments(catalog::Dialect dialect) : dialect_(dialect) {}
  Status Header(const Schema& schema) override {
    schema_ = schema;
    return OkStatus();
  }
  Status Rows(const RowBatch& batch) override {
    for (size_t i = 0; i < batch.columns.size() && batch.rows > 0 && row.values.size() < i + 1;
         ++i) {
      const RowBatch::Column& column = batch.columns[i];
      ColumnInfo info = schema_.columns[i];
      info.type = column.TypeAt(0);
      row.types.push_back(pgwire::ColumnTypeOf(info, dialect_).oid);
      row.values.push_back(column.null[0] != 0
                               ? std::nullopt
                               : std::optional(FormatValue(column.ValueAt(0), column.TypeAt(0))));
    }
    return OkStatus();
  }

  pgwire::AnsweredRow row;

 private:
  const catalog::Dialect dialect_;
  Schema schema_;
};

catalog::Dialect DialectOf(Session& session) {
  return session.source().dialect() == "sqlite" ? catalog::Dialect::kSqlite
                                                : catalog::Dialect::kPostgres;
}

// The arguments stay at their places in the text, so that those of the database's errors are right.
Result<pgwire::AnsweredRow> Compute(std::string_view sql, const pgwire::ExecuteText& execute,
                                    Session& session) {
  ComputedArguments computed(DialectOf(session));
  if (!execute.arguments.empty()) {
    constexpr std::string_view kSelect = "SELECT ";
    const auto begin = static_cast<size_t>(execute.arguments.front().begin);
    const auto end = static_cast<size_t>(execute.arguments.back().end);
    const std::string before = pgwire::Blanks(sql.substr(0, begin));
    RETURN_IF_ERROR(session.source()
                        .Execute(before.substr(0, before.size() - kSelect.size()) +
                                     std::string(kSelect) +
                                     std::string(sql.substr(begin, end - begin)),
                                 &computed, session.stop())
                        .status());
  }
  return std::move(computed.row);
}

Status Execute(std::string_view sql, const pgwire::ExecuteText& execute, Session& session,
               executor::ResultSink& sink) {
  const PreparedStatements::Prepared prepared = *session.prepared().Find(execute.name);
  ASSIGN_OR_RETURN(const pgwire::AnsweredRow arguments, Compute(sql, execute, session));
  ASSIGN_OR_RETURN(const pgwire::BoundText bound,
                   pgwire::BindArguments(prepared.text, {}, prepared.types, sql, execute, arguments,
                                         DialectOf(session)));
  return bound.Moved(RunScript(bound.text, session, sink));
}

// The database's own prepared statements have the same names.
Status CheckFree(const std::string& name, Session& session) {
  if (DialectOf(session) == catalog::Dialect::kSqlite) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(
      const catalog::ExecuteResult found,
      session.source().Execute("SELECT FROM pg_catalog.pg_prepared_statements AS p WHERE p.name"
                               " OPERATOR(pg_catalog.=) " +
                                   catalog::QuoteText(name, catalog::Dialect::kPostgres),
                               nullptr, session.stop()));
  return found.tag == "SELECT 0" ? OkStatus() : pgwire::NameIsTaken(name);
}

}  // namespace

Status PreparedStatements::Prepare(std::string_view sql) {
  const std::optional<pgwire::PrepareOfOurs> read = pgwire::ReadPrepareOfOurs(sql);
  if (!read.has_value() || (read->error.ok() && !read->head.has_value())) {
    return SyntaxError("PREPARE needs a name: PREPARE name [(type, ...)] AS a statement");
  }
  RETURN_IF_ERROR(read->error);
  const std::string_view inside = pgwire::TextOf(sql, read->inside);
  const std::string& name = read->head->name;
  if (Has(name)) {
    return pgwire::NameIsTaken(name);
  }
  if (statements_.size() >= kMost || bytes_ + inside.size() > kMostBytes) {
    return ResourceExhausted(fmt::format("a session keeps at most {} prepared statements of {} "
                                         "bytes together",
                                         kMost, kMostBytes))
        .SqlState("53400")
        .Hint("DEALLOCATE those that are not needed any more");
  }
  const Status readable = pgwire::CheckPreparedText(inside, {});
  if (!readable.ok()) {
    return readable.Within(read->inside);
  }
  bytes_ += inside.size();
  statements_.emplace(name, Prepared{read->head->types, std::string(inside)});
  return OkStatus();
}

bool PreparedStatements::Forget(std::string_view name) {
  if (name.empty()) {
    statements_.clear();
    bytes_ = 0;
    return true;
  }
  const auto known = statements_.find(name);
  if (known == statements_.end()) {
    return false;
  }
  bytes_ -= known->second.text.size();
  statements_.erase(known);
  return true;
}

const PreparedStatements::Prepared* PreparedStatements::Find(std::string_view name) const {
  const auto known = statements_.find(name);
  return known == statements_.end() ? nullptr : &known->second;
}

std::string_view ExecutedText(std::string_view sql, Session& session) {
  const std::string_view first = pgwire::FirstWord(sql);
  if (!pgwire::EqualsWord(first, "EXECUTE") && !pgwire::EqualsWord(first, "EXPLAIN")) {
    return {};
  }
  const std::optional<pgwire::ExecuteText> execute = pgwire::ReadExecuteText(sql);
  const auto* const prepared =
      execute.has_value() ? session.prepared().Find(execute->name) : nullptr;
  return prepared == nullptr ? std::string_view() : prepared->text;
}

std::optional<Status> RunPrepared(const parser::PlainStatement& statement, Session& session,
                                  executor::ResultSink& sink) {
  const std::string_view sql = statement.text;
  const auto within = [&statement](const Status& status) { return status.Within(statement.span); };
  PreparedStatements& prepared = session.prepared();
  const std::string_view first = pgwire::FirstWord(sql);
  if (const auto ours = pgwire::ReadPrepareOfOurs(sql)) {
    Status done = ours->head.has_value() ? CheckFree(ours->head->name, session) : OkStatus();
    if (done.ok()) {
      done = prepared.Prepare(sql);
    }
    if (done.ok()) {
      sink.Done("PREPARE");
    }
    return within(done);
  }
  if (pgwire::EqualsWord(first, "PREPARE")) {
    const size_t begin = pgwire::BehindWord(sql, "AS");
    const auto theirs = begin == std::string_view::npos
                            ? std::nullopt
                            : pgwire::ReadPrepareText(sql.substr(0, begin));
    return theirs.has_value() && prepared.Has(theirs->name)
               ? std::optional(within(pgwire::NameIsTaken(theirs->name)))
               : std::nullopt;
  }
  if (pgwire::EqualsWord(first, "EXECUTE") || pgwire::EqualsWord(first, "EXPLAIN")) {
    const std::optional<pgwire::ExecuteText> execute = pgwire::ReadExecuteText(sql);
    if (execute.has_value() && prepared.Has(execute->name)) {
      return within(Execute(sql, *execute, session, sink));
    }
    if (execute.has_value() && DialectOf(session) == catalog::Dialect::kSqlite) {
      return within(NotFound(fmt::format("prepared statement \"{}\" does not exist", execute->name))
                        .SqlState("26000"));
    }
  } else if (pgwire::EqualsWord(first, "DEALLOCATE") || pgwire::EqualsWord(first, "DISCARD")) {
    const std::optional<std::string> name = pgwire::DeallocatedName(sql);
    const bool sqlite = DialectOf(session) == catalog::Dialect::kSqlite;
    if (name.has_value() && prepared.Forget(*name) &&
        (!name->empty() || (sqlite && pgwire::EqualsWord(first, "DEALLOCATE")))) {
      sink.Done(name->empty() ? "DEALLOCATE ALL" : "DEALLOCATE");
      return OkStatus();
    }
  }
  return std::nullopt;
}

}  // namespace sluice::server
