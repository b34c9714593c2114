#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <variant>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::catalog {

// Takes rows, batch by batch.
class RowWriter {
 public:
  virtual ~RowWriter() = default;
  virtual Status Write(const RowBatch& batch) = 0;

  // Rows for a later Write, which refer to no reader's memory: a batch, or the text that the writer
  // sends.
  using Prepared = std::variant<RowBatch, std::string>;
  // May take the batch's memory. Thread-safe.
  virtual Prepared Prepare(RowBatch* batch) const {
    batch->KeepTexts();
    return std::exchange(*batch, {});
  }
  // What its own Prepare has made.
  virtual Status Write(Prepared rows) { return Write(std::get<RowBatch>(rows)); }
};

inline size_t PreparedBytes(const RowWriter::Prepared& rows) {
  const auto* const batch = std::get_if<RowBatch>(&rows);
  return batch != nullptr ? batch->Bytes() : std::get<std::string>(rows).size();
}

}  // namespace sluice::catalog
