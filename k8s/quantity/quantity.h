#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::k8s {

// An amount in Kubernetes' notation: 500m processors, 4Gi of memory. Exact to a billionth; two
// quantities are equal if their values are, however they are written. A value type.
class Quantity {
 public:
  enum class Form { kDecimal, kBinary, kExponent };  // 1500m, 4G; 4Gi; 12e6

  Quantity() = default;
  static Quantity OfMillis(int64_t millis);
  static Quantity OfBytes(int64_t bytes);

  // whole + nanos / 10^9, where 0 <= nanos < 10^9: -0.5 is -1 and 500,000,000.
  int64_t whole() const { return whole_; }
  int32_t nanos() const { return nanos_; }
  double AsDouble() const;
  int64_t RoundedUp() const;  // INT64_MAX if the next whole number would be larger

  bool operator==(const Quantity& other) const;
  bool operator<(const Quantity& other) const;

  // In the API server's canonical form: without a fraction, with the largest suffix that allows it.
  std::string ToString() const;

 private:
  friend Result<Quantity> ParseQuantity(std::string_view text);

  int64_t whole_ = 0;
  int32_t nanos_ = 0;
  Form form_ = Form::kDecimal;
};

// Accepts what Kubernetes accepts, except for two inputs that it would change silently: less than a
// billionth, and more than 2^63-1. An error has a hint if the intention can be guessed (`4GB`).
Result<Quantity> ParseQuantity(std::string_view text);

}  // namespace sluice::k8s
