#include "server/pgwire/embedded/binary_copy.h"

#include <fmt/core.h>

#include "server/pgwire/sql/binary_forms_internal.h"

namespace sluice::server::pgwire {
namespace {

constexpr std::string_view kSignature("PGCOPY\n\377\r\n\0", 11);
constexpr size_t kFlagsBytes = 4;
constexpr size_t kLengthOfExtension = 4;
constexpr uint32_t kCriticalFlags = 0xffff0000U;

Status NoBinaryCopy(std::string what) {
  return Status(Code::kInvalidArgument, std::move(what)).SqlState("22P04");
}

}  // namespace

std::string BinaryCopyHeader() {
  std::string header(kSignature);
  AppendBigEndian<int32_t>(0, &header);  // flags
  AppendBigEndian<int32_t>(0, &header);  // of a header extension
  return header;
}

std::string BinaryCopyTrailer() {
  std::string trailer;
  AppendBigEndian<int16_t>(-1, &trailer);
  return trailer;
}

Result<std::optional<size_t>> BinaryCopyReader::HeaderBytes(std::string_view bytes) {
  const size_t fixed = kSignature.size() + kFlagsBytes + kLengthOfExtension;
  if (bytes.substr(0, kSignature.size()) != kSignature.substr(0, bytes.size())) {
    return NoBinaryCopy("COPY file signature not recognized");
  }
  if (bytes.size() < fixed) {
    return std::optional<size_t>();
  }
  BigEndianReader reader(bytes.substr(kSignature.size()));
  if ((static_cast<uint32_t>(reader.Take<int32_t>()) & kCriticalFlags) != 0) {
    return NoBinaryCopy("unrecognized critical flags in COPY file header");
  }
  const int32_t extension = reader.Take<int32_t>();
  if (extension < 0) {
    return NoBinaryCopy("invalid COPY file header (wrong length)");
  }
  const size_t size = fixed + static_cast<size_t>(extension);
  return bytes.size() < size ? std::optional<size_t>() : std::optional(size);
}

Result<std::optional<size_t>> BinaryCopyReader::RowBytes(std::string_view bytes, Fields* fields) {
  fields->clear();
  BigEndianReader reader(bytes);
  const int16_t count = reader.Take<int16_t>();
  if (!reader.ok()) {
    return std::optional<size_t>();
  }
  if (count == -1) {
    ended_ = true;
    return std::optional(bytes.size() - reader.left());
  }
  if (count < 0) {
    return NoBinaryCopy(fmt::format("row field count is {}", count));
  }
  for (int16_t i = 0; i < count; ++i) {
    const int32_t size = reader.Take<int32_t>();
    if (!reader.ok()) {
      return std::optional<size_t>();
    }
    if (size < -1) {
      return NoBinaryCopy("invalid field size");
    }
    if (size == -1) {
      fields->push_back(std::nullopt);
      continue;
    }
    if (reader.left() < static_cast<size_t>(size)) {
      return std::optional<size_t>();
    }
    fields->push_back(reader.Bytes(static_cast<size_t>(size)));
  }
  return std::optional(bytes.size() - reader.left());
}

Status BinaryCopyReader::Add(std::string_view bytes, const Take& take) {
  if (held_.size() > kMostOfRow) {
    return NoBinaryCopy(fmt::format("row {} is longer than {} bytes", rows_ + 1, kMostOfRow))
        .SqlState("54000");
  }
  held_ += bytes;
  size_t at = 0;
  Fields fields;
  while (true) {
    const std::string_view rest = std::string_view(held_).substr(at);
    if (rest.empty()) {
      break;
    }
    if (ended_) {
      return NoBinaryCopy("received copy data after EOF marker");
    }
    const bool header = !begun_;
    ASSIGN_OR_RETURN(const std::optional<size_t> size,
                     header ? HeaderBytes(rest) : RowBytes(rest, &fields));
    if (!size.has_value()) {
      break;
    }
    begun_ = true;
    at += *size;
    if (!header && !ended_) {
      ++rows_;
      RETURN_IF_ERROR(take(fields));
    }
  }
  held_.erase(0, at);
  return OkStatus();
}

// A file without the trailer is accepted, too, as the server does.
Status BinaryCopyReader::End() const {
  return begun_ && held_.empty() ? OkStatus() : NoBinaryCopy("unexpected EOF in COPY data");
}

}  // namespace sluice::server::pgwire
