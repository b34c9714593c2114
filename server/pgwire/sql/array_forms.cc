#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "server/pgwire/sql/binary_forms_internal.h"
#include "server/pgwire/sql/column_types.h"

namespace sluice::server::pgwire {
namespace {

constexpr size_t kMostDimensions = 6;  // MAXDIM
// A numeric of ten bytes may have 131,072 digits; this limits how much longer an array's text may
// be than its bytes.
constexpr size_t kMostMoreText = size_t{64} << 20U;

Status MalformedArray() {
  return InvalidArgument("malformed array literal").SqlState("22P02");
}

bool IsBlank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool IsNullWord(std::string_view text) {
  constexpr std::string_view kWord = "null";
  return text.size() == kWord.size() && std::equal(text.begin(), text.end(), kWord.begin(),
                                                   [](char a, char b) { return (a | 0x20) == b; });
}

class ArrayTextReader {
 public:
  explicit ArrayTextReader(std::string_view text) : text_(text) { sizes_.fill(-1); }

  Result<ArrayValue> Read() {
    std::vector<ArrayValue::Dimension> bounds;
    SkipBlanks();
    if (At('[') && !ReadBounds(&bounds)) {
      return MalformedArray();
    }
    if (!ReadLevel(0)) {
      return MalformedArray();
    }
    SkipBlanks();
    if (at_ != text_.size()) {
      return MalformedArray();
    }
    for (size_t i = 0; i < kMostDimensions && sizes_[i] > 0; ++i) {
      array_.dimensions.push_back({sizes_[i], 1});
    }
    if (!bounds.empty() && !TakeBounds(bounds)) {
      return MalformedArray();
    }
    return std::move(array_);
  }

 private:
  bool At(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool Take(char c) {
    const bool there = At(c);
    at_ += there ? 1 : 0;
    return there;
  }
  void SkipBlanks() {
    while (at_ < text_.size() && IsBlank(text_[at_])) {
      ++at_;
    }
  }
  bool TakeInteger(int32_t* number) {
    const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), *number);
    at_ = static_cast<size_t>(parsed.ptr - text_.data());
    return parsed.ec == std::errc();
  }

  // "[1:2][0:3]=".
  bool ReadBounds(std::vector<ArrayValue::Dimension>* bounds) {
    while (Take('[')) {
      int32_t lower = 0;
      int32_t upper = 0;
      int32_t size = 0;
      if (bounds->size() == kMostDimensions || !TakeInteger(&lower) || !Take(':') ||
          !TakeInteger(&upper) || !Take(']') || __builtin_sub_overflow(upper, lower, &size) ||
          __builtin_add_overflow(size, 1, &size)) {
        return false;
      }
      bounds->push_back({size, lower});
    }
    return Take('=');
  }

  bool TakeBounds(const std::vector<ArrayValue::Dimension>& bounds) {
    if (!std::equal(bounds.begin(), bounds.end(), array_.dimensions.begin(),
                    array_.dimensions.end(),
                    [](const auto& a, const auto& b) { return a.size == b.size; })) {
      return false;
    }
    array_.dimensions = bounds;
    return true;
  }

  // "{...}" at a depth: all levels of one depth have the same length, and only the deepest hold
  // elements.
  bool ReadLevel(size_t depth) {
    SkipBlanks();
    if (depth == kMostDimensions || !Take('{')) {
      return false;
    }
    SkipBlanks();
    if (depth == 0 && Take('}')) {
      return true;
    }
    int32_t size = 0;
    do {
      SkipBlanks();
      const bool deeper = At('{');
      if (!deeper && leaf_depth_ == kMostDimensions) {
        leaf_depth_ = depth;
      }
      if (deeper == (leaf_depth_ == depth) || !(deeper ? ReadLevel(depth + 1) : ReadElement())) {
        return false;
      }
      ++size;
      SkipBlanks();
    } while (Take(','));
    const bool same = sizes_[depth] == -1 || sizes_[depth] == size;
    sizes_[depth] = size;
    return same && Take('}');
  }

  bool ReadElement() {
    std::string element;
    if (Take('"')) {
      while (at_ < text_.size() && !At('"')) {
        at_ += At('\\') ? 1 : 0;
        if (at_ < text_.size()) {
          element += text_[at_++];
        }
      }
      array_.elements.emplace_back(std::move(element));
      return Take('"');
    }
    bool escaped = false;
    while (at_ < text_.size() && !At(',') && !At('}')) {
      if (At('{') || At('"')) {
        return false;
      }
      if (At('\\')) {
        escaped = true;
        if (++at_ == text_.size()) {
          return false;
        }
      }
      element += text_[at_++];
    }
    while (!escaped && !element.empty() && IsBlank(element.back())) {
      element.pop_back();
    }
    if (element.empty()) {
      return false;
    }
    if (!escaped && IsNullWord(element)) {
      array_.elements.emplace_back(std::nullopt);
    } else {
      array_.elements.emplace_back(std::move(element));
    }
    return true;
  }

  const std::string_view text_;
  size_t at_ = 0;
  ArrayValue array_;
  std::array<int32_t, kMostDimensions> sizes_{};
  size_t leaf_depth_ = kMostDimensions;  // not known yet
};

class ArrayTextWriter {
 public:
  explicit ArrayTextWriter(const ArrayValue& array) : array_(array) {}
  std::string Write() {
    if (array_.dimensions.empty()) {
      return "{}";
    }
    const bool bounds = std::any_of(array_.dimensions.begin(), array_.dimensions.end(),
                                    [](const auto& dimension) { return dimension.lower != 1; });
    for (const ArrayValue::Dimension& dimension : array_.dimensions) {
      if (bounds) {
        text_ += fmt::format("[{}:{}]", dimension.lower, dimension.lower + dimension.size - 1);
      }
    }
    text_ += bounds ? "=" : "";
    WriteLevel(0);
    return std::move(text_);
  }

 private:
  void WriteLevel(size_t depth) {
    text_ += '{';
    for (int32_t i = 0; i < array_.dimensions[depth].size; ++i) {
      text_ += i == 0 ? "" : ",";
      if (depth + 1 < array_.dimensions.size()) {
        WriteLevel(depth + 1);
      } else {
        WriteElement(array_.elements[next_++]);
      }
    }
    text_ += '}';
  }
  void WriteElement(const std::optional<std::string>& element) {
    if (!element.has_value()) {
      text_ += "NULL";
      return;
    }
    text_ += '"';
    for (const char c : *element) {
      text_ += c == '"' || c == '\\' ? "\\" : "";
      text_ += c;
    }
    text_ += '"';
  }

  const ArrayValue& array_;
  size_t next_ = 0;
  std::string text_;
};

}  // namespace

Result<ArrayValue> ParseArrayText(std::string_view text) {
  return ArrayTextReader(text).Read();
}

std::string ArrayText(const ArrayValue& array) {
  return ArrayTextWriter(array).Write();
}

Result<ArrayValue> ParseArrayBinary(uint32_t element, std::string_view bytes) {
  const Status wrong =
      InvalidArgument("incorrect binary data format of an array").SqlState("22P03");
  BigEndianReader reader(bytes);
  const int32_t dimensions = reader.Take<int32_t>();
  const int32_t flags = reader.Take<int32_t>();
  const auto oid = static_cast<uint32_t>(reader.Take<int32_t>());
  if (!reader.ok() || dimensions < 0 || dimensions > static_cast<int32_t>(kMostDimensions) ||
      (flags != 0 && flags != 1) || oid != element) {
    return wrong;
  }
  ArrayValue array;
  size_t count = dimensions == 0 ? 0 : 1;
  for (int32_t i = 0; i < dimensions; ++i) {
    ArrayValue::Dimension dimension;
    dimension.size = reader.Take<int32_t>();
    dimension.lower = reader.Take<int32_t>();
    int32_t upper = 0;
    // Each element takes at least the bytes of its length.
    if (!reader.ok() || dimension.size < 0 ||
        __builtin_add_overflow(dimension.lower, dimension.size, &upper) ||
        __builtin_mul_overflow(count, static_cast<size_t>(dimension.size), &count) ||
        count > reader.left() / sizeof(int32_t)) {
      return wrong;
    }
    array.dimensions.push_back(dimension);
  }
  if (count == 0) {
    array.dimensions.clear();
  }
  size_t text_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    const int32_t size = reader.Take<int32_t>();
    if (size == -1) {
      array.elements.emplace_back(std::nullopt);
      continue;
    }
    const std::string_view value =
        reader.Bytes(size < 0 ? bytes.size() : static_cast<size_t>(size));
    if (!reader.ok()) {
      return wrong;
    }
    ASSIGN_OR_RETURN(std::string text, TextOfBinary(element, value));
    text_bytes += text.size();
    if (text_bytes > kMostMoreText + 2 * bytes.size()) {
      return ResourceExhausted("an array has too many digits").SqlState("54000");
    }
    array.elements.emplace_back(std::move(text));
  }
  if (!reader.at_end()) {
    return wrong;
  }
  return array;
}

Status AppendArrayBinary(uint32_t element, const ArrayValue& array, std::string* out) {
  const bool nulls = std::any_of(array.elements.begin(), array.elements.end(),
                                 [](const auto& value) { return !value.has_value(); });
  AppendBigEndian<int32_t>(static_cast<int32_t>(array.dimensions.size()), out);
  AppendBigEndian<int32_t>(nulls ? 1 : 0, out);
  AppendBigEndian<int32_t>(static_cast<int32_t>(element), out);
  for (const ArrayValue::Dimension& dimension : array.dimensions) {
    AppendBigEndian<int32_t>(dimension.size, out);
    AppendBigEndian<int32_t>(dimension.lower, out);
  }
  for (const std::optional<std::string>& value : array.elements) {
    if (!value.has_value()) {
      AppendBigEndian<int32_t>(-1, out);
      continue;
    }
    std::string bytes;
    RETURN_IF_ERROR(AppendBinary(element, *value, &bytes));
    AppendBigEndian<int32_t>(static_cast<int32_t>(bytes.size()), out);
    *out += bytes;
  }
  return OkStatus();
}

}  // namespace sluice::server::pgwire
