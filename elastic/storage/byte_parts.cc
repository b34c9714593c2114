#include "elastic/storage/byte_parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "elastic/storage/crc32c.h"

namespace sluice::elastic {
namespace {

// No protobuf message begins like this: it is the end of a group that was not begun.
constexpr std::string_view kMark = "\x0Cslparts";
static_assert(kMark.size() == PartReader::kMarkBytes);

struct PartHeader {
  uint32_t bytes = 0;
  uint32_t crc = 0;  // of the part
};

Status EndsEarly() {
  return Internal("it is damaged: it ends too early");
}

}  // namespace

Status MemorySource::Read(char* to, size_t bytes) {
  if (bytes > bytes_.size()) {
    return EndsEarly();
  }
  std::copy_n(bytes_.data(), bytes, to);
  bytes_.remove_prefix(bytes);
  return Status();
}

PiecesSource::PiecesSource(std::deque<std::string> pieces) : pieces_(std::move(pieces)) {
  for (const std::string& piece : pieces_) {
    left_ += piece.size();
  }
}

Status PiecesSource::Read(char* to, size_t bytes) {
  if (bytes > left_) {
    return EndsEarly();
  }
  left_ -= bytes;
  while (bytes > 0) {
    const std::string& first = pieces_.front();
    const size_t taken = std::min(bytes, first.size() - offset_);
    std::copy_n(first.data() + offset_, taken, to);
    to += taken;
    bytes -= taken;
    offset_ += taken;
    if (offset_ == first.size()) {
      pieces_.pop_front();
      offset_ = 0;
    }
  }
  return Status();
}

PartWriter::PartWriter(size_t part_bytes, PartSink sink)
    : part_bytes_(std::min(part_bytes, kMaxPartBytes)),
      sink_(std::move(sink)),
      part_(kMark),
      payload_at_(kMark.size() + sizeof(PartHeader)) {
  part_.resize(payload_at_);
}

Status PartWriter::Block(std::string_view bytes) {
  const uint64_t size = bytes.size();
  char length[sizeof(size)];
  std::memcpy(length, &size, sizeof(size));
  RETURN_IF_ERROR(Append({length, sizeof(length)}));
  return Append(bytes);
}

Status PartWriter::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t room = payload_at_ + part_bytes_ - part_.size();
    if (room == 0) {
      RETURN_IF_ERROR(Send());
      continue;
    }
    const std::string_view now = bytes.substr(0, room);
    if (part_.capacity() < payload_at_ + part_bytes_ && bytes.size() > room) {
      part_.reserve(payload_at_ + part_bytes_);  // it will be full
    }
    part_.append(now);
    bytes.remove_prefix(now.size());
  }
  return Status();
}

Status PartWriter::Send() {
  const std::string_view payload = std::string_view(part_).substr(payload_at_);
  const PartHeader header{static_cast<uint32_t>(payload.size()), Crc32c(payload)};
  std::memcpy(part_.data() + payload_at_ - sizeof(header), &header, sizeof(header));
  RETURN_IF_ERROR(sink_(std::exchange(part_, {})));
  payload_at_ = sizeof(PartHeader);
  part_.resize(payload_at_);
  return Status();
}

Status PartWriter::Finish() {
  return part_.size() > payload_at_ ? Send() : Status();
}

bool PartReader::IsMark(std::string_view mark) {
  return mark == kMark;
}

Status PartReader::NextPart() {
  PartHeader header;
  RETURN_IF_ERROR(source_.Read(reinterpret_cast<char*>(&header), sizeof(header)));
  if (header.bytes == 0 || header.bytes > kMaxPartBytes || header.bytes > source_.left()) {
    return Internal(fmt::format("it is damaged: a part of {} bytes", header.bytes));
  }
  part_.resize(header.bytes);
  offset_ = 0;
  RETURN_IF_ERROR(source_.Read(part_.data(), part_.size()));
  return Crc32c(part_) == header.crc ? Status()
                                     : Internal("it is damaged: a part's checksum does not fit");
}

Status PartReader::Read(char* to, size_t bytes) {
  while (bytes > 0) {
    if (offset_ == part_.size()) {
      RETURN_IF_ERROR(NextPart());
    }
    const size_t taken = std::min(bytes, part_.size() - offset_);
    std::copy_n(part_.data() + offset_, taken, to);
    to += taken;
    bytes -= taken;
    offset_ += taken;
  }
  return Status();
}

Result<std::string> PartReader::Block(uint64_t most) {
  uint64_t size = 0;
  RETURN_IF_ERROR(Read(reinterpret_cast<char*>(&size), sizeof(size)));
  if (size > most || size > source_.left() + (part_.size() - offset_)) {
    return Internal(fmt::format("it is damaged: a block of {} bytes", size));
  }
  std::string block(size, '\0');  // its bytes are available
  RETURN_IF_ERROR(Read(block.data(), block.size()));
  return block;
}

Status PartReader::Finish() const {
  return offset_ == part_.size() && source_.left() == 0
             ? Status()
             : Internal("it is damaged: there are bytes after its end");
}

}  // namespace sluice::elastic
