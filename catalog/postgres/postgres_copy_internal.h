#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/postgres/postgres_connection_internal.h"

// Writes rows to PostgreSQL, in COPY's text format.
namespace sluice::catalog {

// The rows in COPY's text format.
std::string CopyText(const RowBatch& batch);

// Rows that go to the server in pieces. A COPY takes many of them, since each costs a round trip in
// which the server is idle, but not all: the server reports a refused row at the end of a COPY.
// While one is open, the connection serves nothing else. Not thread-safe.
class CopyIn {
 public:
  // A COPY that has taken this many bytes ends.
  static constexpr size_t kMostBytes = size_t{8} << 20;

  // `copy`: the statement. `connection` must outlive it.
  CopyIn(PostgresConnection& connection, std::string copy, size_t most_bytes = kMostBytes)
      : connection_(connection), copy_(std::move(copy)), most_bytes_(most_bytes) {}

  // Rows as CopyText makes them. After an error the transaction has failed.
  Status Send(std::string_view text);
  // Everything sent so far has arrived. `context`, if given, receives the server's description of
  // an error's place.
  Status Finish(std::string* context = nullptr);
  // Ends an open COPY, and with it the transaction.
  void GiveUp();

 private:
  PostgresConnection& connection_;
  const std::string copy_;
  const size_t most_bytes_;
  bool open_ = false;
  size_t sent_ = 0;  // by the open COPY
};

// One COPY with these rows, read until libpq is idle again. `context`, if given, receives the
// server's description of an error's place.
Status CopyRows(PostgresConnection& connection, const std::string& copy, std::string_view text,
                std::string* context = nullptr);

}  // namespace sluice::catalog
