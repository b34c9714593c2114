#include <fmt/core.h>

#include <utility>

#include "base/letter_case.h"
#include "executor/executor.h"
#include "parser/parser.h"
#include "parser/quoting.h"
#include "server/load/load_target.h"

namespace sluice::server {
namespace {

constexpr size_t kRowsOfInsert = 500;
constexpr size_t kEndBytes = 64;  // reserved for the end of the script

// Receives the columns of an answer.
class ColumnsSink final : public executor::ResultSink {
 public:
  Status Header(const Schema& schema) override {
    columns = schema;
    return OkStatus();
  }
  void Notice(const std::string& message) override { notices.push_back(message); }

  Schema columns;
  std::vector<std::string> notices;
};

std::string SqlCell(const RowBatch::Column& column, size_t row) {
  if (column.null[row] != 0) {
    return "NULL";
  }
  switch (column.TypeAt(row)) {
    case DataType::kInt64:
      return fmt::format("{}", column.int64s[row]);
    case DataType::kDouble:
      return FormatDouble(column.doubles[row]);
    case DataType::kBool:
      return column.int64s[row] != 0 ? "true" : "false";
    default:
      return SqlLiteral(column.texts[row]);
  }
}

class ScriptLoader final : public catalog::TableLoader {
 public:
  ScriptLoader(const RunSql& run, const catalog::TableName& table, const Schema& columns, bool make)
      : run_(run) {
    std::string definitions;
    std::string names;
    for (const ColumnInfo& column : columns.columns) {
      const std::string name = parser::QuoteName(column.name);
      definitions +=
          fmt::format("{}{} {}", definitions.empty() ? "" : ", ", name, column.database_type);
      names += (names.empty() ? "" : ", ") + name;
    }
    script_ = "BEGIN;\n";
    if (make) {
      script_ += fmt::format("CREATE TABLE {} ({});\n", table.Quoted(), definitions);
    }
    insertion_ = fmt::format("INSERT INTO {} ({}) VALUES\n", table.Quoted(), names);
  }

  Status Write(const RowBatch& batch, catalog::RefusedRow* /*refused*/) override {
    for (size_t row = 0; row < batch.rows; ++row) {
      script_ += row % kRowsOfInsert == 0 ? insertion_ : "";
      for (size_t i = 0; i < batch.columns.size(); ++i) {
        script_ += i == 0 ? "(" : ", ";
        script_ += SqlCell(batch.columns[i], row);
      }
      script_ += (row + 1) % kRowsOfInsert == 0 || row + 1 == batch.rows ? ");\n" : "),\n";
      if (script_.size() + kEndBytes > parser::kMaxScriptBytes) {
        return ResourceExhausted(fmt::format("its rows are a script of more than {} MiB, and a "
                                             "gateway takes no larger one",
                                             parser::kMaxScriptBytes >> 20U))
            .Hint("sluice load FILE TABLE --source URL takes files of any size");
      }
    }
    return OkStatus();
  }

  Status Commit() override {
    ColumnsSink sink;
    return run_(script_ + "COMMIT;", sink).MovedTo({});  // the script is ours
  }

 private:
  const RunSql& run_;
  std::string script_;
  std::string insertion_;
};

class ScriptTarget final : public LoadTarget {
 public:
  ScriptTarget(const RunSql& run, bool postgres) : run_(run), postgres_(postgres) {}

  std::string Fold(std::string_view name) const override {
    return postgres_ ? LowerAscii(name) : std::string(name);
  }
  bool ReadsTexts() const override { return false; }  // an error has no place there
  Result<std::optional<catalog::TableName>> Find(const catalog::TableName& table) override {
    const Result<Schema> columns = Columns(table);
    if (!columns.ok() && columns.status().sqlstate() != "42P01") {
      return columns.status();
    }
    return columns.ok() ? std::optional<catalog::TableName>(table) : std::nullopt;
  }
  Result<Schema> Columns(const catalog::TableName& table) override {
    ColumnsSink sink;
    RETURN_IF_ERROR(
        run_(fmt::format("SELECT * FROM {} LIMIT 0", table.Quoted()), sink).MovedTo({}));
    return std::move(sink.columns);
  }
  Result<std::unique_ptr<catalog::TableLoader>> Open(const catalog::TableName& table,
                                                     const Schema& columns, bool make) override {
    return std::unique_ptr<catalog::TableLoader>(new ScriptLoader(run_, table, columns, make));
  }
  std::vector<std::string> TakeNotices() override { return {}; }

 private:
  const RunSql& run_;
  const bool postgres_;
};

}  // namespace

std::string SqlLiteral(std::string_view text) {
  std::string literal = "'";
  for (const char c : text) {
    literal += c;
    if (c == '\'') {
      literal += c;
    }
  }
  return literal + "'";
}

std::unique_ptr<LoadTarget> MakeScriptTarget(const RunSql& run, bool postgres) {
  return std::make_unique<ScriptTarget>(run, postgres);
}

}  // namespace sluice::server
