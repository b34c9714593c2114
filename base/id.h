#pragma once

#include <fmt/core.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>

namespace sluice {

// What ids of one kind support in addition to comparison, use as a map key and printing.
enum class IdUse {
  kName,      // nothing more
  kSequence,  // they are assigned one after another: ++, -- and Next
  kOrdinal,   // they count something: also distances, and indices into a list
};

// An identifying number: of an epoch, of a worker. Each kind of id is a type of its own and does
// not convert to a number, so that ids cannot be confused. As cheap as its number. A kind:
//   struct EpochKind {
//     using Number = uint32_t;
//     static constexpr Number kFirst = 1;
//     static constexpr IdUse kUse = IdUse::kOrdinal;
//   };
//   using Epoch = Id<EpochKind>;
template <typename Kind>
class Id {
 public:
  using Number = typename Kind::Number;

  constexpr Id() = default;  // 0
  constexpr explicit Id(Number number) : number_(number) {}
  // For code that stores, sends or hashes the id; other code does not need the number.
  constexpr Number value() const { return number_; }
  static constexpr Id First() { return Id(Kind::kFirst); }

  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;

  constexpr Id& operator++() requires(Kind::kUse != IdUse::kName) {
    ++number_;
    return *this;
  }
  constexpr Id operator++(int) requires(Kind::kUse != IdUse::kName) { return Id(number_++); }
  constexpr Id Next() const requires(Kind::kUse != IdUse::kName) { return ++Id(*this); }
  constexpr Id& operator--() requires(Kind::kUse != IdUse::kName) {
    --number_;
    return *this;
  }
  constexpr Id operator--(int) requires(Kind::kUse != IdUse::kName) { return Id(number_--); }

  friend constexpr int64_t operator-(Id to, Id from) requires(Kind::kUse == IdUse::kOrdinal) {
    return static_cast<int64_t>(to.number_) - static_cast<int64_t>(from.number_);
  }
  friend constexpr Id operator+(Id id, int64_t distance) requires(Kind::kUse == IdUse::kOrdinal) {
    return Id(static_cast<Number>(static_cast<int64_t>(id.number_) + distance));
  }
  friend constexpr Id operator-(Id id, int64_t distance) requires(Kind::kUse == IdUse::kOrdinal) {
    return id + -distance;
  }
  // Its index in a list with one element per id from the first on, and back.
  constexpr size_t index() const requires(Kind::kUse == IdUse::kOrdinal) {
    return static_cast<size_t>(number_ - Kind::kFirst);
  }
  static constexpr Id At(size_t index) requires(Kind::kUse == IdUse::kOrdinal) {
    return Id(static_cast<Number>(static_cast<Number>(index) + Kind::kFirst));
  }

  friend std::ostream& operator<<(std::ostream& stream, Id id) { return stream << id.number_; }

 private:
  Number number_ = 0;
};

}  // namespace sluice

template <typename Kind>
struct std::hash<sluice::Id<Kind>> {
  size_t operator()(sluice::Id<Kind> id) const noexcept {
    return std::hash<typename Kind::Number>()(id.value());
  }
};

template <typename Kind>
struct fmt::formatter<sluice::Id<Kind>> {
  constexpr auto parse(fmt::format_parse_context& context) const { return context.begin(); }
  template <typename Context>
  auto format(sluice::Id<Kind> id, Context& context) const {
    return fmt::format_to(context.out(), "{}", id.value());
  }
};
