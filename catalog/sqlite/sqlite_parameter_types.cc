#include <algorithm>
#include <charconv>
#include <map>
#include <string>

#include "base/letter_case.h"
#include "catalog/sql/declared_type.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_parameter_types_internal.h"

namespace sluice::catalog {
namespace {

using ColumnTypes = std::map<std::string, uint32_t>;  // by names in lower case; 0: two differ

// The statement's tokens, with the accessors that the rules below need.
class ParameterFinder {
 public:
  ParameterFinder(std::string_view sql, size_t count)
      : sql_(sql), tokens_(TokenizeSql(sql, Dialect::kSqlite)), types_(count, 0) {}

  size_t size() const { return tokens_.size(); }
  std::string Lower(size_t at) const {
    return at < tokens_.size()
               ? LowerAscii(sql_.substr(tokens_[at].begin, tokens_[at].end - tokens_[at].begin))
               : std::string();
  }
  // The name at that token, in lower case; "": it is not a name.
  std::string Name(size_t at) const {
    if (at >= tokens_.size() || (tokens_[at].kind != SqlToken::Kind::kWord &&
                                 tokens_[at].kind != SqlToken::Kind::kQuotedName)) {
      return "";
    }
    const Result<TableName> name = ParseTableName(
        sql_.substr(tokens_[at].begin, tokens_[at].end - tokens_[at].begin), Dialect::kSqlite);
    return name.ok() ? LowerAscii(name->name) : std::string();
  }

  // INSERT INTO table [(columns)] VALUES (...), (...)
  void FromInsert(const std::vector<std::string>& table, const ColumnTypes& types) {
    size_t at = 0;
    while (at < size() && Lower(at) != "into") {
      ++at;
    }
    ++at;
    while (Lower(at + 1) == ".") {
      at += 2;
    }
    ++at;
    std::vector<std::string> columns;
    if (Lower(at) == "(") {
      for (++at; at < size() && Lower(at) != ")"; ++at) {
        if (!Name(at).empty()) {
          columns.push_back(Name(at));
        }
      }
      ++at;
    }
    columns = columns.empty() ? table : columns;
    if (Lower(at) != "values") {
      return;
    }
    size_t column = 0;
    for (++at; at < size(); ++at) {
      const int depth = tokens_[at].depth;
      if (depth == 0 && Lower(at) == "(") {
        column = 0;
      } else if (depth == 1 && Lower(at) == ",") {
        ++column;
      } else if (depth == 1 && Lower(at) == "$" && (Lower(at + 2) == "," || Lower(at + 2) == ")") &&
                 (Lower(at - 1) == "," || Lower(at - 1) == "(") && column < columns.size()) {
        const auto type = types.find(columns[column]);
        Set(at, type == types.end() ? 0 : type->second);
      }
    }
  }

  // column = $1, $1 < column, column IN ($1, $2), LIMIT $1
  void FromComparisons(const ColumnTypes& types) {
    for (size_t at = 0; at < size(); ++at) {
      if (Lower(at) != "$") {
        continue;
      }
      if (at > 0 && (Lower(at - 1) == "limit" || Lower(at - 1) == "offset")) {
        Set(at, PostgresTypeOf("int").oid);
        continue;
      }
      size_t left = at;
      while (left > 0 && (Lower(left - 1) == "," || Lower(left - 1) == "$" ||
                          tokens_[left - 1].kind == SqlToken::Kind::kNumber)) {
        --left;
      }
      const bool in = left >= 3 && Lower(left - 1) == "(" && Lower(left - 2) == "in";
      const std::string before =
          in ? Name(left - (Lower(left - 3) == "not" ? 4 : 3)) : Beside(at, -1);
      for (const std::string& name : {before, Beside(at + 1, 1)}) {
        const auto type = types.find(name);
        if (!name.empty() && type != types.end()) {
          Set(at, type->second);
          break;
        }
      }
    }
  }

  std::vector<uint32_t> types() const { return types_; }

 private:
  // The name on the other side of a comparison.
  std::string Beside(size_t at, int step) const {
    size_t next = at + static_cast<size_t>(step);
    bool compares = false;
    while (next < size() && (Lower(next) == "=" || Lower(next) == "<" || Lower(next) == ">" ||
                             Lower(next) == "!" || Lower(next) == "like")) {
      compares = true;
      next += static_cast<size_t>(step);
    }
    if (step > 0) {
      while (Lower(next + 1) == ".") {
        next += 2;
      }
    }
    return compares ? Name(next) : "";
  }
  void Set(size_t at, uint32_t type) {
    const std::string digits = Lower(at + 1);
    size_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (number > 0 && number <= types_.size() && types_[number - 1] == 0) {
      types_[number - 1] = type;
    }
  }

  const std::string_view sql_;
  const std::vector<SqlToken> tokens_;
  std::vector<uint32_t> types_;
};

}  // namespace

Result<std::vector<uint32_t>> SqliteParameterTypes(SqliteConnection& connection,
                                                   std::string_view sql, size_t count) {
  ParameterFinder finder(sql, count);
  ASSIGN_OR_RETURN(
      const SqlRows tables,
      connection.Query("SELECT lower(name), name FROM pragma_table_list WHERE schema IN"
                       " ('main', 'public', 'temp') AND name NOT LIKE 'sqlite_%'",
                       {}));
  std::map<std::string, std::string> known;
  for (const std::vector<Value>& row : tables) {
    known[TextCell(row[0])] = TextCell(row[1]);
  }
  ColumnTypes types;
  std::vector<std::string> first;  // table's columns
  for (size_t at = 0; at < finder.size(); ++at) {
    const auto table = known.find(finder.Name(at));
    if (table == known.end()) {
      continue;
    }
    ASSIGN_OR_RETURN(
        const SqlRows columns,
        connection.Query("SELECT lower(name), type FROM pragma_table_info($1)", {table->second}));
    known.erase(table);
    const bool is_first = first.empty();
    for (const std::vector<Value>& column : columns) {
      const uint32_t type = PostgresTypeOf(TextCell(column[1])).oid;
      const auto [named, added] = types.try_emplace(TextCell(column[0]), type);
      named->second = added || named->second == type ? type : 0;
      if (is_first) {
        first.push_back(TextCell(column[0]));
      }
    }
  }
  if (finder.Lower(0) == "insert" || finder.Lower(0) == "replace") {
    finder.FromInsert(first, types);
  }
  finder.FromComparisons(types);
  return finder.types();
}

}  // namespace sluice::catalog
