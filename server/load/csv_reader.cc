#include "server/load/csv_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/utf8.h"
#include "server/config/terminal.h"

namespace sluice::server {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The separator of the fields in the first line.
char FindSeparator(std::string_view text) {
  constexpr std::string_view kCandidates = ",;\t|";
  size_t counts[kCandidates.size()] = {};
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == '\n') {
      break;
    } else if (const size_t which = kCandidates.find(c); !quoted && which != kCandidates.npos) {
      ++counts[which];
    }
  }
  return kCandidates[static_cast<size_t>(std::max_element(std::begin(counts), std::end(counts)) -
                                         std::begin(counts))];
}

}  // namespace

CsvReader::CsvReader(std::FILE* file, std::string name, char separator, bool lossy)
    : file_(file), name_(std::move(name)), separator_(separator), lossy_(lossy) {}

Result<const std::vector<CsvField>*> CsvReader::Next() {
  if (!started_) {
    RETURN_IF_ERROR(Start());
  }
  for (;;) {
    begin_ = end_;
    line_ = next_line_;
    ASSIGN_OR_RETURN(const Outcome outcome, Parse());
    if (outcome == Outcome::kIncomplete) {
      RETURN_IF_ERROR(Fill());
      continue;
    }
    next_line_ = line_ + lines_in_record_;
    const bool empty_line =
        fields_.size() == 1 && fields_.front().text.empty() && !fields_.front().quoted;
    if (empty_line && !keep_empty_lines_) {
      continue;
    }
    if (lossy_ && ReplaceBytes()) {
      RETURN_IF_ERROR(Parse().status());  // the same record
    }
    RETURN_IF_ERROR(CheckBytes());
    return &fields_;
  }
}

Status CsvReader::Start() {
  started_ = true;
  RETURN_IF_ERROR(Fill());
  const std::string_view text(buffer_.data(), size_);
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return ErrorAt({1, 1}, "the file is UTF-16, and not UTF-8")
        .Hint(fmt::format("convert it: iconv -f UTF-16 -t UTF-8 {} > utf8.csv", name_));
  }
  if (text.starts_with(kByteOrderMark)) {
    end_ = kByteOrderMark.size();
  }
  if (separator_ == 0) {
    separator_ = FindSeparator(text.substr(end_));
  }
  return OkStatus();
}

// Reads more of the file, behind the part of the record that is in the buffer.
Status CsvReader::Fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, size_ - begin_);
    bytes_before_ += static_cast<int64_t>(begin_);
    size_ -= begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  if (size_ >= kMaxRecordBytes) {
    return ErrorAt(PlaceAt(0), fmt::format("the record that begins here is longer than {} MiB",
                                           kMaxRecordBytes >> 20U))
        .Hint("is a quote missing?");
  }
  if (buffer_.size() < size_ + kChunkBytes) {
    buffer_.resize(
        std::min(std::max(size_ * 2, size_ + kChunkBytes), kMaxRecordBytes + kChunkBytes));
  }
  errno = 0;
  const size_t read = std::fread(buffer_.data() + size_, 1, buffer_.size() - size_, file_);
  if (read == 0 && std::ferror(file_) != 0) {
    return Unavailable(fmt::format("cannot read {}: {}", name_, std::strerror(errno)));
  }
  size_ += read;
  at_end_ = read == 0 || std::feof(file_) != 0;
  return OkStatus();
}

void CsvReader::AddField(size_t begin, size_t end, bool quoted, size_t doubled) {
  CsvField field;
  field.quoted = quoted;
  field.offset = begin - begin_ - (quoted ? 1 : 0);
  field.text = std::string_view(buffer_.data() + begin, end - begin);
  if (doubled > 0) {
    in_unquoted_.emplace_back(fields_.size(), unquoted_.size());
    for (size_t i = begin; i < end; ++i) {
      unquoted_ += buffer_[i];
      i += buffer_[i] == '"' ? 1 : 0;
    }
    field.text = std::string_view(buffer_.data(), end - begin - doubled);  // only its size counts
  }
  fields_.push_back(field);
}

// Parses the record at begin_, as far as the buffer holds it.
Result<CsvReader::Outcome> CsvReader::Parse() {
  fields_.clear();
  unquoted_.clear();
  in_unquoted_.clear();
  lines_in_record_ = 1;
  const char* const data = buffer_.data();
  size_t at = begin_;
  if (at == size_) {
    if (!at_end_) {
      return Outcome::kIncomplete;
    }
    end_ = at;
    lines_in_record_ = 0;
    return Outcome::kRecord;  // without fields
  }
  for (;;) {
    if (at < size_ && data[at] == '"') {
      const size_t begin = at + 1;
      size_t doubled = 0;
      for (at = begin;; ++at) {
        if (at >= size_) {
          if (!at_end_) {
            return Outcome::kIncomplete;
          }
          return ErrorAt(PlaceAt(begin - 1 - begin_), "a quote begins here, and none ends it");
        }
        if (data[at] == '\n') {
          ++lines_in_record_;
        } else if (data[at] == '"') {
          if (at + 1 >= size_ && !at_end_) {
            return Outcome::kIncomplete;
          }
          if (at + 1 >= size_ || data[at + 1] != '"') {
            break;
          }
          ++doubled;
          ++at;
        }
      }
      AddField(begin, at, true, doubled);
      ++at;
    } else {
      const size_t begin = at;
      while (at < size_ && data[at] != separator_ && data[at] != '\n' && data[at] != '\r') {
        ++at;
      }
      AddField(begin, at, false, 0);
    }
    if (at + 1 >= size_ && !at_end_) {
      return Outcome::kIncomplete;
    }
    if (at < size_ && data[at] == separator_) {
      ++at;
      continue;
    }
    if (at < size_ && data[at] == '\r' && (at + 1 == size_ || data[at + 1] == '\n')) {
      ++at;
    }
    if (at < size_ && data[at] != '\n') {
      return data[at] == '\r'
                 ? ErrorAt(PlaceAt(at - begin_),
                           "a carriage return stands in a field without quotes")
                 : ErrorAt(PlaceAt(at - begin_), "text follows the quote that ends the field")
                       .Hint("a quote inside of quotes is written twice");
    }
    end_ = std::min(at + 1, size_);
    break;
  }
  for (const auto& [field, begin] : in_unquoted_) {
    fields_[field].text = std::string_view(unquoted_).substr(begin, fields_[field].text.size());
  }
  return Outcome::kRecord;
}

// Judged by the part of the file in the buffer: where other characters are UTF-8, single bytes are
// broken, and any other encoding would break the rest.
std::string CsvReader::HintOfEncoding() const {
  const std::string_view text(buffer_.data(), size_);
  size_t characters = 0, broken = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = CharacterAt(text, at).bytes;
    characters += length > 1 ? 1 : 0;
    broken += length == 0 ? 1 : 0;
    at += std::max<size_t>(length, 1);
  }
  std::string file = "'";
  for (const char c : name_) {
    file += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return characters >= broken
             ? std::string("the rest of the file is UTF-8: --lossy loads ? for such a byte")
             : fmt::format(
                   "convert the file: iconv -f WINDOWS-1252 -t UTF-8 {}' > utf8.csv; or load ? "
                   "for such a byte: --lossy",
                   file);
}

bool CsvReader::ReplaceBytes() {
  const int64_t before = bytes_replaced_;
  for (size_t at = begin_; at < end_;) {
    const size_t length =
        CharacterAt(std::string_view(buffer_.data() + begin_, end_ - begin_), at - begin_).bytes;
    if (length == 0 && buffer_[at] != '\0') {
      buffer_[at] = '?';
      ++bytes_replaced_;
    }
    at += std::max(length, size_t{1});
  }
  return bytes_replaced_ > before;
}

// Refuses bytes that no database could store.
Status CsvReader::CheckBytes() const {
  const std::string_view record(buffer_.data() + begin_, end_ - begin_);
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80 && c != '\0'; };
  const auto odd = std::find_if_not(record.begin(), record.end(), ascii);
  for (auto at = static_cast<size_t>(odd - record.begin()); at < record.size();) {
    const size_t length = record[at] == '\0' ? 0 : CharacterAt(record, at).bytes;
    if (length == 0) {
      const FilePlace place = PlaceAt(at);
      return record[at] == '\0'
                 ? ErrorAt(place, "a NUL byte, which no text can hold")
                 : ErrorAt(place, fmt::format("the byte 0x{:02x} is no UTF-8",
                                              static_cast<unsigned char>(record[at])))
                       .Hint(HintOfEncoding());
    }
    at += length;
  }
  return OkStatus();
}

FilePlace CsvReader::PlaceAt(size_t offset) const {
  FilePlace place{line_, 1};
  const std::string_view record(buffer_.data() + begin_, size_ - begin_);
  for (const char c : record.substr(0, offset)) {
    if (c == '\n') {
      ++place.line;
      place.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80) {
      ++place.column;
    }
  }
  return place;
}

Status CsvReader::ErrorAt(FilePlace place, std::string_view message) const {
  return InvalidArgument(fmt::format("{}:{}:{}: {}", name_, place.line, place.column, message))
      .SqlState("22P04");
}

}  // namespace sluice::server
