#pragma once

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::server::pgwire {

// A real server's results, through libpq, to compare ours with.
class LibpqSession {
 public:
  explicit LibpqSession(const std::string& url) : connection_(PQconnectdb(url.c_str()), PQfinish) {
    EXPECT_EQ(PQstatus(connection_.get()), CONNECTION_OK) << PQerrorMessage(connection_.get());
  }

  struct Column {
    Oid oid = 0;
    int size = 0;
    int modifier = 0;
  };
  struct Answer {
    std::string error;  // SQLSTATE; "": none
    std::vector<Column> columns;
    std::vector<std::vector<std::optional<std::string>>> rows;
  };
  struct Parameter {
    Oid oid = 0;
    std::optional<std::string> bytes;
    int format = 0;
  };

  Answer Ask(const std::string& sql, int format, const std::vector<Parameter>& parameters = {}) {
    std::vector<Oid> oids;
    std::vector<const char*> values;
    std::vector<int> lengths, formats;
    for (const Parameter& each : parameters) {
      oids.push_back(each.oid);
      values.push_back(each.bytes ? each.bytes->c_str() : nullptr);
      lengths.push_back(each.bytes ? static_cast<int>(each.bytes->size()) : 0);
      formats.push_back(each.format);
    }
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexecParams(connection_.get(), sql.c_str(), static_cast<int>(parameters.size()),
                     oids.data(), values.data(), lengths.data(), formats.data(), format),
        PQclear);
    Answer answer;
    if (const char* state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE)) {
      answer.error = state;
      last_error_ = PQerrorMessage(connection_.get());
    }
    for (int i = 0; i < PQnfields(result.get()); ++i) {
      answer.columns.push_back(
          {PQftype(result.get(), i), PQfsize(result.get(), i), PQfmod(result.get(), i)});
    }
    for (int row = 0; row < PQntuples(result.get()); ++row) {
      auto& cells = answer.rows.emplace_back();
      for (int i = 0; i < PQnfields(result.get()); ++i) {
        if (PQgetisnull(result.get(), row, i) != 0) {
          cells.emplace_back(std::nullopt);
        } else {
          cells.emplace_back(std::string(PQgetvalue(result.get(), row, i),
                                         static_cast<size_t>(PQgetlength(result.get(), row, i))));
        }
      }
    }
    return answer;
  }

  // Several statements in one message: the error, or "".
  std::string Script(const std::string& sql) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexec(connection_.get(), sql.c_str()), PQclear);
    return PQresultErrorMessage(result.get());
  }

  const std::string& last_error() const { return last_error_; }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::string last_error_;
};

}  // namespace sluice::server::pgwire
