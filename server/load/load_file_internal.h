#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/load/csv_reader.h"

namespace sluice::server {

struct LoadOptions;

// A CSV file with its columns' names, whose rows can be read more than once: input from a pipe is
// copied to a temporary file if necessary. `options` outlives it. Not thread-safe.
class LoadFile {
 public:
  explicit LoadFile(const LoadOptions& options) : options_(options) {}

  // 58P01: it cannot be read. 57014: stopped while copying a pipe.
  Status Open(const std::stop_token& stop);
  // Reads the columns' names; those without quotes pass through `fold`. Without a header it finds
  // the number of columns. Call before any row.
  Status ReadHeader(const std::function<std::string(std::string_view)>& fold);
  const std::vector<std::string>& names() const { return names_; }
  // Returns to the first row.
  Status Rewind();
  // The next row, with one field for each name; no fields at the end.
  Result<const std::vector<CsvField>*> NextRow();

  bool IsNull(const CsvField& field) const;
  // Of the last row: its line, and an error "people.csv:17:5: message", 22P04, at one of its
  // fields.
  int64_t line() const { return reader_->line(); }
  Status ErrorAt(const CsvField& field, std::string_view message) const {
    return reader_->ErrorAt(reader_->PlaceOf(field), message);
  }
  // Since Rewind, by LoadOptions::lossy.
  int64_t bytes_replaced() const { return reader_->bytes_replaced(); }
  // The share of the file that has been read since Rewind; 0: its size is not known.
  double ShareRead() const;

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const {
      if (file != stdin) {
        std::fclose(file);
      }
    }
  };
  using File = std::unique_ptr<std::FILE, CloseFile>;

  Status KeepCopy(const std::stop_token& stop);
  void OpenReader(char separator);

  const LoadOptions& options_;
  File file_;
  int64_t bytes_ = 0;  // 0: not known
  long begin_ = -1;    // where Rewind finds the rows; -1: the file can be read only once
  std::unique_ptr<CsvReader> reader_;
  bool header_is_row_ = false;
  std::vector<std::string> names_;
};

}  // namespace sluice::server
