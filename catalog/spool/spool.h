#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"

// Rows of a select that only one connection could read, kept on this machine in columns, so that
// they can be read again, in any order, by any process of the same user: what a session sees inside
// its open transaction, say.
namespace sluice::catalog {

// The file of a spool: blocks of rows, column by column, and at its end where each block begins.
// Nobody but this user can open it; it goes with its owner, and where that has been killed, with
// the next RemoveLeftoverSpools.
class Spool {
 public:
  // An empty one; `folder` "": where the system keeps temporary files.
  static Result<std::unique_ptr<Spool>> Create(Schema schema, const std::string& folder = "");
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // `batch` has the columns of the schema. 53100: the disk is full, or the spool would take more of
  // it than it may.
  Status Append(const RowBatch& batch);
  // All rows are there: readers may come.
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
  const int descriptor_;  // locked as long as the spool is there
  int64_t rows_ = 0;
  uint64_t bytes_ = 0;
  std::vector<uint64_t> blocks_;  // where they begin
  std::vector<int64_t> block_rows_;
};

// The rows of the blocks `begin` to `end` (exclusive), in their order; of the columns listed.
// Belongs to one thread.
class SpoolFile {
 public:
  static Result<std::unique_ptr<SpoolFile>> Open(const std::string& path, const Schema& schema);
  ~SpoolFile();
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;

  // The file outlives the stream.
  std::unique_ptr<RowStream> Read(int64_t begin, int64_t end, std::vector<size_t> columns);

 private:
  friend class SpoolStream;
  SpoolFile(Schema schema, int descriptor);
  Status ReadAt(uint64_t offset, char* to, size_t bytes) const;

  const Schema schema_;
  const int descriptor_;
  std::vector<uint64_t> blocks_;
};

// Files of spools in the folder whose owners are gone.
void RemoveLeftoverSpools(const std::string& folder = "");

}  // namespace sluice::catalog
