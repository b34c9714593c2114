#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::elastic {

// Data larger than any message, in parts: a mark, then each part with its length and its CRC-32C. A
// part is checked before its bytes are used, and a stated length never determines an allocation
// beyond one part and the data received so far.

// The maximum size of a part, in a file or a message.
inline constexpr size_t kMaxPartBytes = size_t{64} << 20;
// Receives the data: the mark and the first part, then a part with each call.
using PartSink = std::function<Status(std::string part)>;

// Bytes in order, from a file, from memory or from messages.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `to`. Internal: the data end early, or are damaged.
  virtual Status Read(char* to, size_t bytes) = 0;
  virtual uint64_t left() const = 0;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}  // which must outlive it
  Status Read(char* to, size_t bytes) override;
  uint64_t left() const override { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

// Frees each piece when it has been read.
class PiecesSource final : public ByteSource {
 public:
  explicit PiecesSource(std::deque<std::string> pieces);
  Status Read(char* to, size_t bytes) override;
  uint64_t left() const override { return left_; }

 private:
  std::deque<std::string> pieces_;
  size_t offset_ = 0;  // in the first
  uint64_t left_ = 0;
};

// Writes blocks of bytes, each preceded by its length, as parts of `part_bytes` (the last is
// shorter).
class PartWriter {
 public:
  PartWriter(size_t part_bytes, PartSink sink);
  Status Block(std::string_view bytes);
  Status Finish();

 private:
  Status Append(std::string_view bytes);
  Status Send();

  const size_t part_bytes_;
  const PartSink sink_;
  std::string part_;       // with what has to come before it
  size_t payload_at_ = 0;  // in part_
};

// Reads the blocks, in the same order.
class PartReader {
 public:
  // `source` must outlive it.
  explicit PartReader(ByteSource& source) : source_(source) {}
  // Whether `mark`, the first kMarkBytes of a source, introduces parts.
  static constexpr size_t kMarkBytes = 8;
  static bool IsMark(std::string_view mark);

  // After the mark. A block of more than `most` bytes is also an error.
  Result<std::string> Block(uint64_t most);
  // Internal: there is more.
  Status Finish() const;

 private:
  Status Read(char* to, size_t bytes);
  Status NextPart();

  ByteSource& source_;
  std::string part_;
  size_t offset_ = 0;
};

}  // namespace sluice::elastic
