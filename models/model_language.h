#pragma once

#include <string_view>

namespace sluice::models {

// The language of a function in Python that returns a keras.Model; "keras" is Keras's JSON.
inline constexpr std::string_view kKerasInPython = "keras in Python";

// Whether a model type in this language is compiled by Python.
inline bool IsPython(std::string_view language) {
  return language == "pytorch" || language == kKerasInPython;
}

}  // namespace sluice::models
