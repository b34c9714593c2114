#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/pgwire/embedded/copy_format.h"

// COPY's binary format: the frame around its rows and fields. Pure; not thread-safe.
namespace sluice::server::pgwire {

std::string BinaryCopyHeader();
std::string BinaryCopyTrailer();

// Splits a client's data, which comes in pieces of any size, into rows.
class BinaryCopyReader {
 public:
  using Fields = std::vector<std::optional<std::string_view>>;  // nullopt: NULL

  // Calls `take` for each complete row, until it returns an error. 22P04: not such a file.
  using Take = std::function<Status(const Fields& fields)>;
  Status Add(std::string_view bytes, const Take& take);
  // 22P04: the data ends in the middle of a row.
  Status End() const;
  int64_t rows() const { return rows_; }

 private:
  // The length of the header, or of the row, at the front of `bytes`, with a row's fields; nullopt:
  // incomplete.
  static Result<std::optional<size_t>> HeaderBytes(std::string_view bytes);
  Result<std::optional<size_t>> RowBytes(std::string_view bytes, Fields* fields);

  std::string held_;
  bool begun_ = false;
  bool ended_ = false;
  int64_t rows_ = 0;
};

}  // namespace sluice::server::pgwire
