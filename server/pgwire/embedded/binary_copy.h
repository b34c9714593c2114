#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

// COPY in binary: what is around its rows and fields. Pure; not thread-safe.
namespace sluice::server::pgwire {

std::string BinaryCopyHeader();
std::string BinaryCopyTrailer();

// Cuts what a client sends, in pieces of any size, into rows.
class BinaryCopyReader {
 public:
  using Fields = std::vector<std::optional<std::string_view>>;  // nullopt: NULL

  // Calls `take` for each row that is whole, until it says an error. 22P04: it is no such file.
  using Take = std::function<Status(const Fields& fields)>;
  Status Add(std::string_view bytes, const Take& take);
  // 22P04: it ends in the middle.
  Status End() const;
  int64_t rows() const { return rows_; }

 private:
  // The length of the header, or of the row, at the front of `bytes`, with the fields of a row;
  // nullopt: it is not all there.
  static Result<std::optional<size_t>> HeaderBytes(std::string_view bytes);
  Result<std::optional<size_t>> RowBytes(std::string_view bytes, Fields* fields);

  std::string held_;
  bool begun_ = false;
  bool ended_ = false;
  int64_t rows_ = 0;
};

}  // namespace sluice::server::pgwire
