#include <libpq-fe.h>

#include <cstdio>
#include <memory>
#include <string>

// list_rows CONNINFO SELECT: rows as sqlite3's shell prints them in list mode, columns parted by
// '|', as they come: the peer of that shell behind a PostgreSQL door. psql keeps all rows before it
// prints the first.
namespace {

struct Freed {
  void operator()(PGconn* connection) const { PQfinish(connection); }
  void operator()(PGresult* result) const { PQclear(result); }
};
using Connection = std::unique_ptr<PGconn, Freed>;
using Rows = std::unique_ptr<PGresult, Freed>;

constexpr size_t kWrittenAtOnce = size_t{64} << 10;

void AppendRows(const PGresult* rows, std::string* out) {
  const int columns = PQnfields(rows);
  for (int row = 0; row < PQntuples(rows); ++row) {
    for (int column = 0; column < columns; ++column) {
      if (column > 0) {
        *out += '|';
      }
      out->append(PQgetvalue(rows, row, column),
                  static_cast<size_t>(PQgetlength(rows, row, column)));
    }
    *out += '\n';
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "list_rows CONNINFO SELECT\n");
    return 2;
  }
  const Connection connection(PQconnectdb(arguments[1]));
  if (PQstatus(connection.get()) != CONNECTION_OK ||
      PQsendQuery(connection.get(), arguments[2]) == 0 ||
      PQsetSingleRowMode(connection.get()) == 0) {
    std::fprintf(stderr, "%s", PQerrorMessage(connection.get()));
    return 1;
  }
  std::string out;
  while (const Rows rows{PQgetResult(connection.get())}) {
    const ExecStatusType status = PQresultStatus(rows.get());
    if (status != PGRES_SINGLE_TUPLE && status != PGRES_TUPLES_OK) {
      std::fprintf(stderr, "%s", PQresultErrorMessage(rows.get()));
      return 1;
    }
    AppendRows(rows.get(), &out);
    if (out.size() >= kWrittenAtOnce) {
      std::fwrite(out.data(), 1, out.size(), stdout);
      out.clear();
    }
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}
