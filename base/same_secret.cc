#include "base/same_secret.h"

namespace sluice {

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) {
    return false;
  }
  volatile unsigned char differ = 0;  // volatile: no compiler ends the loop early
  for (size_t i = 0; i < a.size(); ++i) {
    differ = static_cast<unsigned char>(differ | (a[i] ^ b[i]));
  }
  return differ == 0;
}

}  // namespace sluice
