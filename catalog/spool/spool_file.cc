#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "catalog/spool/spool.h"
#include "catalog/spool/spool_format_internal.h"

namespace sluice::catalog {
namespace {

Status Damaged() {
  return Status(Code::kUnavailable, "the file of a spool is not what was written")
      .SqlState("58030");
}

}  // namespace

// Blocks as they are read; each is handed out in one piece or several.
class SpoolStream final : public RowStream {
 public:
  SpoolStream(const SpoolFile& file, int64_t begin, int64_t end, std::vector<size_t> columns)
      : file_(file), next_(begin), end_(end), columns_(std::move(columns)), data_(columns_.size()) {
    for (const size_t column : columns_) {
      schema_.columns.push_back(file_.schema_.columns[column]);
    }
  }

  Status Next(size_t max_rows, RowBatch* batch) override {
    batch->rows = 0;
    while (row_ == rows_) {
      if (next_ == end_) {
        return OkStatus();
      }
      RETURN_IF_ERROR(Load(file_.blocks_[static_cast<size_t>(next_++)]));
    }
    const size_t rows = std::min(max_rows, rows_ - row_);
    batch->Reset(schema_, rows);
    for (size_t i = 0; i < columns_.size(); ++i) {
      Take(data_[i], rows, &batch->columns[i]);
    }
    batch->rows = rows;
    row_ += rows;
    return OkStatus();
  }

 private:
  Status Load(uint64_t offset) {
    std::string head((1 + file_.schema_.columns.size() + 1) * sizeof(uint64_t), '\0');
    RETURN_IF_ERROR(file_.ReadAt(offset, head.data(), head.size()));
    rows_ = NumberAt(head.data());
    row_ = 0;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const char* const place = head.data() + (1 + columns_[i]) * sizeof(uint64_t);
      const uint64_t begin = NumberAt(place);
      const uint64_t end = NumberAt(place + sizeof(uint64_t));
      if (end < begin || end - begin < rows_ * (1 + sizeof(uint64_t))) {
        return Damaged();
      }
      data_[i].resize(end - begin);
      RETURN_IF_ERROR(file_.ReadAt(offset + begin, data_[i].data(), data_[i].size()));
    }
    return OkStatus();
  }

  // Rows from `row_` on.
  void Take(const std::string& data, size_t rows, RowBatch::Column* column) const {
    std::memcpy(column->null.data(), data.data() + row_, rows);
    const char* const numbers = data.data() + rows_;
    const char* const texts = numbers + rows_ * sizeof(uint64_t);
    if (!HasTexts(column->type)) {
      void* const to = column->type == DataType::kDouble
                           ? static_cast<void*>(column->doubles.data())
                           : static_cast<void*>(column->int64s.data());
      std::memcpy(to, numbers + row_ * sizeof(uint64_t), rows * sizeof(uint64_t));
      return;
    }
    uint64_t begin = row_ == 0 ? 0 : NumberAt(numbers + (row_ - 1) * sizeof(uint64_t));
    for (size_t i = 0; i < rows; ++i) {
      const uint64_t end = NumberAt(numbers + (row_ + i) * sizeof(uint64_t));
      column->texts[i] = {texts + begin, end - begin};
      begin = end;
    }
  }

  const SpoolFile& file_;
  int64_t next_;
  const int64_t end_;
  const std::vector<size_t> columns_;
  Schema schema_;
  std::vector<std::string> data_;  // of the block, for each column
  size_t rows_ = 0;
  size_t row_ = 0;  // the next one
};

SpoolFile::SpoolFile(Schema schema, int descriptor)
    : schema_(std::move(schema)), descriptor_(descriptor) {}

SpoolFile::~SpoolFile() {
  close(descriptor_);
}

Status SpoolFile::ReadAt(uint64_t offset, char* to, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t got = pread(descriptor_, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return Damaged();
    }
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return OkStatus();
}

Result<std::unique_ptr<SpoolFile>> SpoolFile::Open(const std::string& path, const Schema& schema) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) {
    return Status(Code::kUnavailable, fmt::format("cannot open {}: {}", path, std::strerror(errno)))
        .SqlState("58030");
  }
  std::unique_ptr<SpoolFile> file(new SpoolFile(schema, descriptor));
  const off_t size = lseek(descriptor, 0, SEEK_END);
  constexpr size_t kEnd = 2 * sizeof(uint64_t);
  char end[kEnd];
  if (size < static_cast<off_t>(kEnd) ||
      !file->ReadAt(static_cast<uint64_t>(size) - kEnd, end, kEnd).ok() ||
      NumberAt(end + sizeof(uint64_t)) != kSpoolMark) {
    return Damaged();
  }
  const uint64_t count = NumberAt(end);
  if (count > static_cast<uint64_t>(size) / sizeof(uint64_t)) {
    return Damaged();
  }
  file->blocks_.resize(count);
  RETURN_IF_ERROR(file->ReadAt(static_cast<uint64_t>(size) - kEnd - count * sizeof(uint64_t),
                               static_cast<char*>(static_cast<void*>(file->blocks_.data())),
                               count * sizeof(uint64_t)));
  return file;
}

std::unique_ptr<RowStream> SpoolFile::Read(int64_t begin, int64_t end,
                                           std::vector<size_t> columns) {
  return std::make_unique<SpoolStream>(*this, begin, end, std::move(columns));
}

}  // namespace sluice::catalog
