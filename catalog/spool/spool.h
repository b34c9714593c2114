#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"

// Rows of a select that only one connection could read (what a session sees inside its open
// transaction, say), stored in a local columnar file, so that any process of the same user can read
// them again, in any order.
namespace sluice::catalog {

// The file of a spool: blocks of rows, column by column, and at its end where each block begins.
// Only this user can open it; it is removed with its owner, or, if that was killed, by the next
// RemoveLeftoverSpools.
class Spool {
 public:
  // Creates an empty one; `folder` "": the system's folder for temporary files.
  static Result<std::unique_ptr<Spool>> Create(Schema schema, const std::string& folder = "");
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // `batch` has the columns of the schema. 53100: the disk is full, or the spool would exceed its
  // share of it.
  Status Append(const RowBatch& batch);
  // All rows have been written: readers may open it.
  Status Finish();

  const std::string& path() const { return path_; }
  const Schema& schema() const { return schema_; }
  int64_t rows() const { return rows_; }
  // Of each block.
  const std::vector<int64_t>& block_rows() const { return block_rows_; }

 private:
  Spool(Schema schema, std::string path, int descriptor);
  Status Write(const std::string& bytes);

  const Schema schema_;
  const std::string path_;
  const int descriptor_;  // locked while the spool exists
  int64_t rows_ = 0;
  uint64_t bytes_ = 0;
  std::vector<uint64_t> blocks_;  // where they begin
  std::vector<int64_t> block_rows_;
};

// The rows of the blocks `begin` to `end` (exclusive), in their order, with the listed columns.
// Belongs to one thread.
class SpoolFile {
 public:
  static Result<std::unique_ptr<SpoolFile>> Open(const std::string& path, const Schema& schema);
  ~SpoolFile();
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;

  // The file must outlive the stream.
  std::unique_ptr<RowStream> Read(int64_t begin, int64_t end, std::vector<size_t> columns);

 private:
  friend class SpoolStream;
  SpoolFile(Schema schema, int descriptor);
  Status ReadAt(uint64_t offset, char* to, size_t bytes) const;

  const Schema schema_;
  const int descriptor_;
  std::vector<uint64_t> blocks_;
};

// Removes files of spools in the folder whose owners have ended.
void RemoveLeftoverSpools(const std::string& folder = "");

}  // namespace sluice::catalog
