#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::server {

// A place in a file as an editor counts: from 1, columns in characters.
struct FilePlace {
  int64_t line = 1;
  int64_t column = 1;
};

struct CsvField {
  std::string_view text;  // without its quotes; valid until the next record is read
  bool quoted = false;
  size_t offset = 0;  // offset of its first byte in the record as written
};

// Reads the records of a CSV file by RFC 4180: quotes, doubled quotes and line ends inside them, LF
// or CRLF after a record. Skips a byte order mark and empty lines. Memory does not depend on the
// file's size, only on its longest record. Not thread-safe.
class CsvReader {
 public:
  // Longest record, so that a quote that is never closed does not exhaust the memory.
  static constexpr size_t kMaxRecordBytes = size_t{64} << 20;

  // `name` is for messages. `separator` 0: whichever of , ; tab and | is most frequent in the first
  // line. The file outlives the reader and is read from its current position.
  // `lossy`: reads '?' for each byte that is not UTF-8.
  CsvReader(std::FILE* file, std::string name, char separator, bool lossy = false);

  // The next record; no fields at the end of the file. 22P04: malformed; the error names the place.
  Result<const std::vector<CsvField>*> Next();
  // Call before the first record: from then on an empty line is a record with one empty field.
  void KeepEmptyLines() { keep_empty_lines_ = true; }

  char separator() const { return separator_; }
  // Line of the last record's first byte.
  int64_t line() const { return line_; }
  // Where a field of the last record begins.
  FilePlace PlaceOf(const CsvField& field) const { return PlaceAt(field.offset); }
  // Bytes of the file that have been consumed as records.
  int64_t bytes_read() const { return bytes_before_ + static_cast<int64_t>(end_); }

  int64_t bytes_replaced() const { return bytes_replaced_; }

  // "people.csv:17:5: message", 22P04.
  Status ErrorAt(FilePlace place, std::string_view message) const;

 private:
  enum class Outcome { kRecord, kIncomplete };
  Status Fill();
  Status Start();
  Result<Outcome> Parse();
  Status CheckBytes() const;
  std::string HintOfEncoding() const;
  bool ReplaceBytes();
  FilePlace PlaceAt(size_t offset) const;
  void AddField(size_t begin, size_t end, bool quoted, size_t doubled);

  std::FILE* const file_;
  const std::string name_;
  char separator_;
  const bool lossy_;
  int64_t bytes_replaced_ = 0;
  bool keep_empty_lines_ = false;
  bool started_ = false;
  bool at_end_ = false;  // of the file: the buffer holds all that is left

  std::vector<char> buffer_;
  size_t size_ = 0;   // bytes of the file in the buffer
  size_t begin_ = 0;  // of the record
  size_t end_ = 0;    // after the record and its line end
  int64_t bytes_before_ = 0;
  int64_t line_ = 1;
  int64_t next_line_ = 1;
  int64_t lines_in_record_ = 0;
  std::vector<CsvField> fields_;
  std::string unquoted_;                                // the fields in which a quote is doubled
  std::vector<std::pair<size_t, size_t>> in_unquoted_;  // field, and where it begins there
};

}  // namespace sluice::server
