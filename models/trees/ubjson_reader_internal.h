#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/big_endian.h"

namespace sluice::models {

// Reads UBJSON as libxgboost writes it, which is also all that libxgboost reads without running
// past the end: members of an object in ascending order, arrays preceded by their length, typed
// arrays of d, U, l and L. The caller says what comes next, so the bytes cannot cause recursion.
// After the first error ok() is false, and every read returns 0 or "".
class UbjsonReader {
 public:
  explicit UbjsonReader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  // The first error.
  const std::string& problem() const { return problem_; }
  bool AtEnd() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  // The byte that comes next, or `after` bytes later; 0: none.
  char Next(size_t after = 0) const { return after < rest_.size() ? rest_[after] : '\0'; }
  void Fail(std::string problem) {
    if (ok_) {
      ok_ = false;
      problem_ = std::move(problem);
    }
    rest_ = {};
  }

  // Calls member(name) for each member; it reads the value.
  template <typename Member>
  void Object(Member member) {
    Expect('{');
    std::string_view last;
    for (bool first = true; ok_ && !TakeIf('}'); first = false) {
      const std::string_view name = Sized();
      if (!first && name <= last) {
        return Fail("the members of an object are not in order");
      }
      last = name;
      member(name);
    }
  }
  // Calls element(index) for each element, to read the value. Returns the array's length.
  template <typename Element>
  size_t Array(Element element) {
    Expect('[');
    Expect('#');
    const size_t count = Length(1);
    for (size_t i = 0; ok_ && i < count; ++i) {
      element(i);
    }
    return ok_ ? count : 0;
  }
  std::string_view Text() {
    Expect('S');
    return Sized();
  }
  int64_t Integer() {
    switch (Take()) {
      case 'i':
        return BigEndian<int8_t>();
      case 'U':
        return BigEndian<uint8_t>();
      case 'I':
        return BigEndian<int16_t>();
      case 'l':
        return BigEndian<int32_t>();
      case 'L':
        return BigEndian<int64_t>();
      default:
        Fail("a whole number is missing");
        return 0;
    }
  }
  float Number() {
    Expect('d');
    return std::bit_cast<float>(BigEndian<uint32_t>());
  }
  // The elements of a typed array, big-endian, `width` bytes each.
  std::string_view Typed(char type, size_t width) {
    Expect('[');
    Expect('$');
    Expect(type);
    Expect('#');
    return Bytes(Length(width) * width);
  }

  // Passes over a typed array.
  void SkipTyped() {
    const char type = Next(2);
    Typed(type, type == 'L' ? sizeof(int64_t) : type == 'U' ? 1 : sizeof(int32_t));
  }

  template <typename T>
  static T Load(std::string_view bytes, size_t index) {
    return LoadBigEndian<T>(bytes.substr(index * sizeof(T)));
  }

 private:
  char Take() {
    const std::string_view byte = Bytes(1);
    return byte.empty() ? '\0' : byte.front();
  }
  bool TakeIf(char c) {
    const bool there = !rest_.empty() && rest_.front() == c;
    rest_.remove_prefix(there ? 1 : 0);
    return there;
  }
  void Expect(char c) {
    if (!TakeIf(c)) {
      Fail(rest_.empty() ? "it ends early" : std::string("'") + c + "' is missing");
    }
  }
  // A length after its 'L', of elements of at least `width` bytes, checked against the bytes left.
  size_t Length(size_t width) {
    Expect('L');
    const auto length = BigEndian<int64_t>();
    if (length < 0 || static_cast<uint64_t>(length) > rest_.size() / width) {
      Fail("a length is beyond the end");
      return 0;
    }
    return static_cast<size_t>(length);
  }
  std::string_view Sized() { return Bytes(Length(1)); }
  std::string_view Bytes(size_t count) {
    if (count > rest_.size()) {
      Fail("it ends early");
      return {};
    }
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  template <typename T>
  T BigEndian() {
    const std::string_view bytes = Bytes(sizeof(T));
    return bytes.empty() ? T{0} : Load<T>(bytes, 0);
  }

  std::string_view rest_;
  bool ok_ = true;
  std::string problem_;
};

}  // namespace sluice::models
