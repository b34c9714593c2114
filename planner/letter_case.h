#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace sluice::planner {

// ASCII only, which is how both databases and attribute names compare.
inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return lower;
}

inline std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return upper;
}

}  // namespace sluice::planner
