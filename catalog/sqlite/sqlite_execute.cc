#include <fmt/core.h>

#include <atomic>
#include <deque>
#include <utility>

#include "catalog/embedded_memory.h"
#include "catalog/sqlite/sqlite_database_internal.h"
#include "catalog/sqlite/sqlite_types_internal.h"

namespace sluice::catalog {
namespace {

constexpr size_t kSqliteBatchRows = 1'000;
// Lets a stop_token end whatever runs on a connection while this object exists.
class HearsStop {
 public:
  HearsStop(SqliteConnection& connection, std::stop_token stop) : connection_(connection) {
    connection_.HearStop(std::move(stop));
  }
  ~HearsStop() { connection_.HearStop(std::stop_token()); }
  HearsStop(const HearsStop&) = delete;
  HearsStop& operator=(const HearsStop&) = delete;

 private:
  SqliteConnection& connection_;
};

std::string UpperFirstWords(std::string_view sql, size_t count) {
  std::string words;
  for (const SqlToken& token : TokenizeSql(sql, Dialect::kSqlite)) {
    if (token.kind != SqlToken::Kind::kWord || count-- == 0) {
      break;
    }
    words += words.empty() ? "" : " ";
    for (const char c : sql.substr(token.begin, token.end - token.begin)) {
      words += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
  return words;
}

// PostgreSQL's tag, because clients look at it.
ExecuteResult Finished(sqlite3* handle, std::string_view sql, int64_t returned, bool has_rows) {
  ExecuteResult result;
  const std::string verb = VerbOf(sql, Dialect::kSqlite);
  if (verb == "INSERT" || verb == "REPLACE") {
    result.rows_affected = sqlite3_changes64(handle);
    result.tag = fmt::format("INSERT 0 {}", result.rows_affected);
  } else if (verb == "UPDATE" || verb == "DELETE") {
    result.rows_affected = sqlite3_changes64(handle);
    result.tag = fmt::format("{} {}", verb, result.rows_affected);
  } else if (has_rows) {
    result.rows_affected = returned;
    result.tag = fmt::format("SELECT {}", returned);
  } else if (verb == "CREATE" || verb == "DROP" || verb == "ALTER") {
    result.tag = UpperFirstWords(sql, 2);
  } else {
    result.tag = verb;
  }
  return result;
}

class ResultSender {
 public:
  ResultSender(SqliteConnection& connection, std::string_view sql, sqlite3_stmt* statement,
               RowReceiver* receiver)
      : connection_(connection), sql_(sql), statement_(statement), receiver_(receiver) {}

  // The first rows determine the types of the columns, so they are held until all types are known.
  Result<int64_t> Send() {
    // The first step compiles the statement anew if a table has changed since: count only then.
    int code = sqlite3_step(statement_);
    const int columns = sqlite3_column_count(statement_);
    std::vector<CellTypes> types(static_cast<size_t>(columns));
    std::deque<std::vector<sqlite3_value*>> held;
    const auto release = [&] {
      for (const std::vector<sqlite3_value*>& row : held) {
        for (sqlite3_value* cell : row) {
          sqlite3_value_free(cell);
        }
      }
      held.clear();
    };
    size_t bytes = 0;
    while (code == SQLITE_ROW) {
      std::vector<sqlite3_value*>& row = held.emplace_back();
      for (int i = 0; i < columns; ++i) {
        const int storage = sqlite3_column_type(statement_, i);
        types[static_cast<size_t>(i)].Add(storage);
        row.push_back(sqlite3_value_dup(sqlite3_column_value(statement_, i)));
        if (storage == SQLITE_TEXT || storage == SQLITE_BLOB) {
          bytes += static_cast<size_t>(sqlite3_value_bytes(row.back()));
        }
      }
      if (held.size() >= kSqliteBatchRows || bytes >= kBatchBytes) {
        break;
      }
      code = sqlite3_step(statement_);
    }
    Result<int64_t> sent = code == SQLITE_ROW || code == SQLITE_DONE
                               ? SendTyped(types, held, code)
                               : Result<int64_t>(connection_.LastError(sql_));
    release();
    return sent;
  }

 private:
  Schema TypedSchema(const std::vector<CellTypes>& types) const {
    Schema schema;
    for (size_t i = 0; i < types.size(); ++i) {
      const char* name = sqlite3_column_name(statement_, static_cast<int>(i));
      const char* declared = sqlite3_column_decltype(statement_, static_cast<int>(i));
      ColumnInfo& column = schema.columns.emplace_back();
      column.name = name == nullptr ? "" : name;
      column.database_type = declared == nullptr ? "" : declared;
      const std::optional<DataType> wanted = TypeOfDeclaration(column.database_type);
      column.type = wanted.value_or(types[i].type());
      // The type of most cells, because each is shown as it is stored.
      if (column.type == DataType::kTimestamp ||
          (types[i].seen() && !Fits(types[i], column.type))) {
        column.type = types[i].type();
      }
    }
    return schema;
  }

  static bool Fits(const CellTypes& cells, DataType declared) {
    const DataType type = cells.type();
    return type == declared || declared == DataType::kText || declared == DataType::kBytes ||
           (declared == DataType::kDouble && type == DataType::kInt64) ||
           declared == DataType::kBool;  // values other than 0 and 1 are shown as stored
  }

  Result<int64_t> SendTyped(const std::vector<CellTypes>& types,
                            const std::deque<std::vector<sqlite3_value*>>& held, int code) {
    const Schema schema = TypedSchema(types);
    if (receiver_ != nullptr) {
      RETURN_IF_ERROR(receiver_->Header(schema));
    }
    SqliteRowDecoder decoder(schema, /*decoded=*/0);
    RowBatch batch;
    int64_t rows = 0;
    decoder.Begin(&batch, kSqliteBatchRows);
    for (const std::vector<sqlite3_value*>& row : held) {
      decoder.Copy(row, &batch);
      ++rows;
    }
    while (true) {
      decoder.Finish(&batch);
      if (receiver_ != nullptr && batch.rows > 0) {
        RETURN_IF_ERROR(copies_.Add(decoder.bytes() > kBatchBytes ? decoder.bytes() : 0));
        RETURN_IF_ERROR(receiver_->Rows(batch));
        copies_.Clear();
      }
      decoder.Begin(&batch, kSqliteBatchRows);
      while (code == SQLITE_ROW && batch.rows < kSqliteBatchRows && decoder.bytes() < kBatchBytes &&
             (code = sqlite3_step(statement_)) == SQLITE_ROW) {
        RETURN_IF_ERROR(decoder.Decode(statement_, ++rows, &batch));
      }
      if (code != SQLITE_ROW && code != SQLITE_DONE) {
        return connection_.LastError(sql_);
      }
      if (batch.rows == 0) {
        return rows;
      }
    }
  }

  SqliteConnection& connection_;
  std::string_view sql_;
  sqlite3_stmt* statement_;
  RowReceiver* receiver_;
  CellCopies copies_;
};

}  // namespace

Result<ExecuteResult> ExecuteOnSqlite(SqliteConnection& connection, std::string_view sql,
                                      RowReceiver* receiver, std::stop_token stop) {
  const HearsStop hears(connection, std::move(stop));
  ASSIGN_OR_RETURN(const SqliteStatement statement, connection.PrepareWhole(sql));
  const bool has_rows = sqlite3_column_count(statement.get()) > 0;
  int64_t returned = 0;
  Status status;
  if (has_rows) {
    ResultSender sender(connection, sql, statement.get(), receiver);
    const Result<int64_t> sent = sender.Send();
    status = sent.status();
    returned = sent.ok() ? *sent : 0;
  } else if (sqlite3_step(statement.get()) != SQLITE_DONE) {
    status = connection.LastError(sql);
  }
  RETURN_IF_ERROR(status);
  return Finished(connection.handle(), sql, returned, has_rows);
}

}  // namespace sluice::catalog
