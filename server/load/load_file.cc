#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "base/letter_case.h"
#include "server/load/load_file_internal.h"
#include "server/load/load_table.h"

namespace sluice::server {
namespace {

bool IsPlainName(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && (name.front() < '0' || name.front() > '9') &&
         std::all_of(name.begin(), name.end(), plain);
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Status CannotRead(const std::string& file) {
  return NotFound(fmt::format("cannot read {}: {}", file, std::strerror(errno))).SqlState("58P01");
}

}  // namespace

Status LoadFile::Open(const std::stop_token& stop) {
  file_.reset(options_.file == "-" ? stdin : std::fopen(options_.file.c_str(), "rb"));
  if (!file_) {
    return CannotRead(options_.file);
  }
  struct stat info {};
  if (fstat(fileno(file_.get()), &info) != 0 || S_ISDIR(info.st_mode)) {
    errno = S_ISDIR(info.st_mode) ? EISDIR : errno;
    return CannotRead(options_.file);
  }
  bytes_ = info.st_size;
  if (S_ISREG(info.st_mode)) {
    begin_ = std::ftell(file_.get());
    return OkStatus();
  }
  const bool read_once = options_.append && options_.has_header;
  return read_once ? OkStatus() : KeepCopy(stop);
}

Status LoadFile::KeepCopy(const std::stop_token& stop) {
  File copy(std::tmpfile());
  std::vector<char> buffer(size_t{1} << 20);
  size_t size = 0;
  while (copy && (size = std::fread(buffer.data(), 1, buffer.size(), file_.get())) > 0) {
    if (stop.stop_requested()) {
      return Cancelled("cancelled: nothing was loaded");
    }
    if (std::fwrite(buffer.data(), 1, size, copy.get()) != size) {
      copy.reset();
    }
  }
  if (!copy || std::ferror(file_.get()) != 0) {
    return Unavailable(
        fmt::format("cannot keep {} in a temporary file: {}", options_.file, std::strerror(errno)));
  }
  file_ = std::move(copy);
  bytes_ = std::ftell(file_.get());
  begin_ = 0;
  return OkStatus();
}

void LoadFile::OpenReader(char separator) {
  if (begin_ >= 0) {
    std::fseek(file_.get(), begin_, SEEK_SET);
  }
  reader_ = std::make_unique<CsvReader>(file_.get(), options_.file, separator, options_.lossy);
}

Status LoadFile::ReadHeader(const std::function<std::string(std::string_view)>& fold) {
  OpenReader(options_.separator);
  ASSIGN_OR_RETURN(const std::vector<CsvField>* header, reader_->Next());
  if (header->empty()) {
    return reader_->ErrorAt({1, 1}, "the file is empty: it has not even a header");
  }
  std::map<std::string, size_t> known;
  for (size_t i = 0; i < header->size(); ++i) {
    const CsvField& field = (*header)[i];
    std::string name(Trimmed(field.text));
    if (!options_.has_header || name.empty()) {
      name = fmt::format("column_{}", i + 1);
    } else if (IsPlainName(name)) {
      name = fold(name);  // so that the name needs no quotes in statements
    }
    const auto [twin, fresh] = known.emplace(LowerAscii(name), i);
    if (!fresh) {
      return ErrorAt(field,
                     fmt::format("column '{}' has the name of field {}", name, twin->second + 1))
          .SqlState("42701")
          .Hint("names are equal in any case; --no-header reads the first line as a row");
    }
    names_.push_back(std::move(name));
  }
  if (names_.size() == 1) {
    reader_->KeepEmptyLines();
  }
  header_is_row_ = !options_.has_header;
  return OkStatus();
}

Status LoadFile::Rewind() {
  OpenReader(reader_->separator());
  if (names_.size() == 1) {
    reader_->KeepEmptyLines();
  }
  return header_is_row_ ? OkStatus() : reader_->Next().status();
}

Result<const std::vector<CsvField>*> LoadFile::NextRow() {
  ASSIGN_OR_RETURN(const std::vector<CsvField>* row, reader_->Next());
  if (row->empty() || row->size() == names_.size()) {
    return row;
  }
  const bool more = row->size() > names_.size();
  const FilePlace place =
      more ? reader_->PlaceOf((*row)[names_.size()]) : FilePlace{reader_->line(), 1};
  return reader_
      ->ErrorAt(place, fmt::format("{} field{} where the {} has {}", row->size(),
                                   row->size() == 1 ? "" : "s",
                                   options_.has_header ? "header" : "first line", names_.size()))
      .Hint(more ? "a field that holds the separator is written in quotes" : "");
}

bool LoadFile::IsNull(const CsvField& field) const {
  return !field.quoted && (field.text.empty() || field.text == options_.null_text);
}

double LoadFile::ShareRead() const {
  return bytes_ > 0 ? static_cast<double>(reader_->bytes_read()) / static_cast<double>(bytes_) : 0;
}

}  // namespace sluice::server
